"""C = A W with bytes on both sides (W8A8): s32 sums of mma, scaled in f32.

`k`: activations have a scale for each row, found while they were quantised, weights one for each
column; the sums of the whole K are scaled once. `groups`: both have a scale for every 128 of K too,
and the sums of each group are promoted to f32. `w` has a row for each column of W.

    python examples/quantised/w8a8.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, Tile, f16, f32, s8, s32
from fragir.builder import KernelBuilder

M, N, K = 64, 64, 128  # what a block does at a time; K numbers share a scale in `groups`
STAGES = 3


def gemm(name: str, grouped: bool) -> KernelBuilder:
    """The kernel with scales of rows and columns, or of groups of K in them."""
    with fragir.kernel(name, warps=(2, 2)) as k:
        a = k.memory("a", s8, ("m", "k"))
        w = k.memory("w", s8, ("n", "k"))
        a_scale = k.memory("a_scale", f32, ("groups", "m") if grouped else ("m",))
        w_scale = k.memory("w_scale", f32, ("groups", "n") if grouped else ("n",))
        c = k.memory("c", f16, ("m", "n"))
        k.grid(f"n / {N}", f"m / {M}")
        depth = k.size("k")
        row = k.block_id("y") * M
        col = k.block_id("x") * N
        a_stages = k.shared((STAGES, M, K), s8, swizzle=128)
        w_stages = k.shared((STAGES, N, K), s8, swizzle=128)

        def copy(slot: Scalar | int, at: Scalar | int) -> None:
            """Starts to fill a stage with the part of A and W that begins at `at`."""
            k.copy(a, (row, at), a_stages, (slot,), masked=True, asynchronous=True)
            k.copy(w, (col, at), w_stages, (slot,), masked=True, asynchronous=True)

        def scales(*group: Scalar) -> tuple[Tile, Tile]:
            """Those of the block's rows and columns, as tiles of C's shape."""
            of_rows = k.load(a_scale, (*group, row), shape=(M,), masked=True)
            of_columns = k.load(w_scale, (*group, col), shape=(N,), masked=True)
            return of_rows.broadcast(1, N), of_columns.broadcast(0, M)

        for i in range(STAGES - 1):
            copy(i, i * K)
            k.commit()
        zero = k.fill(0, (M, N), s32)
        start = k.fill(0, (M, N), f32) if grouped else zero
        with k.loop(0, depth, K, acc=start, stage=0) as loop:
            stage: Scalar = loop.stage
            k.wait(STAGES - 2)
            k.barrier()  # this stage has arrived, and all have read the one that is filled next
            ahead = loop.index + (STAGES - 1) * K
            with k.if_(ahead < depth):
                copy(k.select(stage == 0, STAGES - 1, stage - 1), ahead)
            k.commit()
            x = k.load(a_stages, (stage, 0, 0), shape=(M, K))
            y = k.load(w_stages, (stage, 0, 0), shape=(K, N), transposed=True)
            if grouped:
                of_rows, of_columns = scales(loop.index // K)
                sums = k.mma(x, y, zero).cast(f32)
                loop.acc = k.fma(sums, of_rows * of_columns, loop.acc)
            else:
                loop.acc = k.mma(x, y, loop.acc)
            loop.stage = k.select(stage == STAGES - 1, 0, stage + 1)
        k.wait(0)  # where K ends before what is under way
        result = loop.acc
        if not grouped:
            of_rows, of_columns = scales()
            result = loop.acc.cast(f32) * of_rows * of_columns
        k.store(result.cast(f16), c, (row, col), masked=True)
    return k


k = gemm("w8a8", grouped=False)
groups = gemm("w8a8_groups", grouped=True)


def main(m: int = 45, n: int = 71, depth: int = 150) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (m, depth)).astype(np.int8)
    w = rng.integers(-128, 128, (n, depth)).astype(np.int8)
    parts = -(-depth // K)
    for kernel, shape in ((k, ()), (groups, (parts,))):
        a_scale = rng.uniform(1e-3, 1e-2, (*shape, m)).astype(np.float32)
        w_scale = rng.uniform(1e-3, 1e-2, (*shape, n)).astype(np.float32)
        c = np.zeros((m, n), np.float16)
        built = kernel.compile()
        built(a, w, a_scale, w_scale, c)
        x, y = a.astype(np.float64), w.astype(np.float64)
        if shape:
            x = x * np.repeat(a_scale, K, axis=0)[:depth].T
            y = y * np.repeat(w_scale, K, axis=0)[:depth].T
        else:
            x, y = x * a_scale[:, None], y * w_scale[:, None]
        exact = x @ y.T
        error = np.abs(c - exact)
        bound = 2.0**-10 * np.abs(exact) + 2.0**-20 * (np.abs(x) @ np.abs(y).T) + 2.0**-24
        registers = built.assembled.entries[built.name].registers
        print(f"{built.name}, {m} x {n} x {depth}, {built.target}: {registers} registers")
        print(f"largest error {error.max(initial=0):.1e}")
        if not (error <= bound).all():
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
