"""`.loc` of PTX: from which line of a program a line was compiled."""

from __future__ import annotations

from pathlib import Path

from fragir.ptx import parse
from fragir.ptx.source_lines import SourceLines
from fragir.ptx.tree import Block, File, Function, Instruction, Loc, Statement

NVCC = Path(__file__).parent / "data" / "nvcc_basic_sm_80_lineinfo.ptx"


def test_as_the_tree_has_it() -> None:
    """Of every statement of real code the last `.loc` ahead of it in its function."""
    text = NVCC.read_text()
    module = parse(text)
    assert module.source is not None
    files = {x.index.value: x.path.value for x in module.items if isinstance(x, File)}
    lines, places = SourceLines(text), list[str]()

    def walk(statements: tuple[Statement, ...], now: str) -> str:
        for one in statements:
            match one:
                case Loc():
                    now = f"{files[one.file.value]}:{one.line.value}"
                    now += f":{one.column.value}" if one.column.value else ""
                    if one.inlined_at is not None:
                        file, line, col = (x.value for x in one.inlined_at)
                        now += f", inlined at {files[file]}:{line}" + (f":{col}" if col else "")
                case Block():
                    now = walk(one.items, now)
                case Instruction():
                    assert module.source is not None
                    assert lines.place(module.source.place(one.at)[0]) == now
                    places.append(now)
                case _:
                    pass
        return now

    for function in module.items:
        if isinstance(function, Function) and function.body is not None:
            walk(function.body.items, "")
    assert len(places) > 200
    assert any("inlined at basic.cu:25:5" in place for place in places)


def test_nothing_is_said_where_no_loc_holds() -> None:
    """Before the first, in the next function, and in PTX without any."""
    lines = SourceLines(".func f() {\n.reg .b32 %r;\n.loc 3 1 2\nret;\n}\n.func g() {\nret;\n}\n")
    assert [lines.place(n) for n in range(1, 9)] == ["", "", *["file 3:1:2"] * 3, *[""] * 3]
    assert SourceLines("ret;").place(1) == ""
