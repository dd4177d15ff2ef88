"""Fragments of wmma against the emulator's, which are written apart."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator.tensor_cores.arithmetic import target
from fragir.emulator.tensor_cores.wmma import build_wmma_access
from fragir.errors import FragirError
from fragir.isa.layout_texts import read_layout
from fragir.isa.wmma import SHAPES, wmma_fragment

CASES = [
    (operand, shape, element)
    for a, (shapes, results) in SHAPES.items()
    for shape in shapes
    for operand, types in (("a", (a,)), ("b", (a,)), ("c", results))
    for element in types
]


def mnemonic(operand: str, shape: str, element: str) -> str:
    order = "col" if operand == "b" else "row"
    return f"wmma.load.{operand}.sync.aligned.{order}.{shape}.{element}"


@pytest.mark.parametrize(("operand", "shape", "element"), CASES)
def test_fragments_are_the_emulators(operand: str, shape: str, element: str) -> None:
    """The addresses that wmma.load reads, for a matrix of its own extent."""
    name = mnemonic(operand, shape, element)
    found = wmma_fragment(name, operand)
    access = build_wmma_access(tuple(name.split(".")), target("sm_80"))
    assert access.repeats == found.copies
    points = found.layout.array()
    rows, cols = found.shape
    by_row = operand != "b"
    slow, fast = (points[..., 0], points[..., 1]) if by_row else (points[..., 1], points[..., 0])
    per = access.unit * 8 // access.bits
    assert per * len(access.slow) == found.layout.size("element")
    assert (np.repeat(access.slow, per, axis=0) == slow.T).all()
    within = np.arange(len(slow.T)) % per
    assert (np.repeat(access.fast, per, axis=0) + within[:, None] == fast.T).all()
    assert found.layout.is_bijection((rows, cols))


def test_products_name_their_operands() -> None:
    half = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16"
    assert [wmma_fragment(half, x).element for x in "dabc"] == ["f32", "f16", "f16", "f16"]
    narrow = "wmma.mma.sync.aligned.row.col.m32n8k16.s32.u8.s8.s32"
    assert [wmma_fragment(narrow, x).shape for x in "dabc"] == [(32, 8), (32, 16), (16, 8), (32, 8)]
    text = f"{narrow}:a"
    assert read_layout(text) == wmma_fragment(narrow, "a").layout


@pytest.mark.parametrize(
    ("name", "operand", "words"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f32.f32", "a", "no wmma of this shape"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "e", "has no operand 'e'"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32", "a", "no wmma.mma"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16", "b", "it has a"),
        ("wmma.nothing", "a", "is no wmma"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.bf16.bf16.f16", "d", "no wmma of this"),
    ],
)
def test_refusals(name: str, operand: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        wmma_fragment(name, operand)
