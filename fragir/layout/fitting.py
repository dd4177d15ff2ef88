"""Compositions with exclusive or: a function on few digits, written as digits added or xored.

A linear bit of the inner layout whose column touches linear bits of the outer layout only moves the
composed point by the outer columns, whatever else the point is. What is left, digits that are added
and bits that reach those of the outer layout, is a grid; there the composition is tabulated, and
each digit must be a flip of fixed bits or a step that adds up with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fragir.layout.exclusive import Bit, Forced, LayoutKernel, clusters_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, coalesced

LARGEST_GRID = 1 << 16
"""Points of the composition that are looked at one by one."""


def composed(outer: Layout, inner: Layout) -> Layout:
    """x -> outer(inner(x)), simplified; `inner` must stay inside of the axes of `outer`.

    The outer layout's predicate is not considered. Raises LayoutError naming the inner mode whose
    digits are neither sums nor flips.
    """
    within, apart = inner.kernel, outer.kernel
    coordinate = _Coordinates(outer, inner)
    bits, grid = list[Bit](), [_Digit(d.axis, d.place, d.size, d.stride, 0) for d in within.forced]
    for bit in within.bits:
        column = coordinate.column(bit.column)
        if column is None:
            grid.append(_Digit(bit.axis, bit.place, 2, 0, bit.column))
        else:
            bits.append(Bit(bit.axis, bit.place, column))
    values = list(map(coordinate.value, _points(within.start, grid)))
    linear, forced = _fitted(values, grid, apart.point, inner)
    start = values[0]
    kernel = LayoutKernel(
        outer.rank, apart.width, start, bits + linear, forced, clusters_of(start, forced)
    )
    return Layout(kernel.canonical(inner.axes), outer.dims, apart.point(start), inner.where)


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit of the grid: it adds `stride` to the inner layout's point or flips `column`."""

    axis: str
    place: int
    size: int
    stride: int
    column: int


class _Coordinates:
    """The outer layout as a function of the inner layout's points, both packed."""

    def __init__(self, outer: Layout, inner: Layout) -> None:
        self.start = outer.kernel.start
        width = inner.kernel.width
        self.mask = (1 << width) - 1
        self.axes: list[tuple[int, dict[int, int]]] = []  # (where the coordinate is, its bits)
        self.moves: list[Callable[[int], tuple[int, int]]] = []
        self.known: list[dict[int, tuple[int, int]]] = [{} for _ in outer.axes]
        for axis in outer.axes:
            at = (inner.rank - 1 - inner.dims.index(axis.name)) * width
            columns = {bit.place: bit.column for bit in outer.kernel.bits if bit.axis == axis.name}
            self.axes.append((at, columns))
            self.moves.append(_mover(axis, outer.kernel))

    def column(self, column: int) -> int | None:
        """What a flip of the inner point flips of the outer one; None if that depends."""
        flipped = 0
        for at, columns in self.axes:
            coordinate = column >> at & self.mask
            while coordinate:
                place = coordinate & -coordinate
                if place not in columns:
                    return None
                flipped ^= columns[place]
                coordinate ^= place
        return flipped

    def value(self, point: int) -> int:
        """The outer point, packed."""
        total, flips = self.start, 0
        for (at, _), move, known in zip(self.axes, self.moves, self.known, strict=True):
            coordinate = point >> at & self.mask
            moved = known.get(coordinate)
            if moved is None:
                moved = known[coordinate] = move(coordinate)
            total += moved[0]
            flips ^= moved[1]
        return total ^ flips


def _mover(axis: Axis, kernel: LayoutKernel) -> Callable[[int], tuple[int, int]]:
    """From a coordinate of an axis to (what it adds, what it flips)."""
    digits = [(d.place, d.size, d.stride) for d in kernel.forced if d.axis == axis.name]
    bits = [(bit.place, bit.column) for bit in kernel.bits if bit.axis == axis.name]

    def move(coordinate: int) -> tuple[int, int]:
        flips = 0
        for place, column in bits:
            if coordinate // place & 1:
                flips ^= column
        return sum(coordinate // place % size * step for place, size, step in digits), flips

    return move


def _points(start: int, grid: Sequence[_Digit]) -> list[int]:
    """The inner layout's points on the grid, the first digit fastest; flips come last."""
    points = [start]
    for digit in grid:
        if len(points) * digit.size > LARGEST_GRID:
            raise LayoutError(
                f"The composition has more than {LARGEST_GRID} points that are looked at one by "
                "one: digits that are added meet exclusive or."
            )
        if digit.column:
            points += [point ^ digit.column for point in points]
        else:
            points = [point + n * digit.stride for n in range(digit.size) for point in points]
    return points


def _fitted(
    values: Sequence[int],
    grid: Sequence[_Digit],
    unpacked: Callable[[int], tuple[int, ...]],
    inner: Layout,
) -> tuple[list[Bit], list[Forced]]:
    """The digits of a grid as linear bits or digits that are added, so that they give `values`."""
    bits, forced = list[Bit](), list[Forced]()
    expected, where = [values[0]], [0]
    place = 1
    for digit in grid:
        column = _column(values, place) if digit.size == 2 else None
        if column is not None:
            bits.append(Bit(digit.axis, digit.place, column))
        else:
            steps = zip(unpacked(values[0]), unpacked(values[place]), strict=True)
            stride = values[place] - values[0]
            expected = [value + n * stride for n in range(digit.size) for value in expected]
            where = [index + n * place for n in range(digit.size) for index in where]
            if any(b < a for a, b in steps) or any(
                values[index] != value for index, value in zip(where, expected, strict=True)
            ):
                raise LayoutError(
                    f"Mode {_mode_at(inner, digit)} of axis {digit.axis} does not fit the outer "
                    "layout: its digit is neither a sum nor a flip of fixed bits there."
                )
            forced.append(Forced(digit.axis, digit.place, digit.size, stride))
        place *= digit.size
    return bits, forced


def _column(values: Sequence[int], place: int) -> int | None:
    """What a bit at this place of the grid flips, if that is the same everywhere."""
    column = values[0] ^ values[place]
    for low in range(0, len(values), 2 * place):
        high = low + place
        if any(a ^ b != column for a, b in zip(values[low:high], values[high:], strict=False)):
            return None
    return column


def _mode_at(layout: Layout, digit: _Digit) -> Mode:
    """The mode that a digit belongs to."""
    place = 1
    for mode in coalesced(layout.axis(digit.axis).modes):
        place *= mode.size
        if digit.place < place:
            return mode
    raise LayoutError(f"Axis {digit.axis} has no digit at {digit.place}.")
