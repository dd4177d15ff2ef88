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
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fragir.layout.arguments import point, takes
from fragir.layout.composition import compose
from fragir.layout.condition import condition_for
from fragir.layout.digits import Digit, along, digits_of
from fragir.layout.layout import Layout
from fragir.layout.modes import LARGEST_TABLE, Axis, Condition, LayoutError, Mode, Point, coalesced


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
            if (moved := _moved(c, chosen, keep=isinstance(part, slice))) is not None
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


def _moved(condition: Condition, chosen: range, keep: bool) -> Condition | None:
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
    start = point(start, layout.rank, "the start")
    shape = point(shape, layout.rank, "the shape", 1)
    layout.axis(element)
    for name, at, extent, whole in zip(layout.dims, start, shape, layout.shape, strict=True):
        if at + extent > whole or at % extent:
            raise LayoutError(f"A part of {extent} from {at} on does not tile {name} {whole}.")
    if layout.exclusive:
        from fragir.layout.flipped_parts import flipped_part

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
        for mode in coalesced(axis.modes):
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
