"""A product whose K is divided among blocks, for few rows and columns and a long K: f16, f32 sums.

`k` adds the parts to C by atomics, in whichever order: C holds what they are added to. `parts` and
`total` take two passes, through an array of all parts, with the same sum in every launch.

    python examples/products/split_k.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Scalar, Tile, f16, f32
from fragir.builder import KernelBuilder, Memory

M, N, K = 64, 64, 32  # what a block does at a time
PARTS = 4


def part(
    k: KernelBuilder,
    a: Memory,
    b: Memory,
    row: Scalar,
    column: Scalar,
    first: Scalar,
    step: Scalar | int,
) -> Tile:
    """The sum over the parts of K that begin at `first`, `first + step`, ..."""
    a_tile = k.shared((2, M, K), f16, swizzle=64)
    b_tile = k.shared((2, K, N), f16, swizzle=128)

    def copy(slot: Scalar | int, at: Scalar) -> None:
        """Starts to fill a stage; what lies beyond K is zero."""
        k.copy(a, (row, at), a_tile, (slot,), masked=True, asynchronous=True)
        k.copy(b, (at, column), b_tile, (slot,), masked=True, asynchronous=True)
        k.commit()

    copy(0, first)
    with k.loop(first, k.size("k"), step, acc=k.fill(0, (M, N), f32), stage=0) as loop:
        k.wait(0)
        k.barrier()  # this stage has arrived, and all have read the other one
        copy(1 - loop.stage, loop.index + step)
        x = k.load(a_tile, (loop.stage, 0, 0), shape=(M, K))
        y = k.load(b_tile, (loop.stage, 0, 0), shape=(K, N))
        loop.acc = k.mma(x, y, loop.acc)
        loop.stage = 1 - loop.stage
    k.wait(0)
    return loop.acc


with fragir.kernel("split_k", warps=(2, 2)) as k:
    a = k.memory("a", f16, ("m", "k"))
    b = k.memory("b", f16, ("k", "n"))
    c = k.memory("c", f32, ("m", "n"))
    k.grid(f"n / {N}", f"m / {M}", PARTS)
    row, column = k.block_id("y") * M, k.block_id("x") * N
    acc = part(k, a, b, row, column, k.block_id("z") * K, PARTS * K)
    k.atomic("add", acc, c, (row, column), masked=True)

with fragir.kernel("split_k_parts", warps=(2, 2)) as parts:
    a = parts.memory("a", f16, ("m", "k"))
    b = parts.memory("b", f16, ("k", "n"))
    p = parts.memory("p", f32, ("s", "m", "n"))
    parts.grid(f"n / {N}", f"m / {M}", "s")
    row, column, z = parts.block_id("y") * M, parts.block_id("x") * N, parts.block_id("z")
    acc = part(parts, a, b, row, column, z * K, parts.size("s") * K)
    parts.store(acc, p, (z, row, column), masked=True)

with fragir.kernel("split_k_total", warps=(4, 1)) as total:
    p = total.memory("p", f32, ("s", "m", "n"))
    c = total.memory("c", f32, ("m", "n"))
    total.grid("n / 64", "m / 16")
    row, column = total.block_id("y") * 16, total.block_id("x") * 64
    with total.loop(0, total.size("s"), acc=total.fill(0, (16, 64), f32)) as loop:
        loop.acc += total.load(p, (loop.index, row, column), shape=(16, 64), masked=True)
    total.store(loop.acc, c, (row, column), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    once, first, second = k.compile(), parts.compile(), total.compile()
    for m, n, depth in ((50, 70, 300), (1, 1, 1), (3, 5, 0)):
        a = rng.integers(-4, 5, (m, depth)).astype(np.float16)
        b = rng.integers(-4, 5, (depth, n)).astype(np.float16)
        c, d = np.ones((m, n), np.float32), np.full((m, n), np.nan, np.float32)
        p = np.full((3, m, n), np.nan, np.float32)
        once(a, b, c)
        first(a, b, p)
        second(p, d)
        exact = a.astype(np.float32) @ b.astype(np.float32)
        print(f"{m} x {n} x {depth}")
        if not ((c == 1 + exact).all() and (d == exact).all()):
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
