"""Linear algebra over F2: vectors of bits are numbers, sums are exclusive or."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.modes import Point


def xor(a: Point, b: Point) -> Point:
    """The sum of two points without carry, dimension by dimension."""
    return tuple(x ^ y for x, y in zip(a, b, strict=True))


def packed_bits(point: Point, bits: Iterable[int]) -> int:
    """The coordinates of a point as one number, the first in the lowest bits."""
    packed = place = 0
    for value, width in zip(point, bits, strict=True):
        packed |= value << place
        place += width
    return packed


def unpacked_bits(packed: int, bits: Iterable[int]) -> Point:
    """The coordinates that `packed_bits` made one number of."""
    values: list[int] = []
    for width in bits:
        values.append(packed & ((1 << width) - 1))
        packed >>= width
    return tuple(values)


def eliminate(columns: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Independent columns by their highest bit, each with the inputs whose sum it is."""
    reduced: dict[int, tuple[int, int]] = {}
    for index, column in enumerate(columns):
        inputs = 1 << index
        while column:
            top = column.bit_length() - 1
            if top not in reduced:
                reduced[top] = (column, inputs)
                break
            column ^= reduced[top][0]
            inputs ^= reduced[top][1]
    return reduced


def solve(reduced: dict[int, tuple[int, int]], wanted: int) -> int | None:
    """The inputs (bits of a number) whose columns add up to `wanted`; None if none do."""
    inputs = 0
    while wanted:
        found = reduced.get(wanted.bit_length() - 1)
        if found is None:
            return None
        wanted ^= found[0]
        inputs ^= found[1]
    return inputs
