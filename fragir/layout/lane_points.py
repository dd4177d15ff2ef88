"""What the lanes of a register layout hold, one by one; lanes that hold the same share one tuple.

Layouts that hold a tile many times over have thousands of slots and few different lanes: what is
asked of all lanes is asked once of each of those.
"""

from __future__ import annotations

from collections.abc import Iterator

from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, Axis, LayoutError, Point
from fragir.layout.slots import check_slots, held_steps, sum_of

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
    warps, lanes, elements = (
        held_steps(
            layout.axis(name) if name in layout.names else Axis(name), layout.rank, layout.where
        )
        for name in ("warp", "lane", "element")
    )
    known: dict[Point | None, LanePoints] = {None: (None,) * len(elements)}
    for warp in warps:
        for lane in lanes:
            start = sum_of(sum_of(layout.origin, warp), lane)
            if start not in known:
                known[start] = tuple([sum_of(start, element) for element in elements])
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
