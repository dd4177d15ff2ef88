"""`fragir sass`: machine code, its loops, and what must stand in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from fragir.cli.command import (
    FINDING,
    Progress,
    command,
    json_option,
    note,
    print_json,
    print_table,
)
from fragir.cli.files import read_bytes, read_text, write_output

if TYPE_CHECKING:
    from fragir.passes.writer.text import LineOrigin
    from fragir.toolchain.sass_loops import MachineLoop


EXAMPLES = (
    (
        "The loops of a product; fails unless the main one has four wgmma and spills nothing:",
        "fragir sass examples/gemm.mlir --target sm_90a --loops --require HGMMA=4"
        " --require spill=0",
    ),
    ("Machine code of PTX, with its lines:", "fragir sass examples/store.ptx"),
)


@command(examples=EXAMPLES)
@click.argument("file", metavar="IN.mlir|K.ptx|K.cubin")
@click.option(
    "--target", metavar="SM", help="As in sm_90a; sm_80 for a program, .target's for PTX if absent."
)
@click.option("--entry", metavar="NAME", help="This function only.")
@click.option("--loops", is_flag=True, help="A table of the loops in place of the code.")
@click.option(
    "--require",
    "needs",
    metavar="NEED",
    multiple=True,
    help="What must hold of the main loop, as in HGMMA=4, MUFU>=32, spill=0; else exit code 1.",
)
@click.option(
    "--between",
    metavar="FIRST SECOND",
    nargs=2,
    help="--require is of what stands between two instructions of the main loop: regular"
    " expressions, or waits as in wgmma:1 and cp.async:0.",
)
@json_option
def main(
    file: str,
    target: str | None,
    entry: str | None,
    loops: bool,
    needs: tuple[str, ...],
    between: tuple[str, str] | None,
    as_json: bool,
) -> int | None:
    """Show machine code, or its loops and what stands in them, of a program or PTX.

    The main loop is that with the most tensor-core instructions of those that have none inside.
    """
    if between is not None and not needs:
        raise click.UsageError("--between says where --require looks: give that too")
    with Progress("assembling"):
        code = _code(file, target, entry)
    if not (loops or needs or as_json):
        write_output(None, code.sass)
        return None
    from fragir.toolchain import sass_loops

    found = [one for one in sass_loops.loops(code.sass) if entry in (None, one.function)]
    if loops and not as_json:
        _print_loops(found, code)
    problems = _problems(code.sass, entry, needs, between) if needs else []
    if as_json:
        print_json({"loops": [_json(one, code) for one in found], "missed": problems})
    else:
        for problem in problems:
            note(f"missed: {problem}")
    return FINDING if problems else None


class _Code(NamedTuple):
    """SASS text; what its lines of PTX come from, where it was made from a program."""

    sass: str
    origins: Sequence[LineOrigin]


def _code(file: str, target: str | None, entry: str | None) -> _Code:
    from fragir.toolchain.ptxas import own_target, with_lines
    from fragir.toolchain.sass import disassemble

    if file.endswith(".cubin"):
        return _Code(disassemble(read_bytes(file), lines=True), ())
    if file.endswith(".mlir") or file == "-":
        from fragir.compilation import program

        name = "<stdin>" if file == "-" else file
        text = read_text(file, "MLIR")
        target = target or "sm_80"
        module = program.parse(text, name)
        if entry is not None:
            program.keep_only(module, program.choose_entry(module, entry))
        program.lower(module, "lane", target, source=text)
        ptx, origins = program.emit_with_origins(module, target, source=text)
        return _Code(disassemble(with_lines(ptx, target), lines=True), origins)
    ptx = read_text(file, "PTX")
    target = target or own_target(ptx, file)
    return _Code(disassemble(with_lines(ptx, target), lines=True), ())


def _problems(
    sass: str, entry: str | None, needs: Sequence[str], between: tuple[str, str] | None
) -> list[str]:
    from fragir.toolchain import sass_loops

    loop = sass_loops.main_loop(sass, entry)
    if between is None:
        return sass_loops.missed(loop.counts, needs)
    first, second = (_pattern(text) for text in between)
    stretches = sass_loops.between(loop.instructions, first, second, round=True)
    return list(dict.fromkeys(p for one in stretches for p in sass_loops.missed(one, needs)))


def _pattern(text: str) -> str:
    """The regular expression that `--between` means."""
    from fragir.toolchain import sass_loops

    if match := re.fullmatch(r"(wgmma|cp\.async):(\d+)", text):
        wait = sass_loops.wgmma_wait if match[1] == "wgmma" else sass_loops.copy_wait
        return wait(int(match[2]))
    try:
        re.compile(text)
    except re.error as error:
        raise click.UsageError(f"'{text}' is no regular expression: {error}") from None
    return text


def _place(loop: MachineLoop, code: _Code) -> str | None:
    """From where the loop comes: the program's line of most of its instructions, or the PTX's."""
    lines = Counter(one.line for one in loop.instructions if one.line is not None)
    if not lines:
        return None
    if not code.origins:
        return f"PTX line {min(lines)}"
    from fragir.compilation.notes import origin_of

    found: Counter[str] = Counter()
    for line, count in lines.items():
        if origin := origin_of(line, code.origins):
            found[f"{origin.file}:{origin.line}"] += count
    return found.most_common(1)[0][0] if found else None


def _print_loops(loops: Sequence[MachineLoop], code: _Code) -> None:
    from fragir.toolchain.sass_loops import KINDS

    if not loops:
        print("no loops")
        return
    shown = [kind for kind in KINDS if any(loop.kinds[kind] for loop in loops)]
    columns = ["function", "address", "depth", "from", "all", *shown, "waits"]
    rows = [
        [
            f"{'  ' * (loop.depth - 1)}{loop.function}",
            f"{loop.instructions[0].address:#x}",
            loop.depth,
            _place(loop, code) or "",
            len(loop.instructions),
            *(loop.kinds[kind] for kind in shown),
            ", ".join(loop.waits),
        ]
        for loop in loops
    ]
    print_table(columns, rows)


def _json(loop: MachineLoop, code: _Code) -> dict[str, object]:
    return {
        "function": loop.function,
        "address": loop.instructions[0].address,
        "depth": loop.depth,
        "innermost": loop.innermost,
        "from": _place(loop, code),
        "instructions": len(loop.instructions),
        "tensor": loop.tensor,
        "kinds": dict(sorted(loop.kinds.items())),
        "opcodes": dict(sorted(loop.counts.items())),
        "waits": list(loop.waits),
    }
