"""Numbers of threads from tables with gaps: linear where they can be."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.layout.f2 import Subspace
from fragir.layout.planning.program import LaneTable, Lanewise, Linear
from fragir.layout.planning.registers import LANE_BITS

Gaps = Sequence[Sequence[int | None]]
"""A number for each warp and lane; None where any will do."""


def fitted(fields: Sequence[tuple[Gaps, int]], lane: Sequence[int] = (0,) * LANE_BITS) -> Lanewise:
    """A number of several fields: the values of each, of which the bits of its mask count."""
    linear = [_linear(values, mask, lane) for values, mask in fields]
    start, columns, warps = 0, [0] * LANE_BITS, [0] * _warp_bits(len(fields[0][0]))
    for found in linear:
        if found is None:
            return _table(fields, lane)
        start |= found.start
        columns = [a | b for a, b in zip(columns, found.lane, strict=True)]
        warps = [a | b for a, b in zip(warps, found.warp, strict=True)]
    return Linear(start, tuple(columns), tuple(warps))


def _linear(values: Gaps, mask: int, lane: Sequence[int]) -> Linear | None:
    """The values as a sum of columns; None where they are none."""
    known = Subspace()  # of vectors (1, lane, warp), each with its value as the combination
    for warp, row in enumerate(values):
        for at, value in enumerate(row):
            if value is None:
                continue
            vector = 1 | at << 1 | warp << LANE_BITS + 1
            said = known.solve(vector)
            if said is None:
                known.add(vector, value & mask)
            elif said != value & mask:
                return None
    warps = _warp_bits(len(values))
    open_columns = [*(column & mask for column in lane), *([0] * warps)]
    for bit, column in enumerate(open_columns, 1):
        if known.solve(1 << bit) is None:
            known.add(1 << bit, column)
    known.add(1)
    columns = [known.solve(1 << bit) or 0 for bit in range(1, 1 + len(open_columns))]
    return Linear(known.solve(1) or 0, tuple(columns[:LANE_BITS]), tuple(columns[LANE_BITS:]))


def _table(fields: Sequence[tuple[Gaps, int]], lane: Sequence[int]) -> LaneTable:
    rows: list[tuple[int, ...]] = []
    for warp in range(len(fields[0][0])):
        row: list[int] = []
        for at in range(1 << LANE_BITS):
            number = 0
            for values, mask in fields:
                value = values[warp][at]
                if value is None:
                    value = 0
                    for bit, column in enumerate(lane):
                        value ^= column if at >> bit & 1 else 0
                number |= value & mask
            row.append(number)
        rows.append(tuple(row))
    return LaneTable(tuple(rows))


def _warp_bits(warps: int) -> int:
    return (warps - 1).bit_length()
