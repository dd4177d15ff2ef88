"""The sums of a matrix's columns, of any height: what is left of partial sums of gradients.

A block of four warps takes 16 columns and adds tiles of 128 rows in registers; what the lanes and
warps that share a column have meets once, at the end.

    python examples/rows/column_sums.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import f32

ROWS, COLUMNS = 128, 16

with fragir.kernel("column_sums", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    y = k.memory("y", f32, ("n",))
    k.grid(f"n / {COLUMNS}")
    column = k.block_id("x") * COLUMNS
    with k.loop(0, k.size("m"), ROWS, sums=k.fill(0, (ROWS, COLUMNS), f32)) as loop:
        loop.sums += k.load(x, (loop.index, column), shape=(ROWS, COLUMNS), masked=True)
    k.store(loop.sums.sum(0), y, (column,), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    sums = k.compile()
    for m, n in ((100, 77), (1, 1), (0, 5)):
        a = rng.standard_normal((m, n)).astype(np.float32)
        b = np.empty(n, np.float32)
        sums(a, b)
        error = np.abs(b - a.sum(0, dtype=np.float64)).max()
        print(f"{m} x {n}: error {error:.1e}")
        if error > m * 2**-23:
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
