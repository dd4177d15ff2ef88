"""Stream-K: a fixed number of blocks share all steps of all tiles evenly; f16, f32 sums.

The steps along K of all tiles of C stand behind each other, and each of `BLOCKS` blocks takes as
many of them, beginning and ending anywhere within a tile. What it has of a tile is added to C by
atomics: C holds what the product is added to. Blocks never wait for each other.

    python examples/products/stream_k.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Scalar, f16, f32

M, N, K = 64, 64, 32  # what a block does at a time
BLOCKS = 6  # as many as the GPU runs at once

with fragir.kernel("stream_k", warps=(2, 2)) as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("k", "n"))
    c = k.memory("c", f32, ("m", "n"))
    k.grid(BLOCKS)
    a_tile = k.shared((2, M, K), f16, swizzle=64)
    b_tile = k.shared((2, K, N), f16, swizzle=128)
    steps = (k.size("k") + K - 1) // K  # of a tile
    across = (k.size("n") + N - 1) // N  # tiles of C beside each other
    down = (k.size("m") + M - 1) // M
    share = (steps * across * down + BLOCKS - 1) // BLOCKS
    first = k.block_id() * share
    last = k.min(first + share, steps * across * down)

    with k.while_(lambda now: now.step < last, step=first) as tiles:
        now: Scalar = tiles.step
        tile, begin = now // steps, now % steps
        end = k.min(begin + (last - now), steps)
        row, column = tile // across * M, tile % across * N

        def copy(slot: Scalar | int, step: Scalar) -> None:
            """Starts to fill a stage; what lies beyond K is zero."""
            k.copy(a, (row, step * K), a_tile, (slot,), masked=True, asynchronous=True)
            k.copy(b, (step * K, column), b_tile, (slot,), masked=True, asynchronous=True)
            k.commit()

        copy(0, begin)
        with k.loop(begin, end, acc=k.fill(0, (M, N), f32), stage=0) as loop:
            k.wait(0)
            k.barrier()  # this stage has arrived, and all have read the other one
            copy(1 - loop.stage, loop.index + 1)
            x = k.load(a_tile, (loop.stage, 0, 0), shape=(M, K))
            y = k.load(b_tile, (loop.stage, 0, 0), shape=(K, N))
            loop.acc = k.mma(x, y, loop.acc)
            loop.stage = 1 - loop.stage
        k.wait(0)
        k.barrier()  # the next tile fills stages that all have read
        k.atomic("add", loop.acc, c, (row, column), masked=True)
        tiles.step = now + (end - begin)


def main() -> None:
    rng = np.random.default_rng(0)
    stream_k = k.compile()
    for m, n, depth in ((70, 130, 101), (1, 1, 1), (3, 5, 0)):
        a = rng.integers(-4, 5, (m, depth)).astype(np.float16)
        b = rng.integers(-4, 5, (depth, n)).astype(np.float16)
        c = np.ones((m, n), np.float32)
        stream_k(a, b, c)
        print(f"{m} x {n} x {depth}")
        if not (c == 1 + a.astype(np.float32) @ b.astype(np.float32)).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
