"""What it takes to get from one register layout to another.

Both layouts have the axes element, lane and perhaps warp, and hold the same tile. (A lane axis of
64 or more counts the threads of several warps, as the fragments of wgmma do.) `sources` compares
them and says how far data must travel: nowhere, to another register of the same lane, to another
lane of the warp, or to another warp; and for each destination slot where its element is read from.

Two accumulators of `mma.m16n8` beside each other are, register for register, the A operand of the
next `mma.m16n8k16`:

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]")
>>> a = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]")
>>> sources(c, a).kind
'identity'
>>> swapped = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8) 2:(8,0)]")
>>> sources(c, swapped).kind, sources(c, swapped).permutation
('registers', (0, 1, 4, 5, 2, 3, 6, 7))
>>> by_rows = Layout.parse("lane [2:(0,8) 16:(1,0)] element [8:(0,1)]")
>>> moved = sources(c, by_rows)
>>> moved.kind, moved.source(lane=1, element=3)       # (0, 11) is with lane 1, element 5
('warp', Slot(warp=0, lane=1, element=5))
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from fragir.layout.arguments import check_table, takes
from fragir.layout.combine import appended, merged, reordered, split
from fragir.layout.composition import compose
from fragir.layout.display import Drawn
from fragir.layout.inversion import inverse
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, Axis, LayoutError, Mode, Point, coalesce_modes
from fragir.layout.slots import check_slots, held_steps, sum_of

# -- lane points -----------------------------------------------------------------------------------
# What the lanes of a register layout hold, one by one; lanes that hold the same share one tuple.
#
# Layouts that hold a tile many times over have thousands of slots and few different lanes: what is
# asked of all lanes is asked once of each of those.

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


Kind = Literal["identity", "registers", "warp", "block"]

AXES = ("warp", "lane", "element")


class Slot(NamedTuple):
    """One register element of one lane of one warp."""

    warp: int
    lane: int
    element: int


Sources = tuple[tuple[tuple[Slot | None, ...], ...], ...]
Lanes = Sequence[Sequence[LanePoints]]
Holders = dict[Point, dict[tuple[int, int], list[int]]]
"""For every point the elements that hold it, lowest first, by warp and lane."""


@dataclass(frozen=True)
class Conversion(Drawn):
    """How the elements travel from `src` to `dst`.

    `kind` is the shortest way that does for all slots:

    * `identity`: every slot already holds its element
    * `registers`: every lane only renames its registers, all alike, as `permutation` says
    * `warp`: within each warp, perhaps between lanes
    * `block`: between warps
    """

    src: Layout
    dst: Layout
    kind: Kind
    # For `identity` and `registers`: for every destination element the source element of the same
    # lane, -1 where no lane holds anything at that position. Otherwise None.
    permutation: tuple[int, ...] | None

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.dst.shape))
        far = {"warp": ", between lanes", "block": ", between warps"}.get(self.kind, "")
        return f"<conversion of {size} elements: {self.kind}{far}>"

    @cached_property
    def sources(self) -> Sources:
        """`sources[warp][lane][element]` is where that destination slot is read from, or None."""
        width = lanes_of_a_warp(self.src)
        wanted = points_of(self.dst, width)
        if self.permutation is not None:
            return _renamed_sources(wanted, self.permutation)
        held = _turned_lanes(points_of(self.src, width), _order(self.src, self.dst))
        return _nearest_sources(held, wanted)

    def source(self, *, element: int, lane: int = 0, warp: int = 0) -> Slot | None:
        """Where a destination slot's element is read from."""
        return self.sources[warp][lane][element]

    @cached_property
    def mapping(self) -> Layout | None:
        """The sources as a layout from (warp, lane, element) to (warp, lane, element).

        So each part of a source's coordinates is a closed formula. None where the source holds
        elements several times or has a predicate or offset, or where no layout says it.
        """
        return _mapping(self.src, self.dst)

    @cached_property
    def moved(self) -> int:
        """How many destination slots are read from another lane or warp."""
        return sum(
            slot is not None and (slot.warp, slot.lane) != (warp, lane)
            for warp, lanes in enumerate(self.sources)
            for lane, elements in enumerate(lanes)
            for slot in elements
        )


