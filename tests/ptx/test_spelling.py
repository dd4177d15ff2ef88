from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragir.ptx import spelling
from fragir.ptx.tree import Float, Integer

CODES = {"f32": ("<f", "<I"), "f64": ("<d", "<Q"), "f16": ("<e", "<H")}


def bits_by_struct(value: float, type: str) -> int:
    kind, raw = CODES[type]
    try:
        return int(struct.unpack(raw, struct.pack(kind, value))[0])
    except OverflowError:
        infinite = math.copysign(math.inf, value)
        return int(struct.unpack(raw, struct.pack(kind, infinite))[0])


@given(st.floats(allow_nan=False), st.sampled_from(sorted(CODES)))
def test_float_bits(value: float, type: str) -> None:
    assert spelling.float_bits(value, type) == bits_by_struct(value, type)


@given(st.floats(allow_nan=False, width=32))
def test_float_literals_read_back(value: float) -> None:
    for type in ("f32", "f64"):
        literal = Float(spelling.float_literal(value, type))
        assert literal.value == value
        assert math.copysign(1, literal.value) == math.copysign(1, value)


def test_literals() -> None:
    assert spelling.float_literal(1.0, "f32") == "0f3F800000"
    assert spelling.float_literal(-2.0, "f64") == "0dC000000000000000"
    assert spelling.float_literal(1.0, "bf16") == "0x3F80"
    assert spelling.float_literal(math.nan, "f32") == "0f7FC00000"
    assert spelling.integer_literal(-1, "s32") == "-1"
    assert spelling.integer_literal(-1, "b32") == "0xFFFFFFFF"
    assert spelling.integer_literal(0xFFFFFFFF, "s32") == "-1"
    assert spelling.integer_literal(5, "u8") == "5"
    for value, type in ((256, "u8"), (-129, "s8"), (1, "f32")):
        with pytest.raises(ValueError, match=type):
            spelling.integer_literal(value, type)


@given(st.integers(-(2**63), 2**64 - 1))
def test_integer_literals_read_back(value: int) -> None:
    text = spelling.integer_literal(value, "b64")
    assert Integer(text).value == value % 2**64


@given(st.text(max_size=12))
def test_identifiers_are_legal(text: str) -> None:
    made = spelling.identifier(text)
    assert spelling.is_identifier(made)
    assert spelling.identifier(made) == made


def test_identifiers_are_readable() -> None:
    expected = {
        "gemm": "gemm",
        "my-kernel.2": "my_kernel_2",
        "2d": "_2d",
        "%r1": "%r1",
        "": "_anonymous",
    }
    assert {text: spelling.identifier(text) for text in expected} == expected


def test_operands() -> None:
    assert spelling.address("%rd1", 16) == "[%rd1+16]"
    assert spelling.address("%rd1", -16) == "[%rd1+-16]"
    assert spelling.tensor_address("%rd1", ["%r1", "%r2"]) == "[%rd1, {%r1, %r2}]"
    assert spelling.opcode("ld", "", "global", "u32") == "ld.global.u32"
    assert spelling.guard("%p1", negate=True) == "@!%p1"
