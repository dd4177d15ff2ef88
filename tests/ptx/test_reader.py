"""Single trips: what a text reads as, where its nodes are, and what is said of faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fragir.ptx import PtxSyntaxError, expand_section, parse, write
from fragir.ptx.tree import (
    Address,
    Binary,
    Block,
    Comment,
    Component,
    Declaration,
    Float,
    Guard,
    Instruction,
    Integer,
    Label,
    Name,
    Operand,
    Pair,
    Parens,
    Pointer,
    Section,
    SectionData,
    SectionName,
    Sink,
    Statement,
    Unary,
    Variable,
    Vector,
)

HEAD = (
    ".version 8.7\n.target sm_90a, debug\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
)


def body(text: str) -> tuple[Statement, ...]:
    block = parse(f"{HEAD}{text}\n}}\n").entries["k"].body
    assert block is not None
    return block.items


def operands(text: str) -> tuple[Operand, ...]:
    (statement,) = body(f"op {text};")
    assert isinstance(statement, Instruction)
    return statement.operands


R1, R2 = Name("%r1"), Name("%r2")

OPERANDS: list[tuple[str, Operand]] = [
    ("%r1", R1),
    ("_", Sink()),
    ("%tid.x", Component(Name("%tid"), "x")),
    ("10", Integer("10")),
    ("-10", Unary("-", Integer("10"))),
    ("0x1FU", Integer("0x1FU")),
    ("0f3F800000", Float("0f3F800000")),
    (".5", Float(".5")),
    ("1.5e-3", Float("1.5e-3")),
    ("!%r1", Unary("!", R1)),
    ("{%r1, _}", Vector((R1, Sink()))),
    ("(%r1, %r2)", Parens((R1, R2))),
    ("%r1|%r2", Pair(R1, R2)),
    ("_|%r2", Pair(Sink(), R2)),
    ("[%r1]", Address(R1)),
    ("[%r1+16]", Address(R1, Integer("16"))),
    ("[%r1+-16]", Address(R1, Unary("-", Integer("16")))),
    ("[%r1, {%r2, 0}]", Address(R1, None, (Vector((R2, Integer("0"))),))),
    (
        "1 + 2 * 3 - 4",
        Binary(
            "-",
            Binary("+", Integer("1"), Binary("*", Integer("2"), Integer("3"))),
            Integer("4"),
        ),
    ),
]


@pytest.mark.parametrize(("text", "expected"), OPERANDS, ids=[x for x, _ in OPERANDS])
def test_operand(text: str, expected: Operand) -> None:
    if not text.startswith("."):  # behind an opcode this is a modifier
        assert operands(f"{text}, %r2") == (expected, R2)
    assert operands(f"%r1, {text}") == (R1, expected)


def test_instruction() -> None:
    assert body("@!%p1 ld.global.L2::128B.u32 %r1, [%r2];") == (
        Instruction(
            Guard(Name("%p1"), True),
            ("ld", "global", "L2::128B", "u32"),
            (R1, Address(R2)),
        ),
    )


def test_blocks_have_scopes() -> None:
    assert body("L: { .reg .b32 %r<4>; } ret;") == (
        Label(Name("L")),
        Block((Declaration((), "reg", None, None, "b32", (Variable(Name("%r"), Integer("4")),)),)),
        Instruction(None, ("ret",), ()),
    )


def test_module() -> None:
    module = parse(HEAD + "ret; }")
    assert module.version == (8, 7)
    assert module.target == ("sm_90a", "debug")
    assert module.address_size == 64
    parameters = module.entries["k"].parameters
    assert parameters is not None
    (parameter,) = parameters
    assert (parameter.space, parameter.type) == ("param", "u64")


def test_pointer() -> None:
    module = parse(".entry k(.param .u64 .ptr .global .align 16 p) { }")
    parameters = module.functions[0].parameters
    assert parameters is not None
    assert parameters[0].pointer == Pointer("global", Integer("16"))


def test_values_of_literals() -> None:
    values = {"017": 15, "0x1F": 31, "0b101": 5, "12U": 12, "0": 0, "0xFFFFFFFFFFFFFFFF": 2**64 - 1}
    for text, value in values.items():
        assert Integer(text).value == value
    assert Integer("1U").unsigned
    assert not Integer("1").unsigned
    assert Integer("0xFFFFFFFFFFFFFFFF").unsigned
    assert (Float("0f3F800000").value, Float("0f3F800000").width) == (1.0, 32)
    assert (Float("0d4000000000000000").value, Float("1.5e1").value) == (2.0, 15.0)
    assert Float("1.0").bits == 0x3FF0000000000000


def test_comments_are_kept() -> None:
    text = "\t{ // first\n\t\tret; /* second */ // third\n\t\t// fourth\n\t} // fifth"
    block, last = body(text)
    assert isinstance(block, Block)
    assert block.items == (
        Comment("// first", True),
        Instruction(None, ("ret",), ()),
        Comment("/* second */", True),
        Comment("// third", True),
        Comment("// fourth"),
    )
    assert last == Comment("// fifth", True)
    assert text in write(parse(f"{HEAD}{text}\n}}\n"))


def test_a_comment_ends_no_statement_and_opens_no_block() -> None:
    (statement, comment) = body("add.s32 %r1, // } ;\n %r2, 1;")
    assert isinstance(statement, Instruction)
    assert len(statement.operands) == 3
    assert comment == Comment("// } ;", True)


def test_positions() -> None:
    module = parse(HEAD + "\tadd.s32 %r1, %r2, {%r3, 5};\n}")
    function = module.entries["k"]
    assert module.source is not None
    assert function.body is not None
    statement = function.body.items[0]
    assert isinstance(statement, Instruction)
    vector = statement.operands[2]
    assert isinstance(vector, Vector)
    place = module.source.place
    assert place(function.at) == (4, 1)
    assert place(function.body.at) == (5, 1)
    assert place(statement.at) == (6, 2)
    assert [place(x.at) for x in statement.operands] == [(6, 10), (6, 15), (6, 20)]
    assert [place(x.at) for x in vector.elements] == [(6, 21), (6, 26)]
    assert place(function.body.end) == (7, 1)
    assert module.source.line(6) == "\tadd.s32 %r1, %r2, {%r3, 5};"


def test_sections_are_text_until_asked() -> None:
    (section,) = parse(".section .debug_x { L: .b8 1, 2 // c }\n.b32 .debug_y+4 }").items
    assert isinstance(section, Section)
    assert section.body == " L: .b8 1, 2 // c }\n.b32 .debug_y+4 "
    assert expand_section(section).body == (
        Label(Name("L")),
        SectionData("b8", (Integer("1"), Integer("2"))),
        Comment("// c }", True),
        SectionData("b32", (SectionName(".debug_y", Integer("4")),)),
    )


ERRORS = [
    ("mov.u32 %r1 %r2;", "6:13", "unexpected '%r2', expected ", 13),
    ("mov.u32 %r1, ;", "6:14", "unexpected ';', expected an operand", 14),
    ("mov.u32 %r1, 089;", "6:14", "unexpected '089', expected an operand", 14),
    ("mov.f32 %f1, 0f12;", "6:14", "unexpected '0f12', expected an operand", 14),
    ("mov.u64 %r1, 0x12345678123456789;", "6:14", "an integer literal of more than 64 bits", 14),
    ("ld.b32 %r1, [%r2;", "6:17", "unexpected ';', expected '+', ',' or ']'", 17),
    (";", "6:1", "unexpected ';', expected a statement", 1),
    (".reg .x32 a;", "6:6", "unexpected '.x32', expected", 6),
    ("/* no end", "6:1", "a comment without an end", 1),
    ("\x00", "6:1", "unexpected '\\x00', expected a statement", 1),
]


@pytest.mark.parametrize(("text", "place", "message", "caret"), ERRORS, ids=[x[0] for x in ERRORS])
def test_errors(text: str, place: str, message: str, caret: int) -> None:
    whole = f"{HEAD}{text}\n}}\n"
    with pytest.raises(PtxSyntaxError) as caught:
        parse(whole, "kernel.ptx")
    shown = str(caught.value).split("\n")
    assert shown[0].startswith(f"kernel.ptx:{place}: {message}")
    assert len(shown) == 3
    assert shown[2] == "  " + " " * (caret - 1) + "^"
    with pytest.raises(PtxSyntaxError):
        parse(whole, cache=False)


def test_the_end_of_the_text() -> None:
    with pytest.raises(PtxSyntaxError, match="unexpected the end of the text, expected"):
        parse(HEAD + "ret;")


def test_lark_is_loaded_by_unknown_shapes_only() -> None:
    code = (
        "import sys, fragir.ptx\nfrom fragir.ptx import tree, spelling, walk, write\n"
        "assert 'lark' not in sys.modules and 'numpy' not in sys.modules\n"
        "fragir.ptx.parse('.version 8.7')\nassert 'lark' not in sys.modules\n"
        "fragir.ptx.parse('.target a, b, c, d, e, f')\nassert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    import lark

    from fragir.ptx._lark import grammar

    level = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    try:
        grammar.cache_clear()
        with caplog.at_level(logging.DEBUG, "lark"):
            grammar()
    finally:
        lark.logger.setLevel(level)
    assert not [r for r in caplog.records if "conflict" in r.getMessage().lower()]