@takes(Layout, Layout)
@lru_cache(maxsize=256)
def sources(src: Layout, dst: Layout) -> Conversion:
    """The conversion between two register layouts of one tile.

    Where the source holds an element several times, a copy in the same slot is preferred, then one
    in the same lane, then one in the same warp, then the one fewest warps away; among these the
    nearest lane (fewest by exclusive or) and the lowest element. Raises LayoutError for axes other
    than element, lane and warp, for different numbers of lanes or warps, and for an element that
    the destination wants and the source does not hold, naming it.
    """
    for layout in (src, dst):
        check_table(layout)
        other = [name for name in layout.names if name not in AXES]
        if other:
            raise LayoutError(f"A register layout has no axis {other[0]}: {layout}.")
    if set(src.dims) != set(dst.dims):
        raise LayoutError(
            f"The dimensions ({', '.join(src.dims)}) and ({', '.join(dst.dims)}) differ."
        )
    width = lanes_of_a_warp(src)
    if lanes_of_a_warp(dst) != width or _threads(src) != _threads(dst):
        raise LayoutError(
            f"The source is spread over {_threads(src)} lanes, {width} a warp, the destination "
            f"over {_threads(dst)}, {lanes_of_a_warp(dst)} a warp."
        )
    order = _order(src, dst)
    permutation = _renaming_by_modes(src, dst) if src.dims == dst.dims else None
    # Without a predicate one look at the modes tells; with one, those left out may not count.
    mapping = None if permutation is not None or dst.where else _mapping(src, dst)
    if mapping is not None and mapping.exclusive:
        mapping = None  # a flip of the own lane is not told from another lane by its digits
    if mapping is not None and not _is_kept(mapping, "warp"):
        return Conversion(src, dst, "block", None)
    if mapping is not None and not _is_kept(mapping, "lane"):
        return Conversion(src, dst, "warp", None)
    if permutation is None:
        held, wanted = _turned_lanes(points_of(src, width), order), points_of(dst, width)
        permutation = _renaming(held, wanted)
        if permutation is None:
            return Conversion(src, dst, _reach(held, wanted), None)
    same = permutation == tuple(range(_size(src, "element")))
    return Conversion(src, dst, "identity" if same else "registers", permutation)


def _mapping(src: Layout, dst: Layout) -> Layout | None:
    try:
        back = inverse(_by_warps(src, lanes_of_a_warp(src)))
        return compose(back, _by_warps(dst, lanes_of_a_warp(src)))
    except LayoutError:
        return None


