"""y = the convolution of images x with filters f, as a product that never lays its A out: f16, f32.

Images have their channels last, and all their pixels are rows: x is (pixels, c), y is (places, o).
A row of A is a place of y, and for each element of a filter it is the pixel that lies under it, or
zero where that is outside of the image: rows by `k.gather`. B is the filters, (kh, kw, c, o).

    python examples/products/convolution.py
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

import fragir
from fragir import Scalar, f16, f32, s32

M, N, K = 64, 64, 32  # places, filters and channels that a block takes at a time

with fragir.kernel("convolution", warps=(2, 2)) as k:
    x = k.memory("x", f16, ("pixels", "c"))
    f = k.memory("f", f16, ("kh", "kw", "c", "o"))
    y = k.memory("y", f16, ("places", "o"))
    height, width = k.scalar("height", s32), k.scalar("width", s32)
    stride, padding = k.scalar("stride", s32), k.scalar("padding", s32)
    k.grid(f"o / {N}", f"places / {M}")
    place = k.block_id("y") * M
    column = k.block_id("x") * N
    rows = (height + padding * 2 - k.size("kh").cast(s32)) // stride + 1  # of y's images
    cols = (width + padding * 2 - k.size("kw").cast(s32)) // stride + 1
    at = k.iota(0, (M,)) + place.cast(s32)
    # k.map computes here, before the loops, what else would be computed where it is used, in them
    line = k.map(lambda i: i // cols, at)  # counted through all images
    image = k.map(lambda i: i // rows, line)
    top = k.map(lambda i, j: (i - j * rows) * stride - padding, line, image)
    left = k.map(lambda i, j: (i - j * cols) * stride - padding, at, line)
    corner = k.map(lambda i, v, u: (i * height + v) * width + u, image, top, left)
    a_tile = k.shared((2, M, K), f16, swizzle=64)
    b_tile = k.shared((2, K, N), f16, swizzle=128)
    zero = k.fill(0, (M, N), f32)
    with k.loop(0, k.size("kh"), 1, acc=zero, stage=0) as down:
        dy = down.index.cast(s32)
        with k.loop(0, k.size("kw"), 1, acc=down.acc, stage=down.stage) as across:
            dx = across.index.cast(s32)
            shift = dy * width + dx
            pixels = k.map(lambda i: i + shift, corner)  # under this element of the filters

            def within(v: Scalar, u: Scalar) -> Scalar:
                v, u = v + dy, u + dx
                return (v >= 0) & (v < height) & (u >= 0) & (u < width)

            inside = k.map(within, top, left)
            with k.loop(0, k.size("c"), K, acc=across.acc, stage=across.stage) as loop:
                part = (loop.stage, 0, 0)
                from_ = (down.index, across.index, loop.index, column)
                k.copy(f, from_, b_tile, (loop.stage,), masked=True, asynchronous=True)
                k.commit()
                a = k.gather(x, (pixels, loop.index), shape=(M, K), masked=True, where=inside)
                k.store(a, a_tile, part)
                k.wait(0)
                k.barrier()  # this stage is there, and all have read the other one
                a, b = k.load(a_tile, part, shape=(M, K)), k.load(b_tile, part, shape=(K, N))
                loop.acc = k.mma(a, b, loop.acc)
                loop.stage = 1 - loop.stage
            across.acc, across.stage = loop.acc, loop.stage
        down.acc, down.stage = across.acc, across.stage
    k.store(down.acc.cast(f16), y, (place, column), masked=True)


def convolved(
    x: npt.NDArray[np.float16], f: npt.NDArray[np.float16], stride: int, padding: int
) -> npt.NDArray[np.float64]:
    """The same of images (n, height, width, c), one element of the filters after the other."""
    kh, kw, _, o = f.shape
    sides = zip(x.shape[1:3], (kh, kw), strict=True)
    rows, cols = ((side + 2 * padding - d) // stride + 1 for side, d in sides)
    edge = (padding, padding)
    padded = np.pad(x.astype(np.float64), ((0, 0), edge, edge, (0, 0)))
    y = np.zeros((len(x), rows, cols, o))
    for v in range(kh):
        for u in range(kw):
            under = padded[:, v : v + stride * rows : stride, u : u + stride * cols : stride]
            y += under[:, :rows, :cols] @ f[v, u].astype(np.float64)
    return y


def main() -> None:
    rng = np.random.default_rng(0)
    convolution = k.compile()
    for shape, filters, stride, padding in (
        ((2, 9, 7, 35), (3, 3, 35, 66), 1, 1),
        ((3, 8, 11, 3), (2, 5, 3, 7), 2, 2),
        ((1, 1, 1, 1), (1, 1, 1, 1), 1, 0),
        ((0, 5, 5, 4), (3, 3, 4, 2), 1, 1),
    ):
        x = rng.integers(-2, 3, shape).astype(np.float16)
        f = rng.integers(-2, 3, filters).astype(np.float16)
        wanted = convolved(x, f, stride, padding)
        y = np.full((math.prod(wanted.shape[:3]), filters[3]), np.nan, np.float16)
        pixels = x.reshape(math.prod(shape[:3]), shape[3])
        convolution(pixels, f, y, shape[1], shape[2], stride, padding)
        print(f"{shape} by {filters}, stride {stride}, padding {padding}")
        if not (y.reshape(wanted.shape) == wanted).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
