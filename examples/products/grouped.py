"""Rows in groups of any length, each group times its own matrix (experts of a mixture): f16, f32.

Group g has the rows starts[g] up to, not with, ends[g] of A and C, which are read from memory; a
group may be empty. Every group has as many blocks as the longest possible one: those behind its
end do nothing. Rows of a block that belong to the next group are computed and not written.

    python examples/products/grouped.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Scalar, f16, f32, index, s32

M, N, K = 64, 64, 32  # what a block does at a time

with fragir.kernel("grouped", warps=(2, 2)) as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("g", "k", "n"))
    starts = k.memory("starts", s32, ("g",))
    ends = k.memory("ends", s32, ("g",))
    c = k.memory("c", f32, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}", "g")
    group, column = k.block_id("z"), k.block_id("x") * N
    end = k.load_scalar(ends, (group,))
    row = k.load_scalar(starts, (group,)).cast(index) + k.block_id("y") * M
    a_tile = k.shared((2, M, K), f16, swizzle=64)
    b_tile = k.shared((2, K, N), f16, swizzle=128)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        """Starts to fill a stage; what lies beyond K is zero."""
        k.copy(a, (row, at), a_tile, (slot,), masked=True, asynchronous=True)
        k.copy(b, (group, at, column), b_tile, (slot,), masked=True, asynchronous=True)
        k.commit()

    with k.if_(row < end.cast(index)):
        copy(0, 0)
        with k.loop(0, k.size("k"), K, acc=k.fill(0, (M, N), f32), stage=0) as loop:
            k.wait(0)
            k.barrier()  # this stage has arrived, and all have read the other one
            copy(1 - loop.stage, loop.index + K)
            x = k.load(a_tile, (loop.stage, 0, 0), shape=(M, K))
            y = k.load(b_tile, (loop.stage, 0, 0), shape=(K, N))
            loop.acc = k.mma(x, y, loop.acc)
            loop.stage = 1 - loop.stage
        k.wait(0)
        rows = k.iota(0, (M,)) + row.cast(s32)
        k.scatter(loop.acc, c, (rows, column), masked=True, where=rows < end)


def main() -> None:
    rng = np.random.default_rng(0)
    grouped = k.compile()
    for lengths, n, depth in (((70, 0, 1, 65), 77, 45), ((1,), 1, 1), ((0, 2), 3, 0)):
        ends = np.cumsum(lengths).astype(np.int32)
        starts = (ends - lengths).astype(np.int32)
        a = rng.integers(-4, 5, (ends[-1], depth)).astype(np.float16)
        b = rng.integers(-4, 5, (len(lengths), depth, n)).astype(np.float16)
        c = np.full((len(a), n), np.nan, np.float32)
        grouped(a, b, starts, ends, c)
        wide = a.astype(np.float32), b.astype(np.float32)
        parts = [wide[0][s:e] @ w for s, e, w in zip(starts, ends, wide[1], strict=True)]
        print(f"{lengths} rows x {n} x {depth}")
        if not (c == np.concatenate(parts)).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
