"""Products with words from Python: scales, sparsity, saturation; the IR, and what it computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import fragir
from fragir import b1, e2m1x2, e4m3, f16, f32, f64, s8, s32, u4, ue8m0
from fragir.builder import KernelBuilder
from fragir.compiler import parse
from fragir.errors import FragirError

RNG = np.random.default_rng(0)


def scaled() -> KernelBuilder:
    with fragir.kernel("scaled", target="sm_120a") as k:
        a, b = k.memory("a", e4m3, (16, 32)), k.memory("b", e4m3, (8, 32))
        x, y = k.memory("x", ue8m0, (16, 1)), k.memory("y", ue8m0, (8, 1))
        d = k.memory("d", f32, (16, 8))
        total = k.mma(
            k.load(a, (0, 0), shape=(16, 32)),
            k.load(b, (0, 0), shape=(32, 8), transposed=True),
            k.fill(0, (16, 8), f32),
            scales=(
                k.load(x, (0, 0), shape=(16, 1)),
                k.load(y, (0, 0), shape=(1, 8), transposed=True),
            ),
        )
        k.store(total, d, (0, 0))
    return k


def sparse() -> KernelBuilder:
    with fragir.kernel("sparse", target="sm_80") as k:
        a, e = k.memory("a", s8, (16, 32)), k.memory("e", u4, (16, 16))
        b, c = k.memory("b", s8, (8, 64)), k.memory("c", s32, (16, 8))
        total = k.mma_sparse(
            k.load(a, (0, 0), shape=(16, 32)),
            k.load(b, (0, 0), shape=(64, 8), transposed=True),
            k.load(c, (0, 0), shape=(16, 8)),
            k.load(e, (0, 0), shape=(16, 16)),
            satfinite=True,
            using="m16n8k64.s8",
        )
        k.store(total, c, (0, 0))
    return k


def bits(bitop: str) -> KernelBuilder:
    with fragir.kernel("bits", target="sm_80") as k:
        a, b = k.memory("a", b1, (16, 256)), k.memory("b", b1, (8, 256))
        d = k.memory("d", s32, (16, 8))
        total = k.mma(
            k.load(a, (0, 0), shape=(16, 256)),
            k.load(b, (0, 0), shape=(256, 8), transposed=True),
            k.fill(0, (16, 8), s32),
            bitop=bitop,
        )
        k.store(total, d, (0, 0))
    return k


def negated_sparse_wgmma() -> KernelBuilder:
    with fragir.kernel("group", warpgroups=(1, 1), target="sm_90a") as k:
        a, e = k.memory("a", f16, (64, 32)), k.memory("e", u4, (64, 16))
        b, c = k.memory("b", f16, (16, 64)), k.memory("c", f32, (64, 16))
        right = k.shared((16, 64), f16, swizzle=128)
        k.copy(b, (0, 0), right)
        k.barrier()
        total = k.wgmma(
            k.load(a, (0, 0), shape=(64, 32)),
            right,
            k.load(c, (0, 0), shape=(64, 16)),
            transposed_b=True,
            negated_b=True,
            metadata=k.load(e, (0, 0), shape=(64, 16)),
        )
        k.store(total, c, (0, 0))
    return k


LINES: list[tuple[Callable[[], KernelBuilder], str]] = [
    (
        scaled,
        "frag.mma %, %, % scaled %, % : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, "
        "!frag.tile<16x8xf32>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> "
        "!frag.tile<16x8xf32>",
    ),
    (
        sparse,
        'frag.mma_sparse %, %, %, % satfinite using "m16n8k64.s8" : !frag.tile<16x32xi8>, '
        "!frag.tile<64x8xi8>, !frag.tile<16x8xi32>, !frag.tile<16x16xui4> -> "
        "!frag.tile<16x8xi32>",
    ),
    (
        lambda: bits("xor"),
        'frag.mma %, %, % bitop "xor" : !frag.tile<16x256xui1>, !frag.tile<256x8xui1>, '
        "!frag.tile<16x8xi32> -> !frag.tile<16x8xi32>",
    ),
    (
        negated_sparse_wgmma,
        "frag.wgmma %, % transposed negated, % sparse % : !frag.tile<64x32xf16>, "
        "memref<16x64xf16, #frag.shared<swizzle = 128>>, !frag.tile<64x16xf32>, "
        "!frag.tile<64x16xui4>",
    ),
]


@pytest.mark.parametrize(("build", "line"), LINES, ids=[line.split(" ")[0] for _, line in LINES])
def test_the_operation(build: Callable[[], KernelBuilder], line: str) -> None:
    """The builder's operation is the one written here, apart from the names of values."""
    text = str(build().module)
    found = [re.sub(r"%\w+", "%", row).strip() for row in text.splitlines()]
    assert [row.split(" = ", 1)[1] for row in found if f"= {line.split(' ')[0]} " in row] == [line]
    assert isinstance(parse(text), ModuleOp)


