"""The two largest of each row, and where they stand: a row a warp.

Numbers become integers of the same order, of which redux.sync finds the largest of 32 lanes in one
instruction. `top2.mlir` is the same kernel. Where a row has fewer than two numbers, NaN stands in
their place, at 2^31 - 1.

    python examples/lanes/top2.py [M N]
"""

from __future__ import annotations

import sys

import numpy as np

import fragir
from fragir import Scalar, f32, s32
from fragir.builder.lane import Lane, LaneRegisters
from fragir.layout import Layout

ROWS, COLS = 4, 32  # what a block does at a time: a warp a row, a lane a number
LEAST, FAR = -(2**31), 2**31 - 1
ONE_EACH = Layout.parse("warp [4:(1,0)] lane [32:(0,1)] element []")
BEST = Layout.parse("warp [4:(1,0)] lane [2:(0,1) 16:(0,0)] element []")


def ordered(bits: Scalar) -> Scalar:
    """The bits of a float as an integer of the same order, and back: negative ones are turned."""
    return bits ^ (k.select(bits < 0, -1, k.constant(0, s32)) & FAR)


with fragir.kernel("top2", warps=(4, 1)) as k:
    x = k.memory("x", f32, ("m", "n"))
    values = k.memory("values", f32, ("m", 2))
    places = k.memory("places", s32, ("m", 2))
    k.grid(f"m / {ROWS}")
    row, n = k.block_id() * ROWS, k.size("n")

    none, nowhere = k.fill(LEAST, (ROWS, 2), s32), k.fill(FAR, (ROWS, 2), s32)
    with k.loop(0, n, COLS, keys=none, at=nowhere) as loop:
        part = k.load(x, (row, loop.index), shape=(ROWS, COLS), masked=True)

        def best(
            lane: Lane, new: LaneRegisters, keys: LaneRegisters, at: LaneRegisters
        ) -> tuple[list[Scalar], list[Scalar]]:
            """The two largest of what the lanes have, and of the two so far."""
            column = loop.index + lane.lane
            inside = column < n
            held: list[tuple[Scalar, Scalar]] = [
                (
                    k.select(inside, ordered(lane.bitcast(new[0], s32)), LEAST),
                    k.select(inside, column.cast(s32), FAR),
                ),
                (keys[0], at[0]),
            ]
            found: list[tuple[Scalar, Scalar]] = []
            for _ in range(2):
                key: Scalar = lane.ptx("redux.sync.max.s32", k.max(held[0][0], held[1][0]), -1)
                near = [k.select(own == key, place, FAR) for own, place in held]
                place: Scalar = lane.ptx("redux.sync.min.s32", k.min(*near), -1)
                found.append((key, place))
                held = [
                    (k.select(own == place, LEAST, value), k.select(own == place, FAR, own))
                    for value, own in held
                ]
            first = lane.lane % 2 == 0
            (key, place), (key2, place2) = found
            return [k.select(first, key, key2)], [k.select(first, place, place2)]

        loop.keys, loop.at = k.lanes(
            best,
            part,
            loop.keys,
            loop.at,
            layouts=[ONE_EACH, BEST, BEST],
            results=[((ROWS, 2), BEST), ((ROWS, 2), BEST)],
        )

    def number(lane: Lane, keys: LaneRegisters) -> list[Scalar]:
        return [lane.bitcast(ordered(key), f32) for key in keys]

    k.store(k.lanes(number, loop.keys, layouts=BEST), values, (row, 0), masked=True)
    k.store(loop.at, places, (row, 0), masked=True)


def main(m: int = 21, n: int = 75) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((m, n)).astype(np.float32)
    values, places = np.zeros((m, 2), np.float32), np.zeros((m, 2), np.int32)
    k.compile()(x, values, places)
    order = np.argsort(-x, axis=1, kind="stable")[:, :2]
    print(f"{m} x {n}: the largest of all {values.max():.3f}")
    if not (places == order).all() or not (values == np.take_along_axis(x, order, 1)).all():
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
