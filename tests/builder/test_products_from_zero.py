"""Products without c: `k.mma(a, b)`, `k.wgmma(a, b)`."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Attribute

import fragir
from fragir import bf16, f16, f32, f64, s8, s32
from fragir.errors import FragirError


@pytest.mark.parametrize(
    ("element", "sums"), [(f16, f32), (bf16, f32), (s8, s32), (f64, f64)], ids=str
)
def test_mma_sums_in_the_widest_type(element: Attribute, sums: Attribute) -> None:
    with fragir.kernel("product") as k:
        a, b = k.memory("a", element, (32, 32)), k.memory("b", element, (32, 16))
        x, y = k.load(a, (0, 0), shape=(32, 32)), k.load(b, (0, 0), shape=(32, 16))
        total = k.mma(x, y)
        assert (total.shape, total.element) == ((32, 16), sums)
        assert k.mma(x, y, result=sums).element == sums


def test_mma_from_zero() -> None:
    with fragir.kernel("product") as k:
        a, b = k.memory("a", f16, (32, 16)), k.memory("b", f16, (16, 8))
        c = k.memory("c", f32, (32, 8))
        x, y = k.load(a, (0, 0), shape=(32, 16)), k.load(b, (0, 0), shape=(16, 8))
        k.store(k.mma(x, y), c, (0, 0))
    rng = np.random.default_rng(0)
    left, right = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((32, 16), (16, 8)))
    out = np.empty((32, 8), np.float32)
    k.compile()(left, right, out, on="emulator")
    assert (out == left.astype(np.float32) @ right.astype(np.float32)).all()


def product(other: Attribute, rows: int) -> None:
    with fragir.kernel("product") as k:
        x = k.load(k.memory("a", f16, (32, 16)), (0, 0), shape=(32, 16))
        k.mma(x, k.load(k.memory("b", other, (rows, 16)), (0, 0), shape=(rows, 16)))


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(FragirError, match="mma: 32x16 times 32x16 plus 32x16"):
        product(f16, 32)


def test_types_that_nothing_multiplies() -> None:
    with pytest.raises(FragirError, match="no instruction multiplies f16 by s8"):
        product(s8, 16)


@pytest.mark.parametrize("turned", [False, True])
def test_wgmma_from_zero(turned: bool) -> None:
    with fragir.kernel("product", warpgroups=(1, 1), target="sm_90a") as k:
        a = k.shared((64, 128) if turned else (128, 64), f16, swizzle=128)
        b = k.shared((32, 64) if turned else (64, 32), f16, swizzle=64 if not turned else 128)
        total = k.wgmma(a, b, transposed_a=turned, transposed_b=turned)
        assert (total.shape, total.element) == ((128, 32), f32)
