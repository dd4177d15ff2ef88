"""y[i] = x[0] + ... + x[i], of any length, by two kernels without a word between blocks.

`sums` leaves what each 1024 elements add up to. `prefix` adds up the sums of the blocks before its
own, by itself, and scans its 1024 elements. So no block waits for another, which a kernel may only
do where all blocks run at once; x is read twice.

    python examples/data/prefix_sum.py [N]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import f32

PART = 1024  # elements of a block

with fragir.kernel("sums", warps=(4, 1)) as sums:
    x = sums.memory("x", f32, ("n",))
    s = sums.memory("s", f32, ("b",))
    sums.grid(f"n / {PART}")
    block = sums.block_id("x")
    part = sums.load(x, (block * PART,), shape=(PART,), masked=True)
    sums.store(part.sum(0, keepdims=True), s, (block,), masked=True)

with fragir.kernel("prefix", warps=(4, 1)) as prefix:
    x = prefix.memory("x", f32, ("n",))
    s = prefix.memory("s", f32, ("b",))
    y = prefix.memory("y", f32, ("n",))
    prefix.grid(f"n / {PART}")
    block = prefix.block_id("x")
    part = prefix.load(x, (block * PART,), shape=(PART,), masked=True)
    number = prefix.iota(0, (PART,))
    zero = prefix.fill(0, (PART,), f32)
    with prefix.loop(0, block, PART, before=zero) as loop:
        some = prefix.load(s, (loop.index,), shape=(PART,), masked=True)
        earlier = number < (block - loop.index).cast(fragir.s32)
        loop.before = loop.before + prefix.select(earlier, some, 0)
    prefix.store(part.cumsum(0) + loop.before.sum(), y, (block * PART,), masked=True)


def main(n: int = 5000) -> None:
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    s = np.full(-(-n // PART), np.nan, np.float32)
    y = np.full(n, np.nan, np.float32)
    sums.compile()(x, s)
    prefix.compile()(x, s, y)
    exact = np.cumsum(x.astype(np.float64))
    error = np.abs(y - exact).max(initial=0)
    bound = 64 * 2.0**-24 * np.abs(x).sum()
    print(f"{n} elements: largest error {error:.1e}, bound {bound:.1e}")
    if not error <= bound:
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
