"""The complement: what is missing to fill a tile.

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

from fragir.layout.arguments import point, takes
from fragir.layout.digits import along, digits_of, unit
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, coalesced


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
    shape = point(shape, layout.rank, "The shape", 1)
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
        modes.extend(coalesced(gaps))
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
