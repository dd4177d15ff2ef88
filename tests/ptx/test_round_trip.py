"""Text -> tree -> text: the same tree, the same tokens, the same machine code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import cast

import pytest

from fragir.ptx import expand_section, parse, rename, transform, walk, write
from fragir.ptx.tree import (
    Binary,
    BranchTargets,
    Comment,
    Declaration,
    Float,
    Function,
    Instruction,
    Label,
    Loc,
    Module,
    Name,
    Node,
    Section,
    SectionName,
    Source,
    Statement,
    String,
    Unary,
    Version,
)
from fragir.ptx.visit import NODE_FIELDS

MachineCode = Callable[[str], dict[str, bytes]]

# PTX's tokens, written down apart from the grammar. A word keeps its dots: `ld.param`, `%tid.x`.
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\#[^\n]*|"[^"\n]*"|[\w$%]*(?:\.[\w$]+(?:::\w+)*)+|[\w$%]+|\S""",
    re.DOTALL,
)


def tokens(text: str) -> list[str]:
    found = [t for t in TOKENS.findall(text) if not t.startswith(("//", "/*", "#"))]
    # `add .s32` and `add.s32`, `.ptr .global` and `.ptr.global` are the same tokens
    return [part for token in found for part in re.findall(r"\.?[^.]+|\.", token)]


def comments(text: str) -> list[str]:
    return [t for t in TOKENS.findall(text) if t.startswith(("//", "/*", "#"))]


def test_the_written_text_reads_as_the_same_tree(text: str) -> None:
    module = parse(text)
    assert parse(write(module)) == module


def test_the_tokens_are_the_same(text: str) -> None:
    written = write(parse(text))
    assert tokens(written) == tokens(text)
    assert sorted(comments(written)) == sorted(comments(text))


