"""One step of the heat equation: y = x + a (what the four neighbours have more), zero all around.

Each block computes 16 x 64 points and reads the tile five times, shifted by one; what lies outside
of the grid, before its first row and column too, is masked and reads as zero.

    python examples/data/stencil.py [M N]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import f32

ROWS, COLS = 16, 64  # of a block's tile
NEIGHBOURS = ((-1, 0), (1, 0), (0, -1), (0, 1))

with fragir.kernel("stencil", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    y = k.memory("y", f32, ("m", "n"))
    a = k.scalar("a", f32)
    k.grid(f"n / {COLS}", f"m / {ROWS}")
    row, col = k.block_id("y") * ROWS, k.block_id("x") * COLS
    here = k.load(x, (row, col), shape=(ROWS, COLS), masked=True)
    more = -4 * here
    for down, right in NEIGHBOURS:
        more = more + k.load(x, (row + down, col + right), shape=(ROWS, COLS), masked=True)
    k.store(here + a * more, y, (row, col), masked=True)


def main(m: int = 50, n: int = 131) -> None:
    x = np.random.default_rng(0).standard_normal((m, n)).astype(np.float32)
    y = np.full((m, n), np.nan, np.float32)
    k.compile()(x, y, 0.2)
    p = np.pad(x.astype(np.float64), 1)
    exact = 0.2 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] + p[1:-1, 1:-1])
    error = np.abs(y - exact).max(initial=0)
    print(f"{m} x {n}: largest error {error:.1e}")
    if not error <= 1e-5:
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
