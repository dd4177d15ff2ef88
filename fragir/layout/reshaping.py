"""Other views of the same layout: fewer modes, other dimensions, parts of it, wider elements.

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [2:(0,2) 2:(0,4) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> print(coalesce(c))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
>>> print(reshape(c, {"half": 2, "row": 8, "col": 8}))
lane [4:(0,0,2) 8:(0,1,0)] element [2:(0,0,1) 2:(1,0,0)] dims (half,row,col)
>>> print(sublayout(c, ("lane",), ("row",)))
lane [4:0 8:1] dims (row)

Two neighbouring f16 along a row as one element of 32 bits:

>>> print(recast(c, 16, 32, "col"))
lane [4:(0,1) 8:(1,0)] element [2:(8,0)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import cast

from fragir.errors import kind_of, require_whole_number
from fragir.layout.arguments import require_names as names_of
from fragir.layout.arguments import takes
from fragir.layout.combine import permuted, reordered, transposed
from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, coalesce_modes


@takes(Layout)
def coalesce(layout: Layout, *axes: str) -> Layout:
    """The same function with as few modes as possible, in the named axes only if any are named.

    Neighbouring modes that go on where the faster one ends become one (CuTe's coalesce, axis by
    axis). `Layout.simplified` also gives each function one text.
    """
    for name in names_of(axes, "the axes") if axes else ():
        layout.axis(name)
    return replace(
        layout,
        axes=tuple(
            Axis(a.name, coalesce_modes(a.modes)) if a.name in axes or not axes else a
            for a in layout.axes
        ),
    )


@takes(Layout)
def transpose(
    layout: Layout, *, axes: Sequence[str] | None = None, dims: Sequence[str] | None = None
) -> Layout:
    """The layout with its axes and its dimensions in these orders (Triton's transposeIns, -Outs).

    Without an order it is the layout of the transposed matrix (`transposed`).

    >>> print(transpose(Layout.parse("lane [4:(0,2)]"), dims=("col", "row")))
    lane [4:(2,0)] dims (col,row)
    """
    if axes is None and dims is None:
        return transposed(layout)
    found = layout if axes is None else reordered(layout, names_of(axes, "the axes"))
    return found if dims is None else permuted(found, names_of(dims, "the dimensions"))


@takes(Layout)
def reshape(
    layout: Layout,
    dims: Mapping[str, int] | None = None,
    axes: Mapping[str, int] | None = None,
) -> Layout:
    """The layout with its points counted in other dimensions, or its slots in other axes.

    `dims` and `axes` are names with sizes in the order that numpy reshapes in, the last one
    fastest; the points of a box of the layout's shape (the coordinates of its axes) are numbered in
    that order. Raises LayoutError where the sizes do not multiply to the same number, or where a
    border of the new ones cuts a mode where it does not divide.
    """
    found = layout
    if dims is not None:
        old = dict(zip(layout.dims, layout.shape, strict=True))
        found = compose(_renumber(old, _sizes(dims)), found)
    if axes is not None:
        found = compose(found, _renumber(_sizes(axes), found.sizes))
    return found if layout.exclusive else coalesce(found)


def _sizes(given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise LayoutError(f"reshape takes sizes by name, not {kind_of(given)}.")
    given = cast("Mapping[str, int]", given)
    return {
        name: require_whole_number(size, f"the size of {name}", 1)
        for name, size in zip(names_of(tuple(given), "the names"), given.values(), strict=True)
    }


def _renumber(old: dict[str, int], new: dict[str, int]) -> Layout:
    """From the coordinates of a box to those of another with as many points, the last fastest."""
    if prod(old.values()) != prod(new.values()):
        texts = ["x".join(map(str, sizes.values())) for sizes in (old, new)]
        raise LayoutError(f"{texts[0]} and {texts[1]} do not have as many points.")
    modes = {name: list[Mode]() for name in old}
    pairs = iter([(n, s) for n, s in reversed(list(new.items())) if s > 1])
    target, room = next(pairs, ("", 1))
    place = 1
    for name, left in reversed(list(old.items())):
        while left > 1:
            if room == 1:
                target, room = next(pairs)
                place = 1
            step = min(left, room)
            if left % step or room % step:
                raise LayoutError(
                    f"{name} of {old[name]} is cut by {target} of {new[target]} where neither "
                    "divides the other."
                )
            modes[name].append(Mode(step, tuple(place * (n == target) for n in new)))
            left, room, place = left // step, room // step, place * step
    return Layout(tuple(Axis(name, tuple(found)) for name, found in modes.items()), tuple(new))


@takes(Layout)
def sublayout(
    layout: Layout, axes: Sequence[str] | None = None, dims: Sequence[str] | None = None
) -> Layout:
    """The layout of some axes, the others at zero, in some dimensions (Triton's sublayout).

    Raises LayoutError for a name that the layout does not have, and where nothing is held at the
    zero of an axis that is left out.
    """
    kept = layout.names if axes is None else names_of(axes, "the axes")
    wanted = layout.dims if dims is None else names_of(dims, "the dimensions")
    for name in kept:
        layout.axis(name)
    unknown = next((name for name in wanted if name not in layout.dims), None)
    if unknown is not None:
        raise LayoutError(
            f"The layout has no dimension {unknown}; it has {', '.join(layout.dims)}."
        )
    for condition in layout.where:
        if condition.axis not in kept and not condition(0):
            raise LayoutError(f"Nothing is held where {condition.axis} is 0: {condition}.")
    order = [layout.dims.index(name) for name in wanted]

    def pick(point: Point) -> Point:
        return tuple(point[dim] for dim in order)

    return Layout(
        tuple(
            Axis(
                name,
                coalesce_modes(m.moving(m.size, pick(m.step)) for m in layout.axis(name).modes),
            )
            for name in kept
        ),
        wanted,
        pick(layout.origin),
        tuple(c for c in layout.where if c.axis in kept),
    )


@takes(Layout)
def recast(layout: Layout, old: int, new: int, dim: str | None = None) -> Layout:
    """The layout of the same memory or registers in elements of `new` bits instead of `old`.

    Neighbours along `dim` (the last by default) make a wider element or are the parts of one, as
    in CuTe's recast. Raises LayoutError where one width does not divide the other, where elements
    that make a wider one are not the lowest digits along the dimension, and where no digit goes
    element by element along it, into which the parts of one could go.
    """
    require_whole_number(old, "the width of an element", 1)
    require_whole_number(new, "the width of an element", 1)
    name = layout.dims[-1] if dim is None else dim
    if names_of((name,), "the dimension")[0] not in layout.dims:
        raise LayoutError(f"The layout has no dimension {name}; it has {', '.join(layout.dims)}.")
    at = layout.dims.index(name)
    if new % old == 0:
        return _widen(layout, new // old, at)
    if old % new == 0:
        return _narrow(layout, old // new, at)
    raise LayoutError(f"Elements of {old} bits are neither parts nor multiples of {new} bits.")


def _widen(layout: Layout, factor: int, dim: int) -> Layout:
    """Digits that count inside of a wider element go; they must be its parts, each once."""
    name = layout.dims[dim]
    dropped: list[tuple[int, int]] = []

    def parts(mode: Mode, axis: str) -> Iterator[Mode]:
        step, others = mode.step[dim], any(x for d, x in enumerate(mode.step) if d != dim)
        if step % factor == 0:
            yield mode.moving(mode.size, _scale_coordinate(mode.step, dim, step // factor))
            return
        inside = factor // step if factor % step == 0 else 0
        if not inside or mode.size % min(inside, mode.size) or others:
            raise LayoutError(
                f"Mode {mode} of axis {axis} goes into elements that are {factor} times as wide."
            )
        inside = min(inside, mode.size)
        dropped.append((step, inside))
        if mode.size > inside:
            yield mode.moving(mode.size // inside, _scale_coordinate(mode.step, dim, 1))

    axes = tuple(
        Axis(
            a.name, tuple(part for mode in coalesce_modes(a.modes) for part in parts(mode, a.name))
        )
        for a in layout.axes
    )
    covered = 1
    for step, size in sorted(dropped):
        if step != covered:
            break
        covered *= size
    if covered != factor or len(dropped) != len(set(dropped)) or layout.origin[dim] % factor:
        raise LayoutError(
            f"Not all {factor} neighbours along {name} that make a wider element are held in "
            f"{layout}, each once."
        )
    _check_no_conditions(layout)
    offset = _scale_coordinate(layout.origin, dim, layout.origin[dim] // factor)
    return replace(layout, axes=axes, offset=offset)


def _narrow(layout: Layout, factor: int, dim: int) -> Layout:
    """Every element becomes several, in a digit below the one that goes element by element."""
    found = False
    axes: list[Axis] = []
    for axis in layout.axes:
        modes: list[Mode] = []
        for mode in coalesce_modes(axis.modes):
            step = mode.step[dim]
            wide = mode.moving(mode.size, _scale_coordinate(mode.step, dim, step * factor))
            alone = step == 1 and sum(map(bool, mode.step)) == 1
            if alone and not found:
                found = True
                part = tuple(int(d == dim) for d in range(layout.rank))
                modes += (
                    [mode.moving(factor, part), wide]
                    if not mode.xor
                    else [
                        Mode(factor, part),
                        wide,
                    ]
                )
            else:
                modes.append(wide)
        axes.append(Axis(axis.name, coalesce_modes(modes)))
    if not found:
        raise LayoutError(
            f"No mode goes element by element along {layout.dims[dim]} in {layout}, so it is not "
            "said where the parts of an element are."
        )
    _check_no_conditions(layout)
    offset = _scale_coordinate(layout.origin, dim, layout.origin[dim] * factor)
    return replace(layout, axes=tuple(axes), offset=offset)


def _scale_coordinate(point: Point, dim: int, value: int) -> Point:
    return (*point[:dim], value, *point[dim + 1 :])


def _check_no_conditions(layout: Layout) -> None:
    """A condition counts coordinates, which are others afterwards."""
    if layout.where:
        raise LayoutError(f"A layout with a predicate is not recast: {layout}.")
