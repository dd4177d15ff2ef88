"""The k largest of every row, in order, and where they stand; of equals the first comes first.

Rows may be of any length. A block takes 8 of them and goes over them k times; each time it looks
for the best of what comes behind the last one found, value and place together: a reduction of two
tiles by a function. Where a row has fewer than k, minus infinity stands, at place -1; so do NaN.

    python examples/data/top_k.py [M N K]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, Tile, f32, s32

ROWS, COLS = 8, 128  # of a block's tile
LEAST, NOWHERE = -np.inf, 2**31 - 1

with fragir.kernel("top_k", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    values = k.memory("values", f32, ("m", "k"))
    places = k.memory("places", s32, ("m", "k"))
    k.grid(f"m / {ROWS}")
    row, width = k.block_id("x") * ROWS, k.size("n")

    def better(v: Scalar, i: Scalar, w: Scalar, j: Scalar) -> tuple[Scalar, Scalar]:
        """The larger of two, and of equals that which comes first."""
        second = (w > v) | ((w == v) & (j < i))
        return k.select(second, w, v), k.select(second, j, i)

    start = k.fill(np.inf, (ROWS, 1), f32), k.fill(-1, (ROWS, 1), s32)
    with k.loop(0, k.size("k"), last=start[0], at=start[1]) as rank:
        none = k.fill(LEAST, (ROWS,), f32), k.fill(NOWHERE, (ROWS,), s32)
        with k.loop(0, width, COLS, best=none[0], place=none[1]) as part:
            t = k.load(x, (row, part.index), shape=(ROWS, COLS), masked=True)
            col = k.iota(1, (ROWS, COLS)) + part.index.cast(s32)
            behind = (t < rank.last) | ((t == rank.last) & (col > rank.at))
            behind = behind & (col < width.cast(s32))
            best: Tile = part.best
            place: Tile = part.place
            v: Tile
            i: Tile
            pairs = [k.select(behind, t, LEAST), k.select(behind, col, NOWHERE)]
            v, i = k.reduce(pairs, 1, better)
            second = (v > best) | ((v == best) & (i < place))
            part.best = k.select(second, v, best)
            part.place = k.select(second, i, place)
        best = part.best
        place = part.place
        rank.last, rank.at = best[:, None], place[:, None]
        k.store(best[:, None], values, (row, rank.index), masked=True)
        found = k.select(place == NOWHERE, -1, place)
        k.store(found[:, None], places, (row, rank.index), masked=True)


def main(m: int = 20, n: int = 300, count: int = 5) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (m, n)).astype(np.float32)
    values, places = np.zeros((m, count), np.float32), np.zeros((m, count), np.int32)
    k.compile()(x, values, places)
    order = np.argsort(-x, axis=1, kind="stable")[:, :count]
    print(f"{count} of {n} in each of {m} rows")
    held = order.shape[1]
    right = (places[:, :held] == order).all() and (places[:, held:] == -1).all()
    if not (right and (values[:, :held] == np.take_along_axis(x, order, 1)).all()):
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