SPELLINGS = [
    (".global.align 8.b32 a;", ".global .align 8 .b32 a;"),
    (
        ".global .attribute(.managed) .align 8 .b32 a;",
        ".global .align 8 .attribute(.managed) .b32 a;",
    ),
    (".entry k(.param .u64 .ptr.global a) { }", ".entry k(.param .u64 .ptr .global a) { }"),
    (".func f() { add .u32 a, b, c; }", ".func f() { add.u32 a, b, c; }"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS, ids=[x for x, _ in SPELLINGS])
def test_spellings_of_one_thing(one: str, other: str) -> None:
    assert parse(one) == parse(other)


def test_the_writer_sees_only_the_tree(text: str) -> None:
    module = parse(text)
    assert write(Module(module.items)) == write(module)


# What a string in a node may be, by its field; in all other fields, a word.
WORD = r"[\w$%]+(::\w+)*"
STRINGS: dict[tuple[type, str], str] = {
    (String, "text"): r'"[^"\n]*"',
    (Comment, "text"): r"//[^\n]*|/\*.*?\*/|#[^\n]*",
    (Version, "text"): r"\d+\.\d+",
    (Float, "text"): r"0[fFdD][0-9a-fA-F]+|[0-9.]+([eE][+-]?[0-9]+)?",
    (Unary, "operator"): r"[-+!~]",
    (Binary, "operator"): r"[-+*/%&|^<>]|<<|>>|==|!=|<=|>=|&&|\|\|",
    (Section, "name"): r"\.[\w$.]+",
    (SectionName, "text"): r"\.[\w$.]+",
}


def test_no_node_holds_more_than_a_token(text: str) -> None:
    module = parse(text)
    items = [expand_section(x) if isinstance(x, Section) else x for x in module.items]
    seen = 0
    for node in walk(Module(tuple(items))):
        for field in fields(node):
            value: object = getattr(node, field.name)
            if isinstance(value, Source):  # of the module, which the writer does not look at
                continue
            each = cast(tuple[object, ...], value) if isinstance(value, tuple) else (value,)
            for one in each:
                if isinstance(one, str):
                    seen += 1
                    shape = STRINGS.get((type(node), field.name), WORD)
                    assert re.fullmatch(shape, one, re.DOTALL), (node, field.name)
                else:  # nothing else can hide text
                    assert one is None or type(one) in (bool, int, *NODE_FIELDS), (node, field)
    assert seen > 100


def test_the_machine_code_is_the_same(text: str, machine_code: MachineCode) -> None:
    expected = machine_code(text)
    assert expected
    assert any(expected.values())
    assert machine_code(write(parse(text))) == expected


def defined_registers(module: Module) -> tuple[set[str], set[str]]:
    """Names of registers that the module declares: whole ones, and stems of `%r<5>`."""
    whole: set[str] = set()
    stems: set[str] = set()
    for node in walk(module):
        if isinstance(node, Declaration) and node.space == "reg":
            for variable in node.variables:
                (whole if variable.count is None else stems).add(variable.name.text)
    return whole, stems


def renamed(module: Module) -> tuple[Module, int]:
    """Every register and label that the module defines, under another name; how many there are."""
    items = [expand_section(x) if isinstance(x, Section) else x for x in module.items]
    module = Module(tuple(items))
    labels = {node.name.text for node in walk(module) if isinstance(node, Label)}
    for node in walk(module):
        if isinstance(node, BranchTargets):
            labels |= {x.text for x, n in zip(node.labels, node.counts, strict=False) if n}
    # a label of a loop and a parameter may have the name of a register in another scope: they
    # are renamed with it, but for the functions and variables that the outside knows
    whole, stems = defined_registers(module)
    kept = {f.name.text for f in module.functions}
    kept |= {v.name.text for d in module.declarations for v in d.variables}
    changed: set[str] = set()

    def new_name(text: str) -> str:
        match = re.fullmatch(r"(.*?)(\d*)", text)
        assert match is not None
        numbered = any(text.startswith(s) and text[len(s) :].isdigit() for s in stems)
        if text in kept or not (numbered or text in labels | whole | stems):
            return text
        changed.add(text)
        return f"{'%' * text.startswith('%')}other_{match[1].lstrip('%')}_{match[2]}"

    return rename(module, new_name), len(changed)


def test_renaming_every_register_and_label(text: str, machine_code: MachineCode) -> None:
    module = parse(text)
    changed, count = renamed(module)
    assert count > 10
    whole, stems = defined_registers(changed)
    assert all(name.lstrip("%").startswith("other_") for name in whole | stems)
    labels = {node.name.text for node in walk(changed) if isinstance(node, Label)}
    assert all(name.startswith("other_") for name in labels)
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


@pytest.mark.parametrize(
    "head",
    [
        ".func f",
        ".func f()",
        ".func () f",
        ".func () f()",
        ".func (.param .b32 r) f",
        ".func (.param .b32 r) f()",
        ".entry k",
        ".entry k()",
    ],
)
def test_brackets_are_there_or_not(head: str) -> None:
    """`f` and `f()` mean the same, but are not the same text."""
    text = f".version 8.0\n.target sm_90\n.visible {head}\n{{\n\tret;\n}}\n"
    module = parse(text)
    assert parse(text, cache=False) == module
    assert tokens(write(module)) == tokens(text)
    other = head.removesuffix("()") if head.endswith("()") else head + "()"
    assert parse(text.replace(head, other)) != module


@pytest.mark.parametrize("returns", ["", "() ", "(.param .b32 _) "])
@pytest.mark.parametrize("parameters", ["", " ()", " (.param .b64 _)"])
def test_brackets_of_prototypes(returns: str, parameters: str) -> None:
    text = (
        f".version 8.0\n.target sm_90\n.entry k()\n{{\n"
        f"\tp: .callprototype {returns}_{parameters};\n\tret;\n}}\n"
    )
    module = parse(text)
    assert parse(text, cache=False) == module
    assert tokens(write(module)) == tokens(text)
