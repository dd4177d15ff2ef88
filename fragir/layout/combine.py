"""Rearranging layouts: more modes, other names, another order, an offset.

Four warps, two by two, around an accumulator of 16 by 8, that every warp repeats four times to the
right; and a second group of the same warps that holds copies:

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> tile = appended(appended(c, "element", (4, (0, 8))), "warp", (2, (16, 0)), (2, (0, 32)))
>>> print(tile)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)] warp [2:(16,0) 2:(0,32)]
>>> tile.shape, replicated(tile, "warp", 2).replication()
((32, 64), 2)
>>> print(transposed(c))
lane [4:(2,0) 8:(0,1)] element [2:(1,0) 2:(0,8)]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from fragir.layout.arguments import takes
from fragir.layout.exclusive import pack, unpack
from fragir.layout.fitting import fit_kernel
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, Condition, LayoutError, Mode, Point


@takes(Layout)
def appended(layout: Layout, name: str, *modes: tuple[int, Point]) -> Layout:
    """The layout with slower modes added to an axis; the axis is created (last) if it is new.

    Raises LayoutError where they would be added to bits that the layout flips.
    """
    added = tuple(Mode(size, stride) for size, stride in modes)
    if layout.exclusive:
        check_sum(layout, Layout((Axis(name, added),), layout.dims))
    if name not in layout.names:
        return replace(layout, axes=(*layout.axes, Axis(name, added)))
    axes = (Axis(a.name, a.modes + added) if a.name == name else a for a in layout.axes)
    return replace(layout, axes=tuple(axes))


@takes(Layout)
def replicated(layout: Layout, name: str, copies: int) -> Layout:
    """The layout with `copies` copies of everything along an axis (a mode of stride zero)."""
    return appended(layout, name, (copies, (0,) * layout.rank))


@takes(Layout, Layout)
def concatenated(fast: Layout, slow: Layout) -> Layout:
    """The sum of two layouts: axes that share a name get the modes of `fast`, then of `slow`.

    Offsets add; conditions of `slow` move up by the size of the axis in `fast`. Raises LayoutError
    if the dimensions differ, and where one flips bits that the other moves too.
    """
    if fast.dims != slow.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(fast.dims)}) and ({', '.join(slow.dims)}) differ."
        )
    if fast.exclusive or slow.exclusive:
        check_sum(fast, slow)
    axes = {axis.name: axis.modes for axis in fast.axes}
    for axis in slow.axes:
        axes[axis.name] = axes.get(axis.name, ()) + axis.modes
    sizes = fast.sizes
    # A condition of `fast` must not see the digits that `slow` adds above it.
    where = [_within(c, sizes[c.axis]) if c.axis in slow.names else c for c in fast.where]
    where += [replace(c, divisor=c.divisor * sizes.get(c.axis, 1)) for c in slow.where]
    offset = tuple(map(sum, zip(fast.origin, slow.origin, strict=True)))
    return Layout(tuple(Axis(n, m) for n, m in axes.items()), fast.dims, offset, tuple(where))


@takes(Layout)
def reordered(layout: Layout, names: Iterable[str]) -> Layout:
    """The layout with its axes in another order; all must be named."""
    names = tuple(names)
    if sorted(names) != sorted(layout.names):
        raise LayoutError(
            f"({', '.join(names)}) is not an order of the axes ({', '.join(layout.names)})."
        )
    return replace(layout, axes=tuple(layout.axis(name) for name in names))


@takes(Layout)
def renamed(layout: Layout, **names: str) -> Layout:
    """The layout with axes renamed: `renamed(layout, lane="thread")`."""
    for name in names:
        layout.axis(name)
    return replace(
        layout,
        axes=tuple(Axis(names.get(a.name, a.name), a.modes) for a in layout.axes),
        where=tuple(replace(c, axis=names.get(c.axis, c.axis)) for c in layout.where),
    )


@takes(Layout)
def merged(layout: Layout, name: str, names: Iterable[str]) -> Layout:
    """The layout with several axes joined to one, in this order, the first fastest.

    >>> d = Layout.parse("warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    >>> print(merged(d, "lane", ("lane", "warp")))
    lane [4:(0,2) 8:(1,0) 4:(16,0)] element [2:(0,1) 2:(8,0)]
    """
    names = tuple(names)
    places: dict[str, int] = {}
    place = 1
    modes: list[Mode] = []
    for part in names:
        places[part] = place
        place *= layout.size(part)
        modes += layout.axis(part).modes
    where: list[Condition] = []
    for c in layout.where:
        if c.axis in places:
            if c.axis != names[-1]:
                c = _within(c, layout.size(c.axis))
            c = Condition(name, c.divisor * places[c.axis], c.modulus, c.value)
        where.append(c)
    axes: list[Axis] = []
    for axis in layout.axes:
        if axis.name == names[0]:
            axes.append(Axis(name, tuple(modes)))
        elif axis.name not in names:
            axes.append(axis)
    return Layout(tuple(axes), layout.dims, layout.offset, tuple(where))


@takes(Layout)
def split(layout: Layout, name: str, **sizes: int) -> Layout:
    """The layout with one axis cut into several, the first fastest; the inverse of `merged`.

    Raises LayoutError where the sizes do not multiply to the axis's size, cut through a mode that
    they do not divide, or where a condition would be cut.

    >>> d = Layout.parse("lane [4:(0,2) 8:(1,0) 4:(16,0)] element [2:(0,1) 2:(8,0)]")
    >>> print(split(d, "lane", lane=32, warp=4))
    lane [4:(0,2) 8:(1,0)] warp [4:(16,0)] element [2:(0,1) 2:(8,0)]
    """
    axis = layout.axis(name)
    if prod(sizes.values()) != axis.size:
        raise LayoutError(f"{axis} has the size {axis.size}, not {prod(sizes.values())}.")
    rest = list(axis.modes)
    parts: list[Axis] = []
    for part, size in sizes.items():
        taken, rest = cut(rest, size, name)
        parts.append(Axis(part, tuple(taken)))
    where: list[Condition] = []
    for c in layout.where:
        if c.axis == name:
            c = _split_condition(c, sizes)
        where.append(c)
    axes: list[Axis] = []
    for old in layout.axes:
        axes += parts if old.name == name else [old]
    return Layout(tuple(axes), layout.dims, layout.offset, tuple(where))


def cut(modes: Iterable[Mode], size: int, name: str) -> tuple[list[Mode], list[Mode]]:
    """The modes of the first `size` coordinates of an axis, and those of what is above them."""
    below: list[Mode] = []
    above: list[Mode] = []
    for mode in modes:
        if size == 1:
            above.append(mode)
        elif size % mode.size == 0:
            below.append(mode)
            size //= mode.size
        elif mode.size % size == 0:
            below.append(mode.moving(size, mode.step))
            above.append(mode.moving(mode.size // size, tuple(size * s for s in mode.step)))
            size = 1
        else:
            raise LayoutError(f"Mode {mode} of axis {name} cannot be cut at {size}.")
    return below, above


def check_sum(first: Layout, second: Layout) -> None:
    """LayoutError where the digits of both in one layout would not be the sum of their points.

    Digits that are added stay a sum with others; where some are exclusive-ored, the bits that one
    layout reaches must be none of the other's.
    """
    width = max(first.kernel.width, second.kernel.width)
    reached = (_reached_bits(layout, width) for layout in (first, second))
    met = next(reached) & next(reached)
    if met:
        place = (met & -met).bit_length() - 1
        dim = first.dims[first.rank - 1 - place // width]
        raise LayoutError(
            f"Exclusive or and sum meet in {dim} {1 << place % width}: {first} and {second} do "
            "not add up to a layout."
        )


def _reached_bits(layout: Layout, width: int) -> int:
    """The bits that are set in any point, packed."""
    kernel = layout.kernel
    masks = [bit.column for bit in kernel.bits] + [cluster.mask for cluster in kernel.clusters]
    reached = 0
    for mask in masks:
        reached |= pack(kernel.point(mask), width)
    return reached


def _within(condition: Condition, size: int) -> Condition:
    """The condition as one of period `size`, for an axis that gets digits above it."""
    if size % (condition.divisor * condition.modulus) == 0:
        return condition
    values = size // condition.divisor
    if size % condition.divisor or not condition.value < values <= condition.modulus:
        raise LayoutError(f"Condition {condition} does not fit the size {size} of its axis.")
    return replace(condition, modulus=values)


def _split_condition(condition: Condition, sizes: dict[str, int]) -> Condition:
    place = 1
    for part, size in sizes.items():
        c = condition
        inside = place * size % (c.divisor * c.modulus) == 0 and c.divisor % place == 0
        last = place * size == prod(sizes.values()) and c.divisor % place == 0
        if inside or last:
            return Condition(part, c.divisor // place, c.modulus, c.value)
        place *= size
    raise LayoutError(f"Condition {condition} would be cut into several axes.")


@takes(Layout)
def permuted(layout: Layout, dims: Iterable[str]) -> Layout:
    """The layout with its dimensions in another order; the names stay with their strides."""
    dims = tuple(dims)
    if sorted(dims) != sorted(layout.dims):
        raise LayoutError(
            f"({', '.join(dims)}) is not an order of the dimensions ({', '.join(layout.dims)})."
        )
    order = [layout.dims.index(dim) for dim in dims]
    return replace(_with_order(layout, order), dims=dims)


@takes(Layout)
def transposed(layout: Layout) -> Layout:
    """The layout of the transposed matrix: strides exchanged, names of the dimensions in place."""
    if layout.rank < 2:
        raise LayoutError(f"A layout of one dimension has no transpose: {layout}.")
    return _with_order(layout, [1, 0, *range(2, layout.rank)])


def _with_order(layout: Layout, order: list[int]) -> Layout:
    def pick(point: Point) -> Point:
        return tuple(point[dim] for dim in order)

    axes = tuple(
        Axis(a.name, tuple(m.moving(m.size, pick(m.step)) for m in a.modes)) for a in layout.axes
    )
    return replace(layout, axes=axes, offset=pick(layout.origin))


@takes(Layout)
def shifted(layout: Layout, by: Point) -> Layout:
    """The layout with `by` added to every point; negative steps may go back to zero, not below."""
    offset = tuple(a + b for a, b in zip(layout.origin, by, strict=True))
    if not layout.exclusive:
        return replace(layout, offset=offset)
    return _shifted_bits(layout, by)


def _shifted_bits(layout: Layout, by: Point) -> Layout:
    """`shifted` where modes are exclusive-ored: a flip may be another one after the step."""
    least, most = layout.kernel.bounds
    if any(low + step < 0 for low, step in zip(least, by, strict=True)):
        raise LayoutError(f"A step of {by} leads below zero from {least}, which {layout} holds.")
    reach = max(high + abs(step) for high, step in zip(most, by, strict=True)).bit_length()

    def moved(packed: int) -> int:
        point = unpack(packed, layout.rank, layout.kernel.width)
        return pack(tuple(x + step for x, step in zip(point, by, strict=True)), reach)

    kernel = fit_kernel(layout.kernel, moved, reach, layout.axes)
    return Layout(kernel.canonical, layout.dims, kernel.point(kernel.start), layout.where)


@takes(Layout)
def masked(layout: Layout, *conditions: Condition) -> Layout:
    """The layout with further conditions on who holds anything."""
    return replace(layout, where=(*layout.where, *conditions))
