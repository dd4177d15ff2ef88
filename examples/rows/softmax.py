"""Softmax of rows of any length, forward and backward, f32 in memory.

A block of four warps takes a row and reads it in parts of 1024 columns. The largest and the sum are
kept while it is read, each step with the largest so far; a second pass writes, for which the row is
still in the cache: 1056 blocks of an H100 hold 17 MB of rows of 4096 f32.

    python examples/rows/softmax.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import f32

ROWS, PART = 1, 1024
LOWEST = -3.4028235e38  # what a largest begins with; elements outside of a row are -inf

with fragir.kernel("softmax", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    y = k.memory("y", f32, ("m", "n"))
    k.grid(f"m / {ROWS}")
    row = k.block_id("x") * ROWS
    start = {"largest": k.fill(LOWEST, (ROWS,), f32), "total": k.fill(0, (ROWS,), f32)}
    with k.loop(0, k.size("n"), PART, **start) as loop:
        t = k.load(x, (row, loop.index), shape=(ROWS, PART), masked=True, other=-np.inf)
        largest = k.max(loop.largest, t.max(1))
        more = k.exp(t - largest[:, None]).sum(1)
        loop.total = loop.total * k.exp(loop.largest - largest) + more
        loop.largest = largest
    with k.loop(0, k.size("n"), PART) as again:
        t = k.load(x, (row, again.index), shape=(ROWS, PART), masked=True)
        p = k.exp(t - loop.largest[:, None]) / loop.total[:, None]
        k.store(p, y, (row, again.index), masked=True)

with fragir.kernel("softmax_backward", warps=(4, 1)) as backward:
    y = backward.memory("y", f32, ("m", "n"))
    dy = backward.memory("dy", f32, ("m", "n"))
    dx = backward.memory("dx", f32, ("m", "n"))
    backward.grid(f"m / {ROWS}")
    row = backward.block_id("x") * ROWS
    with backward.loop(
        0, backward.size("n"), PART, products=backward.fill(0, (ROWS, PART), f32)
    ) as loop:
        p = backward.load(y, (row, loop.index), shape=(ROWS, PART), masked=True)
        g = backward.load(dy, (row, loop.index), shape=(ROWS, PART), masked=True)
        loop.products = backward.fma(p, g, loop.products)
    total = loop.products.sum(1)[:, None]
    with backward.loop(0, backward.size("n"), PART) as again:
        p = backward.load(y, (row, again.index), shape=(ROWS, PART), masked=True)
        g = backward.load(dy, (row, again.index), shape=(ROWS, PART), masked=True)
        backward.store(p * (g - total), dx, (row, again.index), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    for m, n in ((37, 300), (1, 1)):
        a, g = (rng.standard_normal((m, n)).astype(np.float32) for _ in range(2))
        p, dx = np.empty_like(a), np.empty_like(a)
        k.compile()(a, p)
        backward.compile()(p, g, dx)
        e = np.exp(a - a.max(1, keepdims=True).astype(np.float64))
        exact = e / e.sum(1, keepdims=True)
        gradient = exact * (g - (exact * g).sum(1, keepdims=True))
        errors = np.abs(p / exact - 1).max(), np.abs(dx - gradient).max()
        print(f"{m} x {n}: relative error {errors[0]:.1e}, of the gradient {errors[1]:.1e}")
        if not (errors[0] < 1e-5 and errors[1] < 1e-6):
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
