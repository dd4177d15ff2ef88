"""Bits of narrow floats and of scale types, and words that name what exists (PTX ISA 9.2)."""

from __future__ import annotations

from itertools import product

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.canonical import canonical
from fragir.isa.descriptors import instruction_descriptor
from fragir.isa.query import View


@pytest.mark.parametrize(
    ("element", "low", "high"), [("e2m1", 2, 5), ("e2m3", 0, 5), ("e3m2", 0, 5)]
)
def test_narrow_floats_in_a_byte(element: str, low: int, high: int) -> None:
    """Section 9.7.14.5: e2m1 has two bits of padding on both sides, those of six bits on top."""
    name = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{element}.{element}.f32"
    (first,) = View.of(isa.lookup(name), "a").holders((0, 0))
    (second,) = View.of(isa.lookup(name), "a").holders((0, 1))
    assert (first.register, first.low, first.high) == (0, low, high)
    assert (second.register, second.low, second.high) == (0, 8 + low, 8 + high)


def test_narrow_floats_mix_with_each_other_and_with_bytes() -> None:
    """Section 9.7.14.5, kind::f8f6f4: A and B are any of five types, each."""
    for a, b in product(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), repeat=2):
        name = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{a}.{b}.f32"
        assert (isa.lookup(name).types.a, isa.lookup(name).types.b) == (a, b)


@pytest.mark.parametrize(("scale", "bit"), [("ue8m0", 1), ("ue4m3", 0)])
def test_the_type_of_scales_is_bit_23(scale: str, bit: int) -> None:
    """Section 9.7.16.4.2, the instruction descriptor of kind::mxf4nvf4."""
    word = instruction_descriptor("mxf4nvf4", m=128, n=64, a="e2m1", scale=scale)
    assert word >> 23 & 1 == bit


def test_a_shape_that_does_not_exist_is_told_those_that_do() -> None:
    with pytest.raises(isa.UnknownInstruction) as error:
        isa.lookup("mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32")
    _, _, shapes = str(error.value).partition("does not exist with f32.f16.f16.f32, but ")
    assert {"m16n8k16", "m16n8k8"} <= set(shapes.partition(" (")[0].split(", "))


def test_k_beyond_the_swizzle_is_the_extent_that_is_named() -> None:
    narrow = canonical("bf16", "k", 128, 64, 64)
    with pytest.raises(FragirError, match="128 along k"):
        narrow.layout(64, 128)
