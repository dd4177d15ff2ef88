"""y[i] = table[ids[i]], and back: what y's gradient adds to the table's. Any sizes.

A block takes 8 rows, 64 elements of each at a time. A row that the table does not have is zero, and
adds nothing on the way back, where rows that were read twice are added to twice: by atomics.

    python examples/data/embedding.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import f32, s32

ROWS, COLS = 8, 64  # of a block's tile

with fragir.kernel("forward", warps=(2, 1)) as forward:
    table = forward.memory("table", f32, ("n", "k"))
    ids = forward.memory("ids", s32, ("m",))
    y = forward.memory("y", f32, ("m", "k"))
    forward.grid(f"m / {ROWS}")
    row = forward.block_id("x") * ROWS
    rows = forward.load(ids, (row,), shape=(ROWS,), masked=True, other=-1)
    with forward.loop(0, forward.size("k"), COLS) as loop:
        part = forward.gather(table, (rows, loop.index), shape=(ROWS, COLS), masked=True)
        forward.store(part, y, (row, loop.index), masked=True)

with fragir.kernel("backward", warps=(2, 1)) as backward:
    dy = backward.memory("dy", f32, ("m", "k"))
    ids = backward.memory("ids", s32, ("m",))
    dtable = backward.memory("dtable", f32, ("n", "k"))
    backward.grid(f"m / {ROWS}")
    row = backward.block_id("x") * ROWS
    rows = backward.load(ids, (row,), shape=(ROWS,), masked=True, other=-1)
    with backward.loop(0, backward.size("k"), COLS) as loop:
        part = backward.load(dy, (row, loop.index), shape=(ROWS, COLS), masked=True)
        backward.atomic("add", part, dtable, (rows, loop.index), masked=True)


def main(m: int = 70, n: int = 40, depth: int = 100) -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((n, depth)).astype(np.float32)
    ids = rng.integers(-2, n + 2, m).astype(np.int32)
    y = np.full((m, depth), np.nan, np.float32)
    forward.compile()(table, ids, y)
    there = (ids >= 0) & (ids < n)
    wanted = np.zeros_like(y)
    wanted[there] = table[ids[there]]
    dtable = np.zeros_like(table)
    backward.compile()(y, ids, dtable)
    exact = np.zeros((n, depth))
    np.add.at(exact, ids[there], y[there].astype(np.float64))
    error = np.abs(dtable - exact).max(initial=0)
    print(f"{m} of {n} rows of {depth}: largest error of the gradient {error:.1e}")
    if not ((y == wanted).all() and error <= 1e-4):
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
