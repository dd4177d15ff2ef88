"""Division: cutting an axis into tiles, and cutting a layout into fragments.

`logical_divide` and `zipped_divide` are CuTe's. They cut the axes of a layout; say a shared-memory
tile of 8 rows and 24 columns into blocks of 8 by 8:

>>> from fragir.layout.layout import Layout
>>> tile = Layout.parse("row [8:24] col [24:1] dims (element)")
>>> print(zipped_divide(tile, row=8, col=8))
tile [8:24 8:1] rest [3:8] dims (element)
>>> zipped_divide(tile, col=7)
Traceback (most recent call last):
...
fragir.layout.modes.LayoutError: The tile of axis col does not divide it: No complement: \
mode 7:1 of axis tile covers 7 along index, which does not divide the extent 24.

`quotient` asks how a tile is made of an instruction's fragment: here the warp's 16 by 24
accumulator is three fragments beside each other:

>>> fragment = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> d = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]")
>>> print(quotient(d, fragment))
lane [] element [3:(0,8)]
"""

from __future__ import annotations

from dataclasses import replace

from fragir.layout.arguments import takes
from fragir.layout.combine import concatenated, cut
from fragir.layout.digits import unit
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, coalesce_modes

Tiler = int | Layout


def _composition(outer: Layout, inner: Layout) -> Layout:
    from fragir.layout.composition import compose  # a quotient does without

    return compose(outer, inner)


@takes(Layout)
def logical_divide(layout: Layout, **tilers: Tiler) -> Layout:
    """Every named axis reordered: first the tile, then which tile (CuTe's logical_divide).

    A tiler is the number of consecutive coordinates, or a layout of one dimension that says which
    coordinates make the first tile. Raises LayoutError if a tiler does not divide its axis.

    >>> line = Layout.parse("index [12:1]")
    >>> print(logical_divide(line, index=Layout.parse("tile [3:4]")))
    index [3:4 4:1]
    """
    parts = _cut_axes(layout, tilers)
    axes = [Axis(axis.name, sum(parts[axis.name], ())) for axis in layout.axes]
    return _composition(layout, Layout(tuple(axes), layout.names))


@takes(Layout)
def zipped_divide(
    layout: Layout, *, tile: str = "tile", rest: str = "rest", **tilers: Tiler
) -> Layout:
    """The layout with the axes `tile` (inside of one), `rest` (which one), and those not tiled.

    Several tilers make one axis `tile`, the first named fastest (CuTe's zipped_divide).
    """
    parts = _cut_axes(layout, tilers)
    inner = [
        Axis(tile, tuple(mode for name in tilers for mode in parts[name][0])),
        Axis(rest, tuple(mode for name in tilers for mode in parts[name][1])),
        *(Axis(name, parts[name][0]) for name in layout.names if name not in tilers),
    ]
    return _composition(layout, Layout(tuple(inner), layout.names))


@takes(Layout)
def tiled_divide(layout: Layout, *, tile: str = "tile", **tilers: Tiler) -> Layout:
    """The layout with the axis `tile` (inside of one), and every axis of `layout`: which tile.

    CuTe's tiled_divide: as `zipped_divide`, but the tiles are counted along each axis by itself.

    >>> whole = Layout.parse("row [8:24] col [24:1] dims (element)")
    >>> print(tiled_divide(whole, row=4, col=8))
    tile [4:24 8:1] row [2:96] col [3:8] dims (element)
    """
    parts = _cut_axes(layout, tilers)
    inner = [
        Axis(tile, tuple(mode for name in tilers for mode in parts[name][0])),
        *(Axis(name, parts[name][name in tilers]) for name in layout.names),
    ]
    return _composition(layout, Layout(tuple(inner), layout.names))


