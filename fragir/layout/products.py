"""Products: a layout repeated as another layout says.

`blocked_product(fragment, grid)` puts a copy of the fragment at every point of the grid; the grid
counts in fragments. Axes that both have get the fragment's modes first, then the grid's:

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> grid = Layout.parse("warp [2:(1,0) 2:(0,1)] element [3:(0,2)]")
>>> tile = blocked_product(c, grid)
>>> print(tile)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,16)] warp [2:(16,0) 2:(0,8)]
>>> tile.shape, tile.is_bijection()
((32, 48), True)

`raked_product` gives the grid's modes first: of an axis that both have, the grid's digits then are
the faster ones. As in CuTe, the grid fills the gaps that the first layout leaves before it goes on
behind it:

>>> print(logical_product(Layout.parse("lane [4:2]"), Layout.parse("element [4:1]")))
lane [4:2] element [2:1 2:8]
"""

from __future__ import annotations

from fragir.layout.arguments import takes
from fragir.layout.combine import concatenated, merged, renamed
from fragir.layout.completion import complement, same_points
from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError


@takes(Layout, Layout)
def logical_product(layout: Layout, grid: Layout) -> Layout:
    """`layout` for every point of `grid`; the axes must have different names.

    Raises LayoutError for modes that do not divide, and for an offset or predicate of `layout`.
    """
    shared = [name for name in layout.names if name in grid.names]
    if shared:
        raise LayoutError(
            f"Both layouts of the product have an axis {shared[0]}; "
            "blocked_product and raked_product join them."
        )
    return blocked_product(layout, grid)


@takes(Layout, Layout)
def blocked_product(layout: Layout, grid: Layout) -> Layout:
    """`layout` for every point of `grid`; in shared axes the digits of `layout` come first."""
    return concatenated(layout, _spread(layout, grid))


@takes(Layout, Layout)
def raked_product(layout: Layout, grid: Layout) -> Layout:
    """`layout` for every point of `grid`; in shared axes the digits of `grid` come first.

    The axes keep the order that they have in `blocked_product`.

    >>> print(raked_product(Layout.parse("x [4:1]"), Layout.parse("x [3:1]")))
    x [3:4 4:1]
    """
    joined = concatenated(_spread(layout, grid), layout)
    order = dict.fromkeys((*layout.names, *grid.names))
    return Layout(
        tuple(joined.axis(name) for name in order), joined.dims, joined.offset, joined.where
    )


@takes(Layout, Layout)
def zipped_product(
    layout: Layout, grid: Layout, *, tile: str = "tile", rest: str = "rest"
) -> Layout:
    """`layout` for every point of `grid`, with the axes `tile` (inside of one) and `rest`.

    The axes of each become one, the first fastest (CuTe's zipped_product).

    >>> print(zipped_product(Layout.parse("x [2:1] y [2:4]"), Layout.parse("x [2:1] y [3:2]")))
    tile [2:1 2:4] rest [2:2 3:8]
    """
    spread = _spread(layout, grid)
    return concatenated(_as_one(layout, tile), _as_one(spread, rest))


@takes(Layout, Layout)
def tiled_product(layout: Layout, grid: Layout, *, tile: str = "tile") -> Layout:
    """`layout` for every point of `grid`, with the axis `tile` and the axes of `grid`.

    CuTe's tiled_product: as `zipped_product`, but the copies are counted along each axis.
    """
    return concatenated(_as_one(layout, tile), _spread(layout, grid))


@takes(Layout, Layout)
def flat_product(layout: Layout, grid: Layout, *, suffix: str = "_rest") -> Layout:
    """`layout` for every point of `grid`, all axes side by side (CuTe's flat_product).

    Axes of the grid that `layout` has too are named `NAME_rest`.

    >>> print(flat_product(Layout.parse("x [4:1]"), Layout.parse("x [3:1]")))
    x [4:1] x_rest [3:4]
    """
    names = {name: name + suffix for name in grid.names if name in layout.names}
    return concatenated(layout, renamed(_spread(layout, grid), **names))


def _as_one(layout: Layout, name: str) -> Layout:
    return merged(layout, name, layout.names) if layout.names else layout


def _spread(layout: Layout, grid: Layout) -> Layout:
    """The grid's points in elements: per dimension composed with what `layout` leaves free."""
    if layout.dims != grid.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(layout.dims)}) and ({', '.join(grid.dims)}) differ."
        )
    axes: list[Axis] = []
    layout = same_points(layout, "No product")
    for dim, name in enumerate(layout.dims):
        shape = tuple(1 for _ in layout.dims)
        extent = _filled(layout, dim) * grid.shape[dim]
        shape = (*shape[:dim], extent, *shape[dim + 1 :])
        axes.append(Axis(name, complement(_only(layout, dim), shape).axes[0].modes))
    return compose(Layout(tuple(axes), layout.dims), grid)


def _only(layout: Layout, dim: int) -> Layout:
    """The modes along one dimension (those along several are left for complement to refuse)."""
    axes = (
        Axis(a.name, tuple(m for m in a.modes if m.stride[dim] or not any(m.stride)))
        for a in layout.axes
    )
    return Layout(tuple(axes), layout.dims, layout.offset, layout.where)


def _filled(layout: Layout, dim: int) -> int:
    """How many coordinates of the dimension the layout reaches, its last gap filled."""
    modes = [m for a in layout.axes for m in a.modes if m.stride[dim] and m.size > 1]
    return max((m.stride[dim] * m.size for m in modes), default=1)
