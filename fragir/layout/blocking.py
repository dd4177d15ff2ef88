"""Layouts of blocks of neighbours: so many elements a lane, so many lanes, so many warps.

Of 64 by 64 elements a lane holds eight of a row at once, eight lanes complete the row and four are
below each other, then four warps; what is left of the tile are further elements of the same lanes:

>>> print(blocked((64, 64), {"element": (1, 8), "lane": (4, 8), "warp": (4, 1)}))
warp [4:(4,0)] lane [8:(0,8) 4:(1,0)] element [8:(0,1) 4:(16,0)]

This is Triton's `#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA =
[4, 1], order = [1, 0]}>`, and the blocked product of three compact layouts, repeated over the tile.
One number for all dimensions goes along each as far as it divides what is left there; those that
find nothing left hold copies:

>>> print(blocked((64, 24), {"element": (1, 8), "lane": 32}))
lane [32:(1,0)] element [8:(0,1) 3:(0,8) 2:(32,0)]
>>> print(blocked((4, 8), {"lane": 64}))
lane [8:(0,1) 4:(1,0) 2:(0,0)] element []
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from fragir.errors import kind_of, whole_number
from fragir.layout.arguments import names, point, shape_of
from fragir.layout.distribution import handed_out
from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Point


def blocked(
    shape: Point, shares: Mapping[str, int | Point], order: Iterable[int] | None = None
) -> Layout:
    """The layout of a tile of this shape handed out to axes, the first share fastest.

    A share is how many an axis has along each dimension, or one number that is divided among the
    dimensions. `order` says which dimension goes first, by number; without it the last one. The
    axes of the layout are the shares from the last to the first, then `element`, which gets what
    is left. Where the shares exceed the tile several hold the same element.

    Raises LayoutError where the shape is no multiple of what is handed out along a dimension.
    """
    shape = shape_of(shape, "The shape")
    if not isinstance(cast("object", shares), Mapping):
        raise LayoutError(f"blocked takes shares by axis, not {kind_of(shares)}.")
    rank = len(shape)
    order = range(rank - 1, -1, -1) if order is None else point(order, rank, "The order")
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"{tuple(order)} is no order of {rank} dimensions.")
    axes = names(tuple(shares), "the axes") if shares else ()
    checked = {axis: _share(axis, shares[axis], rank) for axis in axes}
    return handed_out(shape, checked, order)


def _share(axis: str, share: object, rank: int) -> int | Point:
    what = f"The share of {axis}"
    if isinstance(share, tuple | list):
        return point(cast("object", share), rank, what, 1)
    return whole_number(share, what, 1)
