"""Parts of a layout: fixed coordinates, ranges of coordinates, and sub-tiles of the matrix.

>>> from fragir.layout.layout import Layout
>>> tile = Layout.parse("warp [2:(16,0) 2:(0,8)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> print(restrict(tile, warp=3, element=slice(2, 4)))
lane [4:(0,2) 8:(1,0)] element [2:(0,1)] offset (24,8)

The part of the tile from row 16 on, eight rows high: the other half of the elements falls away, and
only odd warps hold something of it.

>>> part = subtile(tile, (16, 0), (8, 16))
>>> print(part.layout)
warp [2:(0,0) 2:(0,8)] lane [4:(0,2) 8:(1,0)] element [2:(0,1)] where warp/1%2==1
>>> part.elements                              # where they were in the whole
(0, 1)

Sub-tiles of layouts with exclusive-ored digits.

Each dimension is cut at the part's extent, which is a composition, exact or refused: the layout
then says which part an element lies in and where in it. Digits that move from part to part must
have one value in the part that is asked for; the others stay.

>>> from fragir.layout.layout import Layout
>>> tile = Layout.parse("lane [8:^(1,8)] element [8:(0,1) 8:(0,8)]")
>>> flipped_part(tile, (0, 0), (4, 64), "element")[0]
Layout.parse('lane [4:^(1,8) 2:(0,0)] element [64:(0,1)] where lane/4%2==0')

In the second half of the rows the columns are flipped by 32 too:

>>> flipped_part(tile, (4, 0), (4, 64), "element")[0]
Layout.parse('lane [4:^(1,8) 2:(0,0)] element [32:(0,1) 2:^(0,32)] offset (0,32) where lane/4%2==1')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import NamedTuple

from fragir.layout.arguments import require_point, takes
from fragir.layout.composition import compose
from fragir.layout.digits import Digit, along, digits_of, unit
from fragir.layout.exclusive import Bit, Forced, LayoutKernel
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import (
    LARGEST_TABLE,
    Axis,
    Condition,
    LayoutError,
    Mode,
    Point,
    coalesce_modes,
)

# -- condition -------------------------------------------------------------------------------------
# Recognising which coordinates of an axis hold something as one condition.


def condition_for(axis: str, held: Sequence[bool]) -> Condition | None:
    """The condition that holds for exactly these coordinates 0, 1, ... of an axis, if there is one.

    The smallest divisor and then the smallest modulus are chosen.

    >>> print(condition_for("lane", [lane < 16 for lane in range(32)]))
    lane/16%2==0
    >>> condition_for("lane", [lane in (1, 2, 5) for lane in range(8)])
    """
    held = list(held)
    if True not in held:
        return None
    first = held.index(True)
    for divisor in range(1, len(held) + 1):
        if first % divisor:
            continue
        value = first // divisor
        for modulus in range(value + 1, len(held) // divisor + 2):
            condition = Condition(axis, divisor, modulus, value)
            if [condition(x) for x in range(len(held))] == held:
                return condition
    return None


@takes(Layout)
def restrict(layout: Layout, **parts: int | slice) -> Layout:
    """The layout for fixed coordinates (`warp=3`, the axis goes) or ranges (`element=slice(2, 4)`).

    A range has a start, an end and a positive step, and its coordinates count from zero again.
    Raises LayoutError where the range cuts through a mode, where a condition holds for a part of
    the range only, or where nothing is left.
    """
    outer = replace(layout, where=())
    axes: list[Axis] = []
    origin: list[int] = []
    where: list[Condition] = []
    for index, axis in enumerate(layout.axes):
        part = parts.pop(axis.name, slice(None))
        chosen = _range(axis, part)
        where += [
            moved
            for c in layout.where
            if c.axis == axis.name
            if (moved := _moved_condition(c, chosen, keep=isinstance(part, slice))) is not None
        ]
        origin.append(chosen.start)
        if isinstance(part, slice):
            stride = tuple(chosen.step if other == index else 0 for other in range(len(outer.axes)))
            axes.append(Axis(axis.name, (Mode(len(chosen), stride),)))
    for name in parts:
        layout.axis(name)
    inner = Layout(tuple(axes), layout.names, tuple(origin), tuple(where))
    return compose(outer, inner)


def _range(axis: Axis, part: int | slice) -> range:
    if isinstance(part, int):
        if not 0 <= part < axis.size:
            raise LayoutError(f"{axis.name}={part} is outside of its axis, 0 to {axis.size - 1}.")
        return range(part, part + 1)
    chosen = range(*part.indices(axis.size))
    if not chosen or chosen.step < 1:
        raise LayoutError(f"{axis.name}={part} selects nothing of its axis of size {axis.size}.")
    return chosen


def _moved_condition(condition: Condition, chosen: range, keep: bool) -> Condition | None:
    """The condition for the coordinates of a range, counted from zero; None if it always holds."""
    if len(chosen) > LARGEST_TABLE:
        raise LayoutError(f"Condition {condition} on {len(chosen)} coordinates is not looked at.")
    held = [condition(x) for x in chosen]
    if all(held):
        return None
    if not any(held):
        raise LayoutError(f"Nothing is left: condition {condition} holds nowhere in {chosen}.")
    period = condition.divisor * condition.modulus
    if keep and chosen.step == 1 and chosen.start % period == 0:
        return condition
    candidate = condition_for(condition.axis, held)
    if candidate is not None:
        return candidate
    raise LayoutError(f"Condition {condition} cannot be said for {chosen} of its axis.")


class Part(NamedTuple):
    """A sub-tile: its layout, and for each of its elements which element of the whole it was."""

    layout: Layout
    elements: tuple[int, ...]


@takes(Layout)
def subtile(layout: Layout, start: Point, shape: Point, element: str = "element") -> Part:
    """The part of a tile that begins at `start`; its coordinates count from there.

    The axis `element` shrinks to what lies in the part. The other axes keep their coordinates:
    who holds nothing of the part is excluded by a condition. Raises LayoutError naming the mode
    that the part's border cuts at a place that does not divide, and, of bits that are flipped,
    where several together decide what lies in the part.
    """
    if any(c.axis == element for c in layout.where):
        raise LayoutError(f"A layout with a predicate over {element} has no sub-tile: {layout}.")
    start = require_point(start, layout.rank, "the start")
    shape = require_point(shape, layout.rank, "the shape", 1)
    layout.axis(element)
    for name, at, extent, whole in zip(layout.dims, start, shape, layout.shape, strict=True):
        if at + extent > whole or at % extent:
            raise LayoutError(f"A part of {extent} from {at} on does not tile {name} {whole}.")
    if layout.exclusive:
        return Part(*flipped_part(layout, start, shape, element))
    if layout.offset:
        raise LayoutError(f"A layout with an offset has no sub-tile; shift it to zero: {layout}.")
    plan = _Borders(layout, start, shape)
    axes: list[Axis] = []
    where = list(layout.where)
    kept: list[Mode] = []  # of the element axis: sizes, with how far they step in the whole
    base = 0
    for axis in layout.axes:
        modes: list[Mode] = []
        place = 1
        for mode in coalesce_modes(axis.modes):
            for piece, fixed in plan.pieces(mode):
                if fixed is None:
                    modes.append(piece)
                    if axis.name == element:
                        kept.append(Mode(piece.size, (place,)))
                elif axis.name == element:
                    base += fixed * place
                else:
                    modes.append(Mode(piece.size, (0,) * layout.rank))
                    where.append(Condition(axis.name, place, piece.size, fixed))
                place *= piece.size
        axes.append(Axis(axis.name, tuple(modes)))
    elements = tuple(base + point[0] for point in Axis(element, tuple(kept)).points(1))
    part = Layout(tuple(axes), layout.dims, (), tuple(where))
    return Part(part, elements)


class _Borders:
    """How the border of a part cuts each mode: inside (kept) or beyond (fixed to a digit)."""

    def __init__(self, layout: Layout, start: Point, shape: Point) -> None:
        self.layout, self.extent = layout, shape
        self.fixed: list[dict[int, int]] = []  # per dimension: stride -> digit of the part's start
        digits = digits_of(layout, "No sub-tile")
        for dim, (name, at, extent) in enumerate(zip(layout.dims, start, shape, strict=True)):
            self.fixed.append(self._digits_of_start(along(digits, dim), name, at, extent))

    def _digits_of_start(
        self, digits: list[Digit], name: str, at: int, extent: int
    ) -> dict[int, int]:
        fixed: dict[int, int] = {}
        rest = at
        reach = sum(digit.stride * (digit.size - 1) for digit in digits)
        for digit in reversed(digits):
            stride, size = digit.stride, digit.size
            reach -= stride * (size - 1)
            if stride <= reach:
                raise LayoutError(f"No sub-tile: {digit} overlaps finer ones along {name}.")
            if stride * size <= extent:
                continue
            if stride < extent:
                if extent % stride or size % (extent // stride):
                    raise LayoutError(
                        f"No sub-tile: {digit} is cut at {name} {extent}, which does not divide it."
                    )
                stride, size = extent, size // (extent // stride)
            elif stride % extent:
                raise LayoutError(f"No sub-tile: {extent} along {name} does not divide {digit}.")
            fixed[stride] = min(rest // stride, size - 1)
            rest -= fixed[stride] * stride
        if rest:
            raise LayoutError(f"Nothing is held from {name} {at} on.")
        return fixed

    def pieces(self, mode: Mode) -> list[tuple[Mode, int | None]]:
        """The mode as pieces, each with the digit it is fixed to or None where it is kept."""
        dim = next((dim for dim, stride in enumerate(mode.stride) if stride), None)
        if dim is None:
            return [(mode, None)]
        stride, extent, fixed = mode.stride[dim], self.extent[dim], self.fixed[dim]
        if stride * mode.size <= extent:
            return [(mode, None)]
        if stride >= extent:
            return [(mode, fixed[stride])]
        inside = extent // stride
        upper = Mode(mode.size // inside, tuple(s * inside for s in mode.stride))
        return [(Mode(inside, mode.stride), None), (upper, fixed[extent])]


_Digit = tuple[str, int]
"""The axis of a digit and its place there."""


def flipped_part(
    layout: Layout, start: Point, shape: Point, element: str
) -> tuple[Layout, tuple[int, ...]]:
    """What `fragir.layout.subtile` says of a layout with exclusive-ored digits."""
    try:
        whole = compose(_cutter(layout, shape), replace(layout, where=()))
    except LayoutError as error:
        raise LayoutError(f"No sub-tile of {shape}: {error.message}") from error
    kernel = whole.kernel
    fixed = _fixed_digits(layout, kernel, start, shape)
    where = list(layout.where)
    elements = [0]
    axes: list[Axis] = []
    origin: list[int] = []
    for number, name in enumerate(layout.names):
        digits = sorted((d.place, d.size) for d in (*kernel.bits, *kernel.forced) if d.axis == name)
        modes: list[Mode] = []
        for place, size in digits:
            if (name, place) not in fixed:
                modes.append(Mode(size, unit(number, len(layout.names), place)))
                if name == element:
                    elements = [e + i * place for i in range(size) for e in elements]
            elif name != element:
                modes.append(Mode(size, (0,) * len(layout.names)))
                where.append(Condition(name, place, size, fixed[name, place]))
        axes.append(Axis(name, tuple(modes)))
        origin.append(sum(fixed.get((name, place), 0) * place for place, _ in digits))
    inside = tuple(
        Axis(axis.name, tuple(m.moving(m.size, m.step[: layout.rank]) for m in axis.modes))
        for axis in whole.axes
    )
    part = compose(
        Layout(inside, layout.dims, whole.origin[: layout.rank]),
        Layout(tuple(axes), layout.names, tuple(origin), tuple(where)),
    )
    base = origin[layout.names.index(element)]
    return part.simplified(), tuple(base + number for number in elements)


def _cutter(layout: Layout, shape: Point) -> Layout:
    """From the layout's points to where they are in their part, and which part that is."""
    rank = layout.rank
    axes: list[Axis] = []
    for dim, (name, extent, whole) in enumerate(zip(layout.dims, shape, layout.shape, strict=True)):
        count = -(-whole // extent)
        if count == 1 or not extent & (extent - 1):  # flips within powers of two stay inside
            extent, count = _power(extent), _power(count)
        inside, which = unit(dim, 2 * rank, 1), unit(rank + dim, 2 * rank, 1)
        axes.append(Axis(name, (Mode(extent, inside), Mode(count, which))))
    return Layout(tuple(axes), (*layout.dims, *(f"part of {name}" for name in layout.dims)))


def _power(number: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


def _fixed_digits(
    layout: Layout, kernel: LayoutKernel, start: Point, shape: Point
) -> dict[_Digit, int]:
    """The values that digits have in a part; those that stay inside of all parts are not there.

    LayoutError where no one value does, or nothing is held there.
    """
    mask = (1 << kernel.width * layout.rank) - 1  # which part: the last dimensions are lowest
    wanted = 0
    for at, extent in zip(start, shape, strict=True):
        wanted = wanted << kernel.width | at // extent
    bits = [bit for bit in kernel.bits if bit.column & mask]
    span = Subspace()
    for number, bit in enumerate(bits):
        if not span.add(bit.column & mask, 1 << number):
            raise _undecided_error(layout, bit, shape)
    forced = [digit for digit in kernel.forced if digit.stride & mask]
    if prod(digit.size for digit in forced) > LARGEST_TABLE:
        raise LayoutError(f"No sub-tile: more than {LARGEST_TABLE} sums would be looked at.")
    found: dict[_Digit, int] | None = None
    for values in product(*(range(digit.size) for digit in forced)):
        steps = [value * digit.stride for value, digit in zip(values, forced, strict=True)]
        solution = span.solve((kernel.start + sum(steps)) & mask ^ wanted)
        if solution is None:
            continue
        if found is not None:
            raise _undecided_error(layout, forced[-1], shape)
        found = {(d.axis, d.place): value for value, d in zip(values, forced, strict=True)}
        found |= {(bit.axis, bit.place): solution >> n & 1 for n, bit in enumerate(bits)}
    if found is None:
        raise LayoutError(f"Nothing is held from {start} on in a part of {shape}.")
    return found


def _undecided_error(layout: Layout, digit: Bit | Forced, shape: Point) -> LayoutError:
    place = 1
    for mode in layout.axis(digit.axis).modes:
        place *= mode.size
        if place > digit.place:
            return LayoutError(
                f"No sub-tile of {shape}: in which part an element lies is decided by mode {mode} "
                f"of axis {digit.axis} together with others."
            )
    raise AssertionError("a digit is one of its axis")
