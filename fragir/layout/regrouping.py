"""Layouts of tiles whose elements are counted otherwise: reshaped, parts of others, put together.

What every lane must hold on its own for that is a dimension of the tile cut into other dimensions.
The left half of the columns of an accumulator: of the columns, cut into two halves of 16, all lanes
must hold either half.

>>> from fragir.layout.layout import Layout
>>> tile = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]")
>>> half = window((Cutout(16, 0, 16), Cutout(32, 16, 16)))
>>> print(follow(tile, half))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]

Of the columns cut into pairs each lane holds one only, so that it cannot go on with every other
pair. Another layout can, near to this one: rows and columns change places.

>>> pairs = window((Cutout(16, 0, 16), Cutout(32, 0, 8)))
>>> rows = Layout.parse("lane [16:(0,2) 2:(8,0)] element [2:(0,1) 8:(1,0)]")
>>> follow(rows, pairs) is None
True
>>> print(nearest(rows, pairs))
lane [4:(0,2) 8:(2,0)] element [2:(0,1) 2:(1,0) 4:(0,8)]
>>> print(follow(nearest(rows, pairs), pairs))
lane [4:(0,2) 8:(2,0)] element [2:(0,1) 2:(1,0)]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd, lcm, prod
from typing import NamedTuple, TypeAlias

from fragir.layout.combine import permuted
from fragir.layout.distribution import ELEMENT, Distribution, dims_of
from fragir.layout.layout import Layout
from fragir.layout.modes import (
    Axis,
    LayoutError,
    Mode,
    Point,
    coalesce_modes,
)
from fragir.layout.reshaping import reshape

Shape: TypeAlias = tuple[int, ...]


class Regrouping(NamedTuple):
    """One way to count a tile's elements otherwise, if lanes hold enough of it.

    The dimensions are cut into `cut`, the last one fastest. Of some of these, by their numbers,
    every lane must hold all values; each becomes one of a size of its own (`held`). All together
    are then counted as `shape`, whose dimensions come in `order` at last.
    """

    cut: Shape
    held: tuple[tuple[int, int], ...]
    shape: Shape
    order: Shape = ()


Ways: TypeAlias = tuple[Regrouping, ...]
"""Regroupings that do the same; earlier ones ask less of a layout."""


# --- which regroupings there are ------------------------------------------------------------------


def turning_ways(shape: Shape, order: Shape) -> Ways:
    """From a tile to the one whose dimension i is its dimension `order[i]`."""
    return (Regrouping(shape, (), shape, order),)


class Cutout(NamedTuple):
    """Of a dimension of so many places `start`, `start + step`, ..., `length` of them."""

    size: int
    start: int
    length: int
    step: int = 1


@lru_cache(maxsize=1024)
def window(cutouts: tuple[Cutout, ...]) -> Ways:
    """From a tile to a part of it, with what is taken of every dimension.

    Where that begins and ends at multiples of a block, blocks may be spread over lanes.
    """
    return tuple(_windows(cutouts, whole=True))


@lru_cache(maxsize=1024)
def around(cutouts: tuple[Cutout, ...]) -> Ways:
    """The way back: from such a part to the whole tile."""
    return tuple(_windows(cutouts, whole=False))


def _windows(cutouts: tuple[Cutout, ...], whole: bool) -> Iterator[Regrouping]:
    """The windows with the largest blocks, then with smaller ones; from the whole tile or to it."""
    choices = [list(_blocks(c)) if c.length < c.size else [] for c in cutouts]
    for number in range(max(1, *map(len, choices))):
        cut: list[int] = []
        held: list[tuple[int, int]] = []
        for cutout, blocks in zip(cutouts, choices, strict=True):
            if not blocks:
                cut.append(cutout.size)
                continue
            all_, block, lowest = blocks[min(number, len(blocks) - 1)]
            (old, new) = (all_, lowest), (cutout.length // block, 1)
            if not whole:
                old, new = new, old
            held += [(len(cut), new[0]), (len(cut) + 2, new[1])]
            cut += [old[0], block, old[1]]
        yield Regrouping(tuple(cut), tuple(held), tuple(c[2 if whole else 0] for c in cutouts))


def _blocks(cutout: Cutout) -> Iterator[tuple[int, int, int]]:
    """Sizes of (blocks, places in a block, places between two steps) that a cutout respects."""
    size, start, count, step = cutout
    if size % step:
        yield size, 1, 1
        return
    places = size // step
    common = gcd(start // step, count, places)
    for block in range(common, 0, -1):
        if common % block == 0:
            yield places // block, block, step


@lru_cache(maxsize=1024)
def reshaping_ways(old: Shape, new: Shape) -> Ways:
    """From a tile of one shape to another with as many elements, in the order of rows.

    Where a border of one shape cuts a dimension of the other where it does not divide it, lanes
    hold all that lies between the borders of both.
    """
    if prod(old) != prod(new):
        raise LayoutError(f"{_by(old)} and {_by(new)} do not have as many elements.")
    cut = list(_common(old, new))[::-1] or [(1, False)]
    held = tuple((number, size) for number, (size, torn) in enumerate(cut) if torn)
    return (Regrouping(tuple(size for size, _ in cut), held, new),)


def _common(old: Shape, new: Shape) -> Iterator[tuple[int, bool]]:
    """Sizes that both shapes are cut into, the fastest first, and whether borders cross in one."""
    first, second = ([n for n in shape if n > 1] for shape in (old, new))
    while first:
        size = gcd(first[-1], second[-1])
        if size > 1:
            yield size, False
        else:
            size = _crossing(first, second)
            yield size, True
            continue
        for sizes in (first, second):
            sizes[-1] //= size
            if sizes[-1] == 1:
                sizes.pop()


def _crossing(first: list[int], second: list[int]) -> int:
    """The fewest elements at whose end both shapes have a border; they are taken off both."""
    mine, other = first.pop(), second.pop()
    while mine != other:
        both = lcm(mine, other)
        sizes, taken = (first, mine) if mine < both and mine < other else (second, other)
        size = sizes.pop()
        part = gcd(size, both // taken)
        if part == 1:
            part = size
        elif size > part:
            sizes.append(size // part)
        if sizes is first:
            mine *= part
        else:
            other *= part
    return mine


def without_last(shape: Shape) -> Ways:
    """From a tile to what stands at one place along its last dimension."""
    return (Regrouping(shape, ((len(shape) - 1, 1),), shape[:-1]),)


def with_last(shape: Shape, size: int) -> Ways:
    """From a tile to one with another dimension behind the others."""
    return (Regrouping((*shape, 1), ((len(shape), size),), (*shape, size)),)


# --- what layouts follow --------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def follow(layout: Layout, ways: Ways) -> Layout | None:
    """The layout that a regrouped tile has where its elements are; None where lanes lack some."""
    for way in ways:
        try:
            return _follow(layout, way)
        except LayoutError:
            continue
    return None


def _follow(layout: Layout, way: Regrouping) -> Layout:
    names = _names(len(way.cut))
    found = reshape(layout, dict(zip(names, way.cut, strict=True)))
    for number, size in way.held:
        found = _held_layout(found, names[number], size)
    found = reshape(found, _sizes(way.shape))
    if way.order:
        names = found.dims
        found = replace(permuted(found, [names[dim] for dim in way.order]), dims=names)
    return found.simplified()


def _held_layout(layout: Layout, dim: str, size: int) -> Layout:
    """The layout with another size along a dimension of which lanes hold everything."""
    at = layout.dims.index(dim)
    one = tuple(int(number == at) for number in range(layout.rank))
    if layout.origin[at] or any(c.axis == ELEMENT for c in layout.where):
        raise LayoutError(f"Not all of {dim} is held in {layout}.")
    axes: dict[str, tuple[Mode, ...]] = {ELEMENT: ()}
    place = -1
    for axis in layout.axes:
        kept: list[Mode] = []
        for mode in coalesce_modes(axis.modes):
            if not mode.step[at]:
                kept.append(mode)
            elif axis.name != ELEMENT or sum(map(bool, mode.step)) > 1:
                raise LayoutError(f"Mode {mode} of axis {axis.name} moves {dim}, and not alone.")
            elif place < 0:
                place = len(kept)
        axes[axis.name] = tuple(kept)
    if size > 1:
        elements = axes[ELEMENT]
        place = place if place >= 0 else len(elements)
        axes[ELEMENT] = (*elements[:place], Mode(size, one), *elements[place:])
    order = layout.names if ELEMENT in layout.names else (*layout.names, ELEMENT)
    found = tuple(Axis(name, axes[name]) for name in order)
    return Layout(found, layout.dims, layout.offset, layout.where)


@lru_cache(maxsize=1024)
def nearest(layout: Layout, ways: Ways) -> Layout:
    """A layout of the same tile and threads that can be regrouped.

    What lanes and warps should hold all of and do not goes into their elements, and other elements
    to the lanes for it; where there are none, lanes hold copies.
    """
    shape = layout.shape
    for way in ways:
        names = _names(len(way.cut))
        held = [names[number] for number, _ in way.held]
        try:
            cut = reshape(layout, dict(zip(names, way.cut, strict=True)))
            found = reshape(_exchange_digits(cut, held), _sizes(shape)).simplified()
        except LayoutError:
            continue
        if follow(found, ways) is not None:
            return found
    way = ways[0]
    names = _names(len(way.cut))
    sizes = dict(zip(names, way.cut, strict=True))
    plain = _in_order(layout, sizes, [names[number] for number, _ in way.held])
    return reshape(plain, _sizes(shape)).simplified()


def _exchange_digits(layout: Layout, held: Collection[str]) -> Layout:
    """Digits of lanes and warps along some dimensions change places with digits of elements."""
    if layout.where:
        raise LayoutError(f"A layout with a predicate has no digits to exchange: {layout}.")
    numbers = [layout.dims.index(name) for name in held]
    still = (0,) * layout.rank

    def moves(mode: Mode) -> bool:
        return any(mode.step[number] for number in numbers)

    axes = {axis.name: list(coalesce_modes(axis.modes)) for axis in layout.axes}
    elements = axes.setdefault(ELEMENT, [])
    for name, modes in axes.items():
        if name == ELEMENT:
            continue
        others: list[Mode] = []
        for mode in modes:
            if not moves(mode):
                others.append(mode)
                continue
            left = mode.size
            for number in reversed(range(len(elements))):
                given = elements[number]
                part = 1 if moves(given) else gcd(left, given.size)
                if part > 1:
                    rest = given.size // part
                    elements[number] = given.moving(rest, given.step)
                    others.append(given.moving(part, tuple(rest * s for s in given.step)))
                    left //= part
            if left > 1:
                others.append(Mode(left, still))
            elements.append(mode)
        axes[name] = others
    found = tuple(Axis(name, tuple(m for m in modes if m.size > 1)) for name, modes in axes.items())
    return Layout(found, layout.dims, layout.offset)


def _in_order(layout: Layout, sizes: dict[str, int], held: Collection[str]) -> Layout:
    """Rows in order over the lanes and warps of a layout, some dimensions in elements only."""
    threads = [axis for axis in layout.axes if axis.name != ELEMENT]
    names, shape = tuple(sizes), tuple(sizes.values())
    order = range(len(names) - 1, -1, -1)
    tile = Distribution((1,) * len(names), {**{axis.name: () for axis in threads}, ELEMENT: ()})
    for axis in reversed(threads):
        tile.share(axis.name, axis.size, shape, [dim for dim in order if names[dim] not in held])
    tile.fit(shape, order)
    return tile.layout(names)


@lru_cache(maxsize=1024)
def are_alike(first: Layout, second: Layout) -> bool:
    """Whether lanes hold the same elements of a tile in both layouts, in whatever order."""
    if first == second:
        return True
    mine, others = (
        {axis.name: axis.modes for axis in side.simplified().axes if axis.modes}
        for side in (first, second)
    )
    if first.origin != second.origin or set(first.where) != set(second.where):
        return False
    if mine == others:
        return True
    if first.exclusive or second.exclusive:
        return False
    points = (sorted(element_points(side)) for side in (first, second))
    mine.pop(ELEMENT, None)
    others.pop(ELEMENT, None)
    return mine == others and next(points) == next(points)


@lru_cache(maxsize=256)
def element_points(layout: Layout) -> tuple[Point, ...]:
    """Where the elements of the first lane of the first warp stand, in their order."""
    if ELEMENT not in layout.names:
        return (layout.origin,)
    whole = Layout(layout.axes, layout.dims, layout.offset)
    zeros = {axis.name: 0 for axis in whole.axes}
    found = (whole(**{**zeros, ELEMENT: number}) for number in range(whole.size(ELEMENT)))
    return tuple(point for point in found if point is not None)


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"d{number}" for number in range(count))


def _sizes(shape: Sequence[int]) -> dict[str, int]:
    return dict(zip(dims_of(len(shape)), shape, strict=True))


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
