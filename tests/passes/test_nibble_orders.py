"""Elements of four bits that a lane holds in another order than memory: loaded, cast, as they are.

The other judge is numpy. Layouts are random: digits of lanes, warps and elements anywhere, so that
what shares a register need not share a byte, along rows and along columns of memory.
"""

from __future__ import annotations

import random
import re
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir import bf16, f16, f32, s4, s8, s32, tf32, u4
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout import transposed as transposed_layout

SHAPE = (16, 64)
TYPES: dict[str, tuple[Any, Any]] = {
    "f16": (f16, np.float16),
    "bf16": (bf16, ml_dtypes.bfloat16),
    "f32": (f32, np.float32),
    "tf32": (tf32, np.float32),
    "s8": (s8, np.int8),
    "s32": (s32, np.int32),
}


def some_layout(seed: int, along: int) -> Layout:
    """Bits of the tile's places over 16 elements, 32 lanes, 2 warps; the first two neighbours of
    memory are a lane's, in any place of its fragment."""
    draw = random.Random(seed)
    bits = [(1 << i, 0) for i in range(4)] + [(0, 1 << i) for i in range(6)]
    first = (1, 0) if along == 0 else (0, 1)
    bits.remove(first)
    draw.shuffle(bits)
    element = [first, *bits[:3]]
    draw.shuffle(element)
    axes = {"warp": bits[3:4], "lane": bits[4:], "element": element}
    modes = {name: " ".join(f"2:({r},{c})" for r, c in held) for name, held in axes.items()}
    return Layout.parse(" ".join(f"{name} [{text}]" for name, text in modes.items()))


def nibbles(seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (SHAPE[0], SHAPE[1] // 2)).astype(np.uint8)


def values(packed: npt.NDArray[np.uint8], signed: bool) -> npt.NDArray[np.int64]:
    both = np.stack([packed & 15, packed >> 4], -1).reshape(packed.shape[0], -1).astype(np.int64)
    return (both ^ 8) - 8 if signed else both


@pytest.mark.parametrize(
    ("signed", "transposed", "seed"),
    [(True, False, 0), (False, True, 1), (True, True, 2), (False, False, 3)],
)
def test_casts_of_elements_in_any_order(signed: bool, transposed: bool, seed: int) -> None:
    shape = SHAPE[::-1] if transposed else SHAPE
    layout = some_layout(seed, 1)
    if transposed:
        layout = transposed_layout(layout)
    with fragir.kernel("k", warps=(1, 2)) as k:
        w = k.memory("w", s4 if signed else u4, SHAPE)
        found = [k.memory(name, type_, shape) for name, (type_, _) in TYPES.items()]
        tile = k.load(w, (0, 0), shape=shape, transposed=transposed, layout=layout)
        for memory in found:
            k.store(tile.cast(memory.element), memory, (0, 0))
    built = k.compile()
    assert built.assembled.warnings == []
    packed = nibbles(seed)
    arrays = [np.zeros(shape, dtype) for _, dtype in TYPES.values()]
    report = built(packed, *arrays, on="emulator", check=True)
    assert not [finding for finding in report.findings if finding.severity == "error"]
    wanted = values(packed, signed)
    for name, array in zip(TYPES, arrays, strict=True):
        same = array.astype(np.int64) == (wanted.T if transposed else wanted)
        assert same.all(), name


def test_sizes_of_an_array_without_rows() -> None:
    """Its strides say nothing of where elements share a byte."""
    with fragir.kernel("k") as k:
        w = k.memory("w", u4, ("m", "n"))
        c = k.memory("c", f16, ("m", "n"))
        k.divisible(n=32)
        k.grid("m / 16")
        at = (k.block_id("x") * 16, 0)
        tile = k.load(w, at, shape=(16, 32), masked=True)
        k.store(tile.cast(f16), c, at, masked=True)
    bytes_ = np.lib.stride_tricks.as_strided(np.zeros(16, np.uint8), (0, 16), (1, 1))
    assert k.compile().sizes([bytes_[:, ::1], np.zeros((0, 32), np.float16)]) == {"m": 0, "n": 32}


def test_a_given_layout_is_that_of_what_is_computed_with_it() -> None:
    """Other tiles of an expression are had in it, here in the columns' order of a product."""
    order = fragir.fragment("m16n8k16.f16", "b", n="8:4 4:1")
    with fragir.kernel("k") as k:
        w = k.memory("w", s4, (16, 32))
        below = k.memory("below", f16, (32,))
        c = k.memory("c", f16, (16, 32))
        tile = k.load(w, (0, 0), shape=(16, 32), layout=order).cast(f16)
        less = k.load(below, (0,), shape=(32,)).broadcast(0, 16)
        k.store(less - tile, c, (0, 0))
    packed = nibbles(5)[:, :16]
    less_of, found = np.arange(32).astype(np.float16), np.zeros((16, 32), np.float16)
    k.compile()(np.ascontiguousarray(packed), less_of, found, on="emulator")
    assert (found == less_of - values(packed, signed=True)).all()


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"k": "2:1 4:4"}, "does not name every k of its extent once"),
        ({"k": "4"}, "k = '4'"),
        ({"m": "8:1"}, "operand b has no dimension m"),
    ],
)
def test_orders_of_fragments(words: dict[str, str], error: str) -> None:
    with pytest.raises(FragirError, match=re.escape(error)):
        fragir.fragment("m16n8k16.f16", "b", **words)  # pyright: ignore[reportArgumentType]
