"""Layouts of tiles that have a dimension less: of rows' sums, of a column that is repeated.

The accumulator of a product, and what it leaves of a tile's rows, one value each: four lanes that
had a row between them all have its sum.

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> print(reduced(c, "col"))
lane [4:0 8:1] element [2:8]
>>> spread(c, "col")
Spread(elements=2, masks=(1, 2), warps=1)
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from fragir.layout.arguments import takes
from fragir.layout.f2 import independent
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, XorMode, default_dims
from fragir.layout.replicas import overlaps
from fragir.layout.reshaping import sublayout

ELEMENT, LANE, WARP = "element", "lane", "warp"


@takes(Layout)
def reduced(layout: Layout, dim: str) -> Layout:
    """The layout without a dimension (Triton's slice): who held a part of a row holds its value.

    Elements that differ along the dimension alone become one; lanes and warps become copies. Raises
    LayoutError where there is no such dimension, or no other, and for a predicate of elements.
    """
    if dim not in layout.dims:
        raise LayoutError(f"The layout has no dimension {dim}; it has {', '.join(layout.dims)}.")
    if layout.rank == 1:
        raise LayoutError(f"A layout of one dimension has none besides {dim}.")
    if any(condition.axis == ELEMENT for condition in layout.where):
        raise LayoutError(f"A layout with a predicate of elements is not reduced: {layout}.")
    found = sublayout(layout, dims=tuple(name for name in layout.dims if name != dim))
    axes = tuple(
        Axis(a.name, tuple(m for m in a.modes if a.name != ELEMENT or any(m.step)))
        for a in found.axes
    )
    return _distinct(Layout(axes, default_dims(found.rank), found.offset, found.where))


def _distinct(layout: Layout) -> Layout:
    """The layout with no two elements of a lane alike, where bits are exclusive-ored."""
    if not layout.exclusive or ELEMENT not in layout.names:
        return layout
    columns = layout.kernel.packed_columns(ELEMENT)
    kept = independent(columns)
    if len(kept) == len(columns):
        return layout
    bits = Axis(ELEMENT, tuple(XorMode(2, layout.kernel.point(column)) for column in kept))
    axes = tuple(bits if axis.name == ELEMENT else axis for axis in layout.axes)
    return replace(layout, axes=axes).simplified()


class Spread(NamedTuple):
    """How what is combined along a dimension is spread over hardware."""

    elements: int
    """Of every row a lane holds so many elements."""
    masks: tuple[int, ...]
    """Lanes l and l ^ mask hold different parts of a row."""
    warps: int
    """So many warps hold different parts of a row."""


@takes(Layout)
def spread(layout: Layout, dim: str) -> Spread | None:
    """How the elements along a dimension are spread; None where that is no matter of digits.

    So where a digit moves along another dimension too, under a predicate, and where a lane has what
    another has too, but elsewhere. Unless that is so because parts overlap: some elements then are
    counted several times (`fragir.layout.replicas.overlaps`).
    """
    at = layout.dims.index(dim)
    if layout.where or any(_is_mixed(m, at) for axis in layout.axes for m in axis.modes):
        return None
    found = {axis.name: axis.modes for axis in layout.axes}
    masks: list[int] = []
    weight = 1
    for mode in found.get(LANE, ()):
        if mode.step[at]:
            if mode.size & (mode.size - 1):
                return None
            masks += [weight << bit for bit in range(mode.size.bit_length() - 1)]
        weight *= mode.size
    along = {
        name: prod(mode.size for mode in found.get(name, ()) if mode.step[at])
        for name in (ELEMENT, WARP)
    }
    if along[ELEMENT] * along[WARP] << len(masks) != layout.shape[at] and all(
        overlap.dim != at for overlap in overlaps(layout)
    ):
        return None
    return Spread(along[ELEMENT], tuple(masks), along[WARP])


class SharedOut(NamedTuple):
    """How lanes that have parts of the same rows combine them."""

    pairs: tuple[int, ...]
    """At each bit of the lanes' numbers so many pairs of rows are shared out, the rest told."""
    price: float
    """Half cycles of an SM for one warp, and operations of one instruction."""


@lru_cache
def exchange(rows: int, bits: int) -> SharedOut:
    """The cheaper of two ways for rows of one register each.

    Lanes tell each other what they have of every row, at each bit: rows x bits shuffles. Or each of
    two lanes takes one row of a pair and passes the other on, one shuffle a pair, so that less is
    left for the next bit; at the end every row is fetched from a lane that has it.
    """
    from fragir.layout.planning.costs import COSTS

    told = COSTS.shuffle + 2 * COSTS.issue
    pairs: list[int] = []
    price, left = rows * (COSTS.shuffle + COSTS.issue), rows
    for _ in range(bits):
        pairs.append(left // 2)
        price += left // 2 * (told + 2 * COSTS.move) + left % 2 * told
        left -= left // 2
    if price < rows * bits * told:
        return SharedOut(tuple(pairs), price)
    return SharedOut((0,) * bits, rows * bits * told)


def _is_mixed(mode: Mode, at: int) -> bool:
    """Whether a digit moves along a dimension and along another too."""
    return bool(mode.step[at]) and sum(map(bool, mode.step)) > 1


@takes(Layout)
def gathered(layout: Layout, dim: str) -> Layout:
    """The layout in which whoever held a part of a row holds all of it, in its last elements."""
    at, axes = layout.dims.index(dim), list[Axis]()
    rows = None if layout.rank == 1 else reduced(layout, dim)
    for name in layout.names:
        if rows is not None:
            modes = [
                m.moving(m.size, _insert_coordinate(m.step, at, 0)) for m in rows.axis(name).modes
            ]
        else:
            modes = [Mode(layout.size(name), (0,))] if name != ELEMENT else []
        if name == ELEMENT:
            zeros = (0,) * (layout.rank - 1)
            modes.append(Mode(layout.shape[at], _insert_coordinate(zeros, at, 1)))
        axes.append(Axis(name, tuple(modes)))
    offset = () if rows is None else _insert_coordinate(rows.origin, at, 0)
    return Layout(tuple(axes), layout.dims, offset, () if rows is None else rows.where)


def _insert_coordinate(point: Point, at: int, value: int) -> Point:
    return (*point[:at], value, *point[at:])


@takes(Layout)
def by_warps(layout: Layout, dim: str) -> tuple[Layout, Layout]:
    """Two layouts of the parts that warps have of each row, counted in a dimension before others.

    In the first, every warp has its own part; in the second all of them, in its last elements. For
    layouts that `spread` knows.
    """
    at, count = layout.dims.index(dim), 1
    others = [other for other in range(layout.rank) if other != at]
    one: Point = (1, *(0 for _ in others))

    def across(mode: Mode) -> Mode:
        return mode.moving(mode.size, (0, *(mode.step[other] for other in others)))

    own: list[Axis] = []
    whole: list[Axis] = []
    for axis in layout.axes:
        modes = [across(mode) for mode in axis.modes]
        if axis.name == ELEMENT:
            modes = [mode for mode in modes if any(mode.step)]
        parts = list(modes)
        if axis.name == WARP:
            for number, mode in enumerate(axis.modes):
                if mode.step[at]:
                    parts[number] = Mode(mode.size, (count, *one[1:]))
                    count *= mode.size
        own.append(Axis(axis.name, tuple(parts)))
        whole.append(Axis(axis.name, tuple(modes)))
    whole = [Axis(a.name, (*a.modes, Mode(count, one))) if a.name == ELEMENT else a for a in whole]
    dims = ("part", *(layout.dims[other] for other in others))
    return Layout(tuple(own), dims), Layout(tuple(whole), dims)