@takes(Layout)
def flat_divide(layout: Layout, *, suffix: str = "_tile", **tilers: Tiler) -> Layout:
    """The layout with an axis `NAME_tile` inside of a tile for each tiler, and `NAME`: which tile.

    CuTe's flat_divide: all of it side by side.

    >>> whole = Layout.parse("row [8:24] col [24:1] dims (element)")
    >>> print(flat_divide(whole, row=4, col=8))
    row_tile [4:24] col_tile [8:1] row [2:96] col [3:8] dims (element)
    """
    parts = _cut_axes(layout, tilers)
    inner = [
        *(Axis(name + suffix, parts[name][0]) for name in tilers),
        *(Axis(name, parts[name][name in tilers]) for name in layout.names),
    ]
    return _composition(layout, Layout(tuple(inner), layout.names))


def _cut_axes(
    layout: Layout, tilers: dict[str, Tiler]
) -> dict[str, tuple[tuple[Mode, ...], tuple[Mode, ...]]]:
    """For every axis the modes of the tile and of the rest, as strides along the axes."""
    for name in tilers:
        layout.axis(name)
    parts: dict[str, tuple[tuple[Mode, ...], tuple[Mode, ...]]] = {}
    for index, axis in enumerate(layout.axes):
        tiler = tilers.get(axis.name, axis.size)
        if isinstance(tiler, int):
            tiler = Layout((Axis("tile", (Mode(tiler, (1,)),)),), ("index",))
        if tiler.rank != 1:
            raise LayoutError(f"The tiler {tiler} of axis {axis.name} has not one dimension.")
        try:
            from fragir.layout.products import complement

            rest = complement(tiler, (axis.size,))
        except LayoutError as error:
            raise LayoutError(
                f"The tile of axis {axis.name} does not divide it: {error.message}"
            ) from error

        def lifted(part: Layout, dim: int = index) -> tuple[Mode, ...]:
            return tuple(
                Mode(mode.size, unit(dim, len(layout.axes), mode.stride[0]))
                for part_axis in part.axes
                for mode in part_axis.modes
            )

        parts[axis.name] = (lifted(tiler), lifted(rest))
    return parts


@takes(Layout, Layout)
def quotient(layout: Layout, fragment: Layout) -> Layout:
    """The layout of the fragments: `concatenated(fragment, quotient)` is equivalent to `layout`.

    Every axis of the fragment must be the fastest part of the layout's axis of that name. Raises
    LayoutError naming the axis for which this is not so.
    """
    if layout.dims != fragment.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(layout.dims)}) and ({', '.join(fragment.dims)}) differ."
        )
    if layout.where or fragment.where:
        raise LayoutError(f"A layout with a predicate has no quotient: {layout}, {fragment}.")
    if layout.exclusive or fragment.exclusive:
        rest = _quotient(layout.simplified(), fragment.simplified())
        if concatenated(fragment, rest).equivalent(layout):
            return rest
        raise LayoutError(f"{layout} is not made of the fragment {fragment}.")
    return _quotient(layout, fragment)


def _quotient(layout: Layout, fragment: Layout) -> Layout:
    """What the digits of the layout are after those of the fragment."""
    axes: list[Axis] = []
    for axis in layout.axes:
        modes = coalesce_modes(axis.modes)
        if axis.name in fragment.names:
            wanted = coalesce_modes(fragment.axis(axis.name).modes)
            below, above = cut(modes, fragment.size(axis.name), axis.name)
            if coalesce_modes(below) != wanted:
                raise LayoutError(
                    f"{axis} does not begin with the fragment's {Axis(axis.name, wanted)}."
                )
            modes = tuple(above)
        axes.append(Axis(axis.name, modes))
    for axis in fragment.axes:
        if axis.name not in layout.names and axis.size > 1:
            raise LayoutError(f"The layout has no axis {axis.name}, but the fragment has {axis}.")
    offset = tuple(a - b for a, b in zip(layout.origin, fragment.origin, strict=True))
    if min(offset) < 0:
        raise LayoutError(f"The fragment's offset {fragment.origin} exceeds {layout.origin}.")
    return replace(layout, axes=tuple(axes), offset=offset)
