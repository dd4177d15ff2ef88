"""h[v] += how often v occurs in x, for v from 0 to n - 1: by atomics, 256 numbers a block.

Numbers that have no place in h are masked, and so is the rest of the last block.

    python examples/data/histogram.py [M N]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import s32

PART = 256  # numbers of a block

with fragir.kernel("histogram", warps=(2, 1)) as k:
    x = k.memory("x", s32, ("m",))
    h = k.memory("h", s32, ("n",))
    k.grid(f"m / {PART}")
    part = k.load(x, (k.block_id("x") * PART,), shape=(PART,), masked=True, other=-1)
    k.atomic("add", k.fill(1, (PART,), s32), h, (part,), masked=True)


def main(m: int = 5000, n: int = 100) -> None:
    x = np.random.default_rng(0).integers(-5, n + 5, m).astype(np.int32)
    h = np.zeros(n, np.int32)
    k.compile()(x, h)
    inside = x[(x >= 0) & (x < n)]
    print(f"{m} numbers, {len(inside)} of them from 0 to {n - 1}")
    if not (h == np.bincount(inside, minlength=n)).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
