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

The complement: what is missing to fill a tile.

A fragment of two rows out of every four, in a tile of eight rows, is completed by the second pair
of rows and by the second four:

>>> from fragir.layout.layout import Layout
>>> print(complement(Layout.parse("lane [2:1]"), (8,)))
rest [4:2]
>>> print(complement(Layout.parse("lane [2:1 2:4]"), (8,)))
rest [2:2]
>>> print(complement(Layout.parse("lane [2:(1,0)]"), (4, 3)))
rest [2:(2,0) 3:(0,1)]

The original together with its complement holds every element of the tile once (or as many times as
the original is replicated).
"""

from __future__ import annotations

from fragir.layout.arguments import require_point, takes
from fragir.layout.combine import concatenated, merged, renamed
from fragir.layout.composition import compose
from fragir.layout.digits import along, digits_of, unit
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, coalesce_modes


@takes(Layout)
def complement(layout: Layout, shape: Point, axis: str = "rest") -> Layout:
    """The layout of one axis whose sum with `layout` covers the tile of this shape.

    As in CuTe, modes of stride zero do not count. Unlike CuTe, sizes must divide: raises
    LayoutError naming the mode that overlaps another one, does not divide the next stride or does
    not divide the shape, or that moves along two dimensions at once. Offset and predicate must be
    none.
    """
    if layout.offset or layout.where:
        raise LayoutError(f"A layout with an offset or predicate has no complement: {layout}.")
    shape = require_point(shape, layout.rank, "The shape", 1)
    digits = digits_of(same_points(layout, "No complement"), "No complement")
    modes: list[Mode] = []
    for dim, (name, extent) in enumerate(zip(layout.dims, shape, strict=True)):
        covered = 1
        gaps: list[Mode] = []
        for digit in along(digits, dim):
            if digit.stride % covered:
                problem = "overlaps finer ones" if digit.stride < covered else "does not fit"
                raise LayoutError(
                    f"No complement: {digit} {problem}; along {name}, {covered} elements are "
                    f"covered, which do not divide its stride."
                )
            gaps.append(Mode(digit.stride // covered, unit(dim, layout.rank, covered)))
            covered = digit.stride * digit.size
            if extent % covered:
                raise LayoutError(
                    f"No complement: {digit} covers {covered} along {name}, which does not divide "
                    f"the extent {extent}."
                )
        gaps.append(Mode(extent // covered, unit(dim, layout.rank, covered)))
        modes.extend(coalesce_modes(gaps))
    return Layout((Axis(axis, tuple(modes)),), layout.dims)


def same_points(layout: Layout, what: str) -> Layout:
    """A layout of sums that holds the same points, for where only they count.

    The bits that are flipped must fill a box: each of them alone must be held. Raises LayoutError,
    beginning with `what`, naming one that is not.
    """
    if not layout.exclusive:
        return layout
    kernel = layout.kernel
    span = Subspace(bit.column for bit in kernel.bits)
    reached = 0
    for bit in kernel.bits:
        reached |= bit.column
    modes = [Mode(digit.size, kernel.point(digit.stride)) for digit in kernel.forced]
    for place in range(reached.bit_length()):
        if reached >> place & 1:
            if 1 << place not in span or any(c.mask >> place & 1 for c in kernel.clusters):
                at = zip(layout.dims, kernel.point(1 << place), strict=True)
                dim, number = next((dim, x) for dim, x in at if x)
                raise LayoutError(
                    f"{what}: the bits that {layout} flips fill no box: {dim} {number}."
                )
            modes.append(Mode(2, kernel.point(1 << place)))
    return Layout((Axis("slot", tuple(modes)),), layout.dims, layout.offset, layout.where)


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
    return concatenated(layout, _spread_grid(layout, grid))


@takes(Layout, Layout)
def raked_product(layout: Layout, grid: Layout) -> Layout:
    """`layout` for every point of `grid`; in shared axes the digits of `grid` come first.

    The axes keep the order that they have in `blocked_product`.

    >>> print(raked_product(Layout.parse("x [4:1]"), Layout.parse("x [3:1]")))
    x [3:4 4:1]
    """
    joined = concatenated(_spread_grid(layout, grid), layout)
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
    spread = _spread_grid(layout, grid)
    return concatenated(_as_one(layout, tile), _as_one(spread, rest))


@takes(Layout, Layout)
def tiled_product(layout: Layout, grid: Layout, *, tile: str = "tile") -> Layout:
    """`layout` for every point of `grid`, with the axis `tile` and the axes of `grid`.

    CuTe's tiled_product: as `zipped_product`, but the copies are counted along each axis.
    """
    return concatenated(_as_one(layout, tile), _spread_grid(layout, grid))


@takes(Layout, Layout)
def flat_product(layout: Layout, grid: Layout, *, suffix: str = "_rest") -> Layout:
    """`layout` for every point of `grid`, all axes side by side (CuTe's flat_product).

    Axes of the grid that `layout` has too are named `NAME_rest`.

    >>> print(flat_product(Layout.parse("x [4:1]"), Layout.parse("x [3:1]")))
    x [4:1] x_rest [3:4]
    """
    names = {name: name + suffix for name in grid.names if name in layout.names}
    return concatenated(layout, renamed(_spread_grid(layout, grid), **names))


def _as_one(layout: Layout, name: str) -> Layout:
    return merged(layout, name, layout.names) if layout.names else layout


def _spread_grid(layout: Layout, grid: Layout) -> Layout:
    """The grid's points in elements: per dimension composed with what `layout` leaves free."""
    if layout.dims != grid.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(layout.dims)}) and ({', '.join(grid.dims)}) differ."
        )
    axes: list[Axis] = []
    layout = same_points(layout, "No product")
    for dim, name in enumerate(layout.dims):
        shape = tuple(1 for _ in layout.dims)
        extent = _filled_extent(layout, dim) * grid.shape[dim]
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


def _filled_extent(layout: Layout, dim: int) -> int:
    """How many coordinates of the dimension the layout reaches, its last gap filled."""
    modes = [m for a in layout.axes for m in a.modes if m.stride[dim] and m.size > 1]
    return max((m.stride[dim] * m.size for m in modes), default=1)
