"""C[i] = A[i] B[i] for every i of a batch, of any sizes: bf16 in memory, f32 sums.

The grid's z counts the batch, which is the first index of every array. Two stages of A and B are
under way into swizzled shared memory (cp.async); fragments come from there (ldmatrix).

    python examples/products/batched.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Scalar, bf16, f32

M, N, K = 64, 64, 32  # what a block does at a time

with fragir.kernel("batched", warps=(2, 2)) as k:
    a = k.memory("a", bf16, ("b", "m", "k"))
    b = k.memory("b", bf16, ("b", "k", "n"))
    c = k.memory("c", f32, ("b", "m", "n"))
    k.grid(f"n / {N}", f"m / {M}", "b")
    batch, depth = k.block_id("z"), k.size("k")
    row, column = k.block_id("y") * M, k.block_id("x") * N
    a_tile = k.shared((2, M, K), bf16, swizzle=64)
    b_tile = k.shared((2, K, N), bf16, swizzle=128)

    def copy(slot: Scalar | int, at: Scalar | int) -> None:
        """Starts to fill a stage; what lies beyond K is zero."""
        k.copy(a, (batch, row, at), a_tile, (slot,), masked=True, asynchronous=True)
        k.copy(b, (batch, at, column), b_tile, (slot,), masked=True, asynchronous=True)
        k.commit()

    copy(0, 0)
    with k.loop(0, depth, K, acc=k.fill(0, (M, N), f32), stage=0) as loop:
        k.wait(0)
        k.barrier()  # this stage has arrived, and all have read the other one
        copy(1 - loop.stage, loop.index + K)
        x = k.load(a_tile, (loop.stage, 0, 0), shape=(M, K))
        y = k.load(b_tile, (loop.stage, 0, 0), shape=(K, N))
        loop.acc = k.mma(x, y, loop.acc)
        loop.stage = 1 - loop.stage
    k.wait(0)
    k.store(loop.acc, c, (batch, row, column), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    batched = k.compile()
    for sizes in ((3, 70, 77, 45), (1, 1, 1, 1), (2, 3, 5, 0)):
        n, rows, columns, depth = sizes
        # whole numbers: bf16, the upper half of an f32, holds them, and sums are exact
        p, q = (rng.integers(-4, 5, (n, *s)) for s in ((rows, depth), (depth, columns)))
        bits = [(v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for v in (p, q)]
        out = np.full((n, rows, columns), np.nan, np.float32)
        batched(*bits, out)
        print(f"{n} of {rows} x {columns} x {depth}")
        if not (out == p @ q).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
