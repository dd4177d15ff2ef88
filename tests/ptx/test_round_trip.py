"""Text -> tree -> text: the same tree, the same tokens, the same machine code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fragir.ptx import expand_section, parse, rename, transform, walk, write
from fragir.ptx.tree import (
    Function,
    Instruction,
    Label,
    Loc,
    Module,
    Name,
    Node,
    Section,
    Statement,
)

MachineCode = Callable[[str], dict[str, bytes]]

# PTX's tokens, written down apart from the grammar. A word keeps its dots: `ld.param`, `%tid.x`.
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"[^"\n]*"|[\w$%]*(?:\.[\w$]+(?:::\w+)*)+|[\w$%]+|\S""", re.DOTALL
)


def tokens(text: str) -> list[str]:
    found = [t for t in TOKENS.findall(text) if not t.startswith(("//", "/*"))]
    # `add .s32` and `add.s32`, `.ptr .global` and `.ptr.global` are the same tokens
    return [part for token in found for part in re.findall(r"\.?[^.]+|\.", token)]


def comments(text: str) -> list[str]:
    return [t for t in TOKENS.findall(text) if t.startswith(("//", "/*"))]


def test_the_written_text_reads_as_the_same_tree(text: str) -> None:
    module = parse(text)
    assert parse(write(module)) == module


def test_the_tokens_are_the_same(text: str) -> None:
    written = write(parse(text))
    assert tokens(written) == tokens(text)
    assert sorted(comments(written)) == sorted(comments(text))


def test_the_writer_sees_only_the_tree(text: str) -> None:
    module = parse(text)
    assert write(Module(module.items)) == write(module)


def test_no_node_holds_more_than_a_token(text: str) -> None:
    for node in walk(parse(text)):
        if isinstance(node, Name):
            assert re.fullmatch(r"[\w$%]+", node.text)
        elif isinstance(node, Instruction):
            assert all(re.fullmatch(r"[\w:]+", word) for word in node.opcode)


def test_the_machine_code_is_the_same(text: str, machine_code: MachineCode) -> None:
    expected = machine_code(text)
    assert expected
    assert any(expected.values())
    assert machine_code(write(parse(text))) == expected


def renamed(module: Module) -> Module:
    """Every register and label that the module defines, under another name."""
    items = [expand_section(x) if isinstance(x, Section) else x for x in module.items]
    module = Module(tuple(items))
    labels = {node.name.text for node in walk(module) if isinstance(node, Label)}

    def new_name(text: str) -> str:
        if text in labels:
            return f"$other_{text.lstrip('$%')}"
        match = re.fullmatch(r"%(r|rd|f|fd|p|h|rs|SP|SPL|rz)(\d*)", text)
        return f"%other_{match[1]}_{match[2]}" if match else text

    return rename(module, new_name)


def test_renaming_every_register_and_label(text: str, machine_code: MachineCode) -> None:
    module = parse(text)
    changed = renamed(module)
    assert parse(write(changed)) != module
    assert "%r1," not in write(changed)
    again = parse(write(changed))
    assert Module(
        tuple(expand_section(x) if isinstance(x, Section) else x for x in again.items)
    ) == (changed)
    assert machine_code(write(changed)) == machine_code(text)


def statements(module: Module) -> list[Instruction | Label | Loc]:
    return [n for n in walk(module) if isinstance(n, Instruction | Label | Loc)]


def test_deleting_a_statement_changes_only_that(text: str) -> None:
    module = parse(text)
    before = write(module).splitlines()
    found = statements(module)
    for victim in found[:: max(1, len(found) // 7)]:

        def drop(node: Node, victim: Instruction | Label | Loc = victim) -> Node | None:
            same = isinstance(node, type(victim)) and node.at == victim.at
            return None if same else node

        after = write(transform(module, drop)).splitlines()
        gone = next(i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
        size = len(before) - len(after)
        assert size in (0, 1)  # 0: a comment that trailed it stays, behind the line before
        if size == 1:
            comment = before[gone].partition("//")[2]
            assert not comment
            assert before[:gone] + before[gone + 1 :] == after


def test_inserting_a_statement_changes_only_that() -> None:
    module = parse(
        ".version 8.0\n.target sm_80\n.entry k()\n{\n\t.reg .b32 a;\nL:\n\tret; // end\n}"
    )
    made = Instruction(None, ("mov", "b32"), (Name("a"), Name("a")))

    def insert(node: Node) -> Node:
        if not isinstance(node, Function) or node.body is None:
            return node
        items: tuple[Statement, ...] = (*node.body.items[:2], made, *node.body.items[2:])
        return replace(node, body=replace(node.body, items=items))

    before, after = write(module).splitlines(), write(transform(module, insert)).splitlines()
    index = after.index("\tmov.b32 a, a;")
    assert after[:index] + after[index + 1 :] == before


@pytest.mark.parametrize(
    ("target", "options"),
    [("sm_80", ()), ("sm_80", ("-lineinfo",)), ("sm_90a", ("-G",)), ("sm_100a", ())],
    ids=str,
)
@pytest.mark.parametrize("name", ["basic", "calls", "tensor"])
def test_what_nvcc_makes(
    name: str, options: tuple[str, ...], target: str, machine_code: MachineCode
) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    text = compile_kernel(name, target, options)
    module = parse(text)
    assert module == parse(text, cache=False)
    written = write(module)
    assert parse(written) == module
    assert tokens(written) == tokens(text)
    assert machine_code(written) == machine_code(text)


def compile_kernel(name: str, target: str, options: tuple[str, ...]) -> str:
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "make_data", Path(__file__).with_name("make_data.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.compile_kernel(name, target, options)