def test_scaled_product() -> None:
    a = RNG.integers(-4, 5, (16, 32)).astype(ml_dtypes.float8_e4m3fn)
    b = RNG.integers(-4, 5, (8, 32)).astype(ml_dtypes.float8_e4m3fn)
    x, y = RNG.integers(120, 134, (16, 1)), RNG.integers(120, 134, (8, 1))
    d = np.zeros((16, 8), np.float32)
    arguments: list[Any] = [a, b, x.astype(np.uint8), y.astype(np.uint8), d]
    scaled().compile()(*arguments, on="emulator")
    wide = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.array_equal(d, wide * 2.0 ** (x - 127) * 2.0 ** (y.T - 127))


def test_sparse_product_saturates() -> None:
    """Nibble 1001: columns 1 and 2 of every four (PTX ISA 9.2, section 9.7.14.6.1)."""
    a = RNG.integers(-128, 128, (16, 32)).astype(np.int8)
    b = RNG.integers(-128, 128, (8, 64)).astype(np.int8)
    c = np.where(np.arange(128).reshape(16, 8) % 2, 2**31 - 1, -(2**31)).astype(np.int32)
    full = np.zeros((16, 16, 4), np.int64)
    full[:, :, 1:3] = a.reshape(16, 16, 2)
    exact = full.reshape(16, 64) @ b.T.astype(np.int64) + c
    sparse().compile()(a, np.full((16, 8), 0x99, np.uint8), b, c, on="emulator")
    assert np.array_equal(c, np.clip(exact, -(2**31), 2**31 - 1))
    assert (exact != c).any()


@pytest.mark.parametrize(("bitop", "operate"), [("xor", np.bitwise_xor), ("and", np.bitwise_and)])
def test_bits(bitop: str, operate: Callable[..., Any]) -> None:
    a = RNG.integers(0, 256, (16, 32)).astype(np.uint8)
    b = RNG.integers(0, 256, (8, 32)).astype(np.uint8)
    d = np.zeros((16, 8), np.int32)
    bits(bitop).compile()(a, b, d, on="emulator")
    assert np.array_equal(d, np.bitwise_count(operate(a[:, None], b[None])).sum(2))


def test_negated_sparse_wgmma() -> None:
    """Nibble 0100: columns 0 and 1 of every four."""
    a = RNG.integers(-4, 5, (64, 32)).astype(np.float16)
    b = RNG.integers(-4, 5, (16, 64)).astype(np.float16)
    c = RNG.integers(-4, 5, (64, 16)).astype(np.float32)
    full = np.zeros((64, 16, 4))
    full[:, :, :2] = a.reshape(64, 16, 2)
    exact = c - full.reshape(64, 64) @ b.T.astype(np.float64)
    metadata = np.full((64, 8), 0x44, np.uint8)
    negated_sparse_wgmma().compile()(a, metadata, b, c, on="emulator")
    assert np.array_equal(c, exact)


def test_rounding_of_doubles() -> None:
    """0.1 + 0.2 differs by the way it is rounded."""
    found: list[float] = []
    for rounding in ("rm", "rp"):
        with fragir.kernel("rounded", target="sm_90") as k:
            a, b = k.memory("a", f64, (16, 4)), k.memory("b", f64, (8, 4))
            d = k.memory("d", f64, (16, 8))
            x = k.load(a, (0, 0), shape=(16, 4))
            y = k.load(b, (0, 0), shape=(4, 8), transposed=True)
            k.store(k.mma(x, y, k.fill(0, (16, 8), f64), rounding=rounding), d, (0, 0))
        left, right = np.zeros((16, 4)), np.ones((8, 4))
        left[:, :2] = 0.1, 0.2
        out = np.zeros((16, 8))
        k.compile()(left, right, out, on="emulator")
        found.append(float(out[3, 4]))
    assert found == [0.30000000000000004 - 2.0**-54, 0.30000000000000004]


def packed_in_the_wrong_place() -> None:
    with fragir.kernel("wrong", target="sm_120a") as k:
        a, b = k.memory("a", e2m1x2, (16, 64)), k.memory("b", e2m1x2, (8, 64))
        x = k.load(a, (0, 0), shape=(16, 64))
        y = k.load(b, (0, 0), shape=(64, 8), transposed=True)
        k.mma(x, y, k.fill(0, (16, 8), f32))


def sparse_of_another_size() -> None:
    with fragir.kernel("wrong") as k:
        a, b = k.memory("a", f16, (16, 16)), k.memory("b", f16, (8, 16))
        e = k.memory("e", u4, (16, 4))
        x = k.load(a, (0, 0), shape=(16, 16))
        y = k.load(b, (0, 0), shape=(16, 8), transposed=True)
        metadata = k.load(e, (0, 0), shape=(16, 4))
        k.mma_sparse(x, y, k.fill(0, (16, 8), f32), metadata)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (packed_in_the_wrong_place, "scaled"),
        (sparse_of_another_size, r"a is M x K/2"),
    ],
)
def test_errors_have_the_line(build: Callable[[], None], words: str) -> None:
    with pytest.raises(FragirError, match=words) as caught:
        build()
    assert caught.value.file == __file__
