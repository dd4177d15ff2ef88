"""Functions of digits, such as compositions, written as digits that are added or exclusive-ored.

A linear bit of the inner layout whose column touches linear bits of the outer layout only moves the
composed point by the outer columns, whatever else the point is. What is left, digits that are added
and bits that reach those of the outer layout, is a grid; there the composition is tabulated, and
each digit must be a flip of fixed bits or a step that adds up with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fragir.layout.exclusive import Bit, Forced, LayoutKernel, unpack
from fragir.layout.modes import Axis, LayoutError

MOST_SHIFT = 64
"""Bits of an address; a swizzle beyond them is a mistake."""

LARGEST_GRID = 1 << 16
"""Points of the composition that are looked at one by one."""


def compose_kernels(
    outer: LayoutKernel, inner: LayoutKernel, order: Sequence[int], axes: Sequence[Axis]
) -> LayoutKernel:
    """The kernel of x -> outer(inner(x)); `inner` must stay inside of the axes of `outer`.

    `order` is the dimension of the inner layout for every axis of the outer one, `axes` are those
    of the inner one. Raises LayoutError naming the mode of which a digit is neither a sum nor a
    flip in the composition.
    """
    coordinates = _Coordinates(outer, inner, order)
    bits = list[Bit]()
    grid = [GridDigit(d.axis, d.place, d.size, d.stride) for d in inner.forced]
    for bit in inner.bits:
        column = coordinates.column(bit.column)
        if column is None:
            grid.append(GridDigit(bit.axis, bit.place, 2, 0, bit.column))
        else:
            bits.append(Bit(bit.axis, bit.place, column))
    values = list(map(coordinates.value, _points(inner.start, grid)))
    linear, forced = digits_of(values, grid, outer.point, axes)
    return LayoutKernel(inner.names, outer.rank, outer.width, values[0], bits + linear, forced)


def fit_kernel(
    kernel: LayoutKernel, function: Callable[[int], int], width: int, axes: Sequence[Axis]
) -> LayoutKernel:
    """The kernel of x -> function(layout(x)), which is asked for every point.

    Points are packed, those of the function with `width` bits a dimension. Raises LayoutError
    naming the mode of which a digit is neither a sum nor a flip.
    """
    grid = [GridDigit(d.axis, d.place, d.size, d.stride) for d in kernel.forced]
    grid += [GridDigit(bit.axis, bit.place, 2, 0, bit.column) for bit in kernel.bits]
    values = list(map(function, _points(kernel.start, grid)))
    bits, forced = digits_of(values, grid, lambda packed: unpack(packed, kernel.rank, width), axes)
    return LayoutKernel(kernel.names, kernel.rank, width, values[0], bits, forced)


def swizzled_kernel(
    inner: LayoutKernel, axes: Sequence[Axis], swizzle: tuple[int, int, int]
) -> LayoutKernel:
    """The kernel of a layout with these axes whose points CuTe's swizzle permutes.

    Raises LayoutError for more than one dimension, and where that is no layout.
    """
    if inner.rank != 1:
        raise LayoutError(f"A swizzle permutes numbers; this layout has {inner.rank} dimensions.")
    outer = swizzle_kernel(swizzle, inner.width, "index")
    try:
        return compose_kernels(outer, inner, (0,), axes)
    except LayoutError as error:
        error.hint = "a SharedLayout keeps layout and swizzle apart"
        raise


def swizzle_kernel(swizzle: tuple[int, int, int], width: int, name: str) -> LayoutKernel:
    """CuTe's swizzle of numbers of `width` bits as a layout from them to them.

    Bits from `base` up are changed by those `shift` above; a negative shift changes the upper ones.
    """
    bits, base, shift = swizzle
    if bits < 0 or base < 0 or abs(shift) < bits or max(bits, base, abs(shift)) > MOST_SHIFT:
        raise LayoutError(f"The swizzle ({bits},{base},{shift}) moves bits onto themselves.")
    low = base + max(-shift, 0)
    columns = [1 << place for place in range(width)]
    for to in range(low, low + bits):
        if 0 <= to + shift < width:
            columns[to + shift] |= 1 << to
    moves = [Bit(name, 1 << place, column) for place, column in enumerate(columns)]
    return LayoutKernel((name,), 1, max(width, low + bits), 0, moves, ())


class GridDigit(NamedTuple):
    """A digit of the grid: it adds `stride` to the inner layout's point or flips `column`."""

    axis: str
    place: int
    size: int
    stride: int = 0
    column: int = 0


class _Coordinates:
    """The outer layout as a function of the inner layout's points, both packed."""

    def __init__(self, outer: LayoutKernel, inner: LayoutKernel, order: Sequence[int]) -> None:
        self.start = outer.start
        width = inner.width
        self.mask = (1 << width) - 1
        self.axes: list[tuple[int, dict[int, int]]] = []  # (where the coordinate is, its bits)
        self.moves: list[Callable[[int], tuple[int, int]]] = []
        self.known: list[dict[int, tuple[int, int]]] = [{} for _ in order]
        for name, dim in zip(outer.names, order, strict=True):
            columns = {bit.place: bit.column for bit in outer.bits if bit.axis == name}
            self.axes.append(((inner.rank - 1 - dim) * width, columns))
            self.moves.append(_mover(name, outer))

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


def _mover(axis: str, kernel: LayoutKernel) -> Callable[[int], tuple[int, int]]:
    """From a coordinate of an axis to (what it adds, what it flips)."""
    digits = [(d.place, d.size, d.stride) for d in kernel.forced if d.axis == axis]
    bits = [(bit.place, bit.column) for bit in kernel.bits if bit.axis == axis]

    def move(coordinate: int) -> tuple[int, int]:
        flips = 0
        for place, column in bits:
            if coordinate // place & 1:
                flips ^= column
        return sum(coordinate // place % size * step for place, size, step in digits), flips

    return move


def _points(start: int, grid: Sequence[GridDigit]) -> list[int]:
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


def digits_of(
    values: Sequence[int],
    grid: Sequence[GridDigit],
    unpacked: Callable[[int], tuple[int, ...]],
    axes: Sequence[Axis] = (),
) -> tuple[list[Bit], list[Forced]]:
    """The digits of a grid as linear bits or digits that are added, so that they give `values`.

    Raises LayoutError naming the mode of `axes`, or the digit, that is neither.
    """
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
                    f"{_mode_of(digit, axes)} of axis {digit.axis} does not fit the outer layout: "
                    "its digit is neither a sum nor a flip of fixed bits there."
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


def _mode_of(digit: GridDigit, axes: Sequence[Axis]) -> str:
    """The mode that a digit belongs to, for messages."""
    place = 1
    for mode in next((axis.modes for axis in axes if axis.name == digit.axis), ()):
        place *= mode.size
        if digit.place < place:
            return f"Mode {mode}"
    return f"The digit at {digit.place}"