def _by_warps(layout: Layout, width: int) -> Layout:
    """The layout with the axes warp, lane and element, all three, and lanes of one warp."""
    for name in AXES:
        if name not in layout.names:
            layout = appended(layout, name)
    if layout.size("lane") != width:
        threads = merged(layout, "lane", ("lane", "warp"))
        layout = split(threads, "lane", lane=width, warp=threads.size("lane") // width)
    return reordered(layout, AXES)


def _is_kept(mapping: Layout, name: str) -> bool:
    """Whether every destination slot reads from its own warp, or its own lane."""
    dim = mapping.dims.index(name)
    for axis in mapping.axes:
        place = 1
        for mode in axis.modes:
            if mode.size > 1 and mode.stride[dim] != (place if axis.name == name else 0):
                return False
            place *= mode.size
    return True  # an offset would lead out of the axis


def _order(src: Layout, dst: Layout) -> list[int]:
    return [dst.dims.index(dim) for dim in src.dims]


def _renaming_by_modes(src: Layout, dst: Layout) -> tuple[int, ...] | None:
    """The renaming where all lanes start at the same points: without looking at every slot."""
    if src.where or dst.where or src.origin != dst.origin or src.exclusive or dst.exclusive:
        return None
    if _threads_axis(src) != _threads_axis(dst):
        return None
    held: dict[Point, int] = {}
    for element, point in enumerate(_axis(src, "element").points(src.rank)):
        held.setdefault(point, element)
    mine = _axis(src, "element").points(src.rank)
    renaming: list[int] = []
    for element, point in enumerate(_axis(dst, "element").points(dst.rank)):
        if point not in held:
            return None
        stays = element < len(mine) and mine[element] == point
        renaming.append(element if stays else held[point])
    return tuple(renaming)


def _renamed_sources(wanted: Lanes, permutation: tuple[int, ...]) -> Sources:
    return tuple(
        tuple(
            tuple(
                None if point is None else Slot(warp, lane, permutation[element])
                for element, point in enumerate(elements)
            )
            for lane, elements in enumerate(lanes)
        )
        for warp, lanes in enumerate(wanted)
    )


def _nearest_sources(held: Lanes, wanted: Lanes) -> Sources:
    holders: Holders = {}
    for warp, lanes in enumerate(held):
        for lane, points in enumerate(lanes):
            for element, point in enumerate(points):
                if point is not None:
                    holders.setdefault(point, {}).setdefault((warp, lane), []).append(element)
    return tuple(
        tuple(
            tuple(
                None if point is None else _nearest(holders[point], Slot(warp, lane, element))
                for element, point in enumerate(points)
            )
            for lane, points in enumerate(lanes)
        )
        for warp, lanes in enumerate(wanted)
    )


def _reach(held: Lanes, wanted: Lanes) -> Kind:
    """How far the nearest sources are; LayoutError where there is none."""
    reach: Kind = "warp"
    here = [set[Point | None]().union((None,), *_different(lanes)) for lanes in held]
    anywhere = set[Point | None]().union(*here)
    for own, lanes in zip(here, wanted, strict=True):
        for points in _different(lanes):
            if not own.issuperset(points):
                reach = "block"
                for point in points:
                    if point not in anywhere:
                        raise LayoutError(
                            f"The destination wants element {point}, which the source does not "
                            "hold."
                        )
    return reach


def _different(lanes: Sequence[LanePoints]) -> Collection[LanePoints]:
    """What lanes hold, once each: those that hold the same share it."""
    return {id(points): points for points in lanes}.values()


def _axis(layout: Layout, name: str) -> Axis:
    return layout.axis(name) if name in layout.names else Axis(name)


def _threads_axis(layout: Layout) -> tuple[Mode, ...]:
    return coalesce_modes((*_axis(layout, "lane").modes, *_axis(layout, "warp").modes))


def _size(layout: Layout, name: str) -> int:
    return layout.size(name) if name in layout.names else 1


def _threads(layout: Layout) -> int:
    return _size(layout, "warp") * _size(layout, "lane")


def _turned_lanes(lanes: Lanes, order: list[int]) -> Lanes:
    """What lanes hold, the points' dimensions in the destination's order."""
    if order == sorted(order):
        return lanes
    back = [order.index(dim) for dim in range(len(order))]
    turned: dict[int, LanePoints] = {}
    for points in (points for row in lanes for points in row):
        if id(points) not in turned:
            turned[id(points)] = tuple(
                [None if p is None else tuple([p[dim] for dim in back]) for p in points]
            )
    return [[turned[id(points)] for points in row] for row in lanes]


def _renaming(held: Lanes, wanted: Lanes) -> tuple[int, ...] | None:
    """For every destination element one source element that has it in every lane; or None."""
    common: list[set[int] | None] = [None] * len(wanted[0][0])
    pairs = {
        (id(mine), id(points)): (mine, points)
        for rows in zip(held, wanted, strict=True)
        for mine, points in zip(*rows, strict=True)
    }
    holders: dict[int, dict[Point | None, list[int]]] = {}
    for mine, points in pairs.values():
        if id(mine) not in holders:
            at = holders[id(mine)] = {}
            for element, point in enumerate(mine):
                at.setdefault(point, []).append(element)
        at = holders[id(mine)]
        for element, point in enumerate(points):
            if point is None:
                continue
            before = common[element]
            here = at.get(point, ())
            common[element] = now = set(here) if before is None else before.intersection(here)
            if not now:
                return None
    return tuple(
        -1 if found is None else element if element in found else min(found)
        for element, found in enumerate(common)
    )


def _nearest(held: dict[tuple[int, int], list[int]], at: Slot) -> Slot:
    """The slot of a point that is nearest to another."""
    places = [at[:2]]
    if places[0] not in held:
        # the number of lanes by which shfl.bfly would have to reach counts behind the warps
        apart = {(w, lane): (abs(w - at.warp), lane ^ at.lane) for w, lane in held}
        least = min(apart.values())
        places = [place for place, far in apart.items() if far == least]
    found = [Slot(*place, element) for place in places for element in held[place]]
    return min(found, key=lambda slot: (slot.element != at.element, slot.element))
