"""What the lanes of a register layout hold, one by one; lanes that hold the same share one tuple.

Layouts that hold a tile many times over have thousands of slots and few different lanes: what is
asked of all lanes is asked once of each of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, LayoutError, Point
from fragir.layout.slots import check_slots

LanePoints = tuple[Point | None, ...]
"""What a lane's elements are, None where it holds none."""


def lanes_of_a_warp(layout: Layout) -> int:
    """The lanes of a warp: a lane axis of several warps counts threads."""
    lanes = layout.sizes.get("lane", 1)
    if lanes > WARP and lanes % WARP:
        raise LayoutError(f"{lanes} lanes are no whole warps of {WARP}: {layout}.")
    return min(lanes, WARP)


def points_of(layout: Layout, width: int = WARP) -> list[list[LanePoints]]:
    """What a register layout holds, as [warp][lane][element], of warps of `width` lanes.

    LayoutError for more slots than are looked at one by one.
    """
    check_slots(layout.axes)
    threads = list(_with_flips(layout) if layout.exclusive else _sums(layout))
    return [threads[first : first + width] for first in range(0, len(threads), width)]


def _sums(layout: Layout) -> Iterator[LanePoints]:
    """What each thread holds where it is its beginning and an element's distance from there."""
    warps, lanes, elements = (_axis(layout, name) for name in ("warp", "lane", "element"))
    known: dict[Point | None, LanePoints] = {None: (None,) * len(elements)}
    for warp in warps:
        for lane in lanes:
            start = _sum(_sum(layout.origin, warp), lane)
            if start not in known:
                known[start] = tuple([_sum(start, element) for element in elements])
            yield known[start]


def _with_flips(layout: Layout) -> Iterator[LanePoints]:
    where = [
        layout.names.index(name) if name in layout.names else None
        for name in ("warp", "lane", "element")
    ]
    count, lanes = layout.sizes.get("element", 1), layout.sizes.get("lane", 1)
    held: dict[int, list[Point | None]] = {}
    for coordinates, point in layout.slots():
        warp, lane, element = (0 if at is None else coordinates[at] for at in where)
        held.setdefault(warp * lanes + lane, [None] * count)[element] = point
    known: dict[LanePoints, LanePoints] = {}
    for thread in range(len(held)):
        points = tuple(held[thread])
        yield known.setdefault(points, points)


def _axis(layout: Layout, name: str) -> Sequence[Point | None]:
    """The steps along an axis; None where a condition of the layout leaves a coordinate out."""
    if name not in layout.names:
        return [(0,) * layout.rank]
    conditions = [condition for condition in layout.where if condition.axis == name]
    points = layout.axis(name).points(layout.rank)
    return [
        point if all(condition(index) for condition in conditions) else None
        for index, point in enumerate(points)
    ]


def _sum(a: Point | None, b: Point | None) -> Point | None:
    if a is None or b is None:
        return None
    if len(a) == 2:  # by far the most frequent case, and this is the innermost loop
        return a[0] + b[0], a[1] + b[1]
    return tuple([x + y for x, y in zip(a, b, strict=True)])
