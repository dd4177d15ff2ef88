"""Rotary embedding: pairs of a head's elements are turned by an angle of their row (position).

(a, b) becomes (a cos - b sin, a sin + b cos). Which elements are a pair is a matter of how the
array is seen: element j of the first half and of the second is rows x heads x 2 x pairs (GPT-NeoX,
Llama), two neighbours are rows x heads x pairs x 2 (GPT-J).

    python examples/elementwise/rotary.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import f16, f32
from fragir.builder import KernelBuilder

ROWS, HEADS, PAIRS = 4, 4, 64  # what a block turns


def rotary(name: str, neighbours: bool) -> KernelBuilder:
    """The kernel for one pairing."""
    with fragir.kernel(name, warps=(4, 1)) as k:
        size = ("s", "h", "d", 2) if neighbours else ("s", "h", 2, "d")
        x = k.memory("x", f16, size)
        cos, sin = (k.memory(name, f32, ("s", "d")) for name in ("cos", "sin"))
        y = k.memory("y", f16, size)
        k.grid(f"d / {PAIRS}", f"h / {HEADS}", f"s / {ROWS}")
        j, head, row = (
            k.block_id(axis) * n for axis, n in (("x", PAIRS), ("y", HEADS), ("z", ROWS))
        )
        if neighbours:
            at, shape = (row, head, j, 0), (ROWS, HEADS, PAIRS, 2)
            pairs = k.load(x, at, shape=shape, masked=True)
        else:
            at, shape = (row, head, 0, j), (ROWS, HEADS, 2, PAIRS)
            pairs = k.load(x, at, shape=shape, masked=True).transpose(0, 1, 3, 2)
        c, s = (
            k.load(angle, (row, j), shape=(ROWS, PAIRS), masked=True)[:, None]
            for angle in (cos, sin)
        )
        a, b = (part.cast(f32) for part in pairs.split())
        turned = k.join((a * c - b * s).cast(f16), (a * s + b * c).cast(f16))
        k.store(turned if neighbours else turned.transpose(0, 1, 3, 2), y, at, masked=True)
    return k


k = rotary("halves", neighbours=False)
neighbours = rotary("neighbours", neighbours=True)


def main() -> None:
    rng = np.random.default_rng(0)
    rows, heads, pairs = 9, 3, 40
    x = rng.standard_normal((rows, heads, 2 * pairs)).astype(np.float16)
    angles = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    turns = np.exp(1j * angles)[:, None]
    for kernel, seen in ((k, (2, pairs)), (neighbours, (pairs, 2))):
        x4 = x.reshape(rows, heads, *seen)
        y = np.empty_like(x4)
        kernel.compile()(x4, cos, sin, y)
        axis = seen.index(2) + 2
        (a, b), (u, v) = (np.moveaxis(t.astype(np.float64), axis, 0) for t in (x4, y))
        error = np.abs((a + 1j * b) * turns - (u + 1j * v)).max()
        print(f"{kernel.name}: largest error {error:.1e}")
        if error > 4e-3:
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
