"""Products of batches: `k.mma` of tiles whose first dimension counts matrices."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.ir import Attribute

import fragir
from fragir import bf16, f16, f32, s8, s32, tf32
from fragir.errors import FragirError
from tests.properties.judge import judge

TYPES = ((f16, f32), (bf16, f32), (s8, s32), (tf32, f32))


def kernel(batch: int, element: Attribute, sums: Attribute, warps: tuple[int, int]) -> str:
    """A product over two steps of K in a loop, and a map of the sums."""
    with fragir.kernel("batches", warps=warps) as k:
        a = k.memory("a", element, (batch, 32, 64))
        b = k.memory("b", element, (batch, 64, 16))
        d = k.memory("d", sums, (batch, 32, 16))
        with k.loop(0, 64, 32, acc=k.fill(0, (batch, 32, 16), sums)) as loop:
            x = k.load(a, (0, 0, loop.index), shape=(batch, 32, 32))
            y = k.load(b, (0, loop.index, 0), shape=(batch, 32, 16))
            loop.acc = k.mma(x, y, loop.acc)
        k.store(loop.acc + loop.acc, d, (0, 0, 0))
    return k.mlir


@pytest.mark.parametrize(
    ("batch", "element", "sums", "warps"),
    [
        (batch, *types, warps)
        for batch, types, warps in zip(
            (1, 2, 3, 2), TYPES, ((1, 1), (2, 1), (1, 2), (2, 2)), strict=True
        )
    ],
    ids=str,
)
def test_batches_against_the_reference(
    batch: int, element: Attribute, sums: Attribute, warps: tuple[int, int]
) -> None:
    judge(kernel(batch, element, sums, warps), "sm_80")


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_nothing_is_moved(batch: int) -> None:
    ptx = fragir.compile(kernel(batch, f16, f32, (2, 1)), target="sm_80").ptx
    assert ptx.count("mma.sync") == 4 * batch
    assert not any(word in ptx for word in ("shfl", "st.shared", "bar.sync"))


def test_two_products_in_a_row() -> None:
    """The sums of the first are the next one's A, batch by batch, where they are."""
    with fragir.kernel("attention", warps=(2, 1)) as k:
        q, values = k.memory("q", f16, (2, 32, 16)), k.memory("v", f16, (2, 16, 8))
        keys, out = k.memory("k", f16, (2, 16, 16)), k.memory("o", f32, (2, 32, 8))
        x = k.load(q, (0, 0, 0), shape=(2, 32, 16))
        y = k.load(keys, (0, 0, 0), shape=(2, 16, 16))
        p = k.mma(x, y).cast(f16)
        k.store(k.mma(p, k.load(values, (0, 0, 0), shape=(2, 16, 8))), out, (0, 0, 0))
    assert k.mlir.count("frag.mma_batched") == 2
    kernel = judge(k.mlir, "sm_80")
    assert not any(word in kernel.ptx for word in ("shfl", "st.shared", "bar.sync"))


def test_a_result_in_a_layout_of_its_own() -> None:
    """And `explain_layouts`, which places a copy."""
    tile, placed = (
        "!frag.tile<2x16x8xf32>",
        '"lane [4:(0,4,0) 8:(0,0,1)] element [4:(0,1,0) 2:(1,0,0)]"',
    )
    program = f"""
    func.func @k(%a: memref<2x16x16xf16>, %b: memref<2x16x8xf16>, %d: memref<2x16x8xf32>) {{
      %x = frag.load %a[0, 0, 0] : memref<2x16x16xf16> -> !frag.tile<2x16x16xf16>
      %y = frag.load %b[0, 0, 0] : memref<2x16x8xf16> -> !frag.tile<2x16x8xf16>
      %z = frag.load %d[0, 0, 0] : memref<2x16x8xf32> -> {tile}
      %r = frag.mma_batched %x, %y, %z
        : !frag.tile<2x16x16xf16>, !frag.tile<2x16x8xf16>, {tile}
        -> !frag.tile<2x16x8xf32, #frag.layout<{placed}>>
      frag.store %r, %d[0, 0, 0]
        : !frag.tile<2x16x8xf32, #frag.layout<{placed}>>, memref<2x16x8xf32>
      func.return
    }}"""
    kernel = judge(program, "sm_80")
    assert kernel.ptx.count("mma.sync") == 2
    assert len(fragir.explain_layouts(program).conversions) == 1


def test_from_zero() -> None:
    with fragir.kernel("batches") as k:
        x = k.load(k.memory("a", f16, (3, 16, 16)), (0, 0, 0), shape=(3, 16, 16))
        y = k.load(k.memory("b", f16, (3, 16, 8)), (0, 0, 0), shape=(3, 16, 8))
        total = k.mma(x, y)
        assert (total.shape, total.element) == ((3, 16, 8), f32)


def test_numpy_agrees() -> None:
    rng = np.random.default_rng(0)
    left, right = (
        rng.integers(-3, 4, shape).astype(np.float16) for shape in ((3, 32, 64), (3, 64, 16))
    )
    out = np.empty((3, 32, 16), np.float32)
    fragir.compile(kernel(3, f16, f32, (2, 1)), target="sm_80")(left, right, out, on="emulator")
    assert (out == 2 * (left.astype(np.float32) @ right.astype(np.float32))).all()


def product(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    with fragir.kernel("batches") as k:
        x = k.load(k.memory("a", f16, first), [0] * len(first), shape=first)
        k.mma(x, k.load(k.memory("b", f16, second), [0] * len(second), shape=second))


def test_batches_of_different_sizes() -> None:
    with pytest.raises(FragirError, match="3x16x16 and 2x16x8 are no batch"):
        product((3, 16, 16), (2, 16, 8))


def test_matrices_that_do_not_fit() -> None:
    with pytest.raises(FragirError, match="mma: 2x16x16 times 2x8x8 plus"):
        product((2, 16, 16), (2, 8, 8))


def test_a_batch_times_a_matrix() -> None:
    with pytest.raises(FragirError, match="mma: 2x16x16 and 16x8 are no batch"):
        product((2, 16, 16), (16, 8))
