"""y = x transposed, of any size: a block moves 64 x 64 elements.

The tile is read along the rows of x and written along those of y; in between its elements change
lanes through shared memory, which is a conversion that the compiler puts in and plans.

    python examples/data/transpose.py [M N]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import f32

T = 64  # rows and columns of a block's tile

with fragir.kernel("transpose", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    y = k.memory("y", f32, ("n", "m"))
    k.grid(f"n / {T}", f"m / {T}")
    row, col = k.block_id("y") * T, k.block_id("x") * T
    tile = k.load(x, (row, col), shape=(T, T), masked=True)
    k.store(tile.T, y, (col, row), masked=True)


def main(m: int = 130, n: int = 71) -> None:
    x = np.random.default_rng(0).standard_normal((m, n)).astype(np.float32)
    y = np.full((n, m), np.nan, np.float32)
    k.compile()(x, y)
    print(f"{m} x {n}")
    if not (y == x.T).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
