"""Dropout: y = x / (1 - p) where a random number is at least p, else 0.

Random numbers are a function of the seed and of the element's place (Philox), so no mask is kept:
the backward pass is the same kernel on the gradient, with the same seed. One evaluation of Philox
gives four numbers, for four neighbours.

    python examples/elementwise/dropout.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import f32, s32, s64

TILE = 1024

with fragir.kernel("dropout", warps=(4, 1)) as k:
    seed, p = k.scalar("seed", s64), k.scalar("p", f32)
    x = k.memory("x", f32, ("n",))
    y = k.memory("y", f32, ("n",))
    k.grid(f"n / {TILE}")
    block = k.block_id()
    at = (block * TILE,)
    offsets = k.iota(0, (TILE // 4,)) + (block * (TILE // 4)).cast(s32)
    r0, r1, r2, r3 = k.random(seed, offsets)
    # r0 r1 r2 r3 of the first offset, then of the next
    bits = k.join(k.join(r0, r2), k.join(r1, r3)).reshape(TILE)
    uniform = ((bits >> 8) & 0xFFFFFF).cast(f32) * 2.0**-24
    values = k.load(x, at, shape=(TILE,), masked=True)
    k.store(k.select(uniform >= p, values * (1 / (1 - p)), 0), y, at, masked=True)


def main() -> None:
    rng, dropout = np.random.default_rng(0), k.compile()
    for n in (3001, 1):
        values, gradient = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
        forward, backward = np.empty_like(values), np.empty_like(values)
        dropout(42, 0.25, values, forward)
        dropout(42, 0.25, gradient, backward)
        kept = forward != 0
        scale = np.float32(1) / (np.float32(1) - np.float32(0.25))
        right = np.allclose(forward, np.where(kept, values * scale, 0), rtol=1e-6)
        right &= np.allclose(backward, np.where(kept, gradient * scale, 0), rtol=1e-6)
        share = kept.mean()
        print(f"{n}: {share:.3f} kept")
        if not right or (n > 1000 and abs(share - 0.75) > 0.05):
            raise SystemExit(f"FAIL: {n}")
    print("PASS")


if __name__ == "__main__":
    main()
