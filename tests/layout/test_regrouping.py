"""Layouts that follow from others by reshaping, cutting and joining: element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

import pytest

from benchmarks.sweeps.tile_shapes import any_layout
from fragir.layout.layout import Layout
from fragir.layout.modes import Point
from fragir.layout.regrouping import (
    Cutout,
    Ways,
    are_alike,
    around,
    follow,
    nearest,
    reshaping_ways,
    turning_ways,
    window,
    with_last,
    without_last,
)

SHAPES = ((48,), (16, 6), (8, 16), (2, 4, 8), (3, 4, 4), (12, 10), (2, 2, 4, 4))

#: A point of the second tile from one of the first, None where that is in no place of it.
Function = Callable[[Point], Point | None]


def held(layout: Layout) -> dict[Point, set[Point]]:
    """What every lane of every warp has."""
    found: dict[Point, set[Point]] = {}
    for slot, point in layout.slots():
        lane = tuple(x for name, x in zip(layout.names, slot, strict=True) if name != "element")
        assert point is not None
        found.setdefault(lane, set()).add(point)
    return found


def cut(rng: Random, shape: Point) -> tuple[Ways, Ways, Function, Point]:
    parts: list[range] = []
    for size in shape:
        step, start = rng.choice([1, 1, 2, 3]), rng.randrange(size)
        parts.append(range(start, rng.randint(start + 1, size), step))
    given = zip(shape, parts, strict=True)
    cutouts = tuple(Cutout(size, part.start, len(part), part.step) for size, part in given)

    def function(point: Point) -> Point | None:
        if any(x not in part for x, part in zip(point, parts, strict=True)):
            return None
        return tuple(part.index(x) for x, part in zip(point, parts, strict=True))

    return window(cutouts), around(cutouts), function, tuple(map(len, parts))


def counted(rng: Random, shape: Point) -> tuple[Ways, Ways, Function, Point]:
    left, sizes = prod(shape), list[int]()
    for _ in range(rng.randint(0, 3)):
        sizes.append(rng.choice([d for d in range(1, left + 1) if left % d == 0]))
        left //= sizes[-1]
    new = (*sizes, left)

    def function(point: Point) -> Point:
        place = 0
        for size, x in zip(shape, point, strict=True):
            place = place * size + x
        found: list[int] = []
        for size in reversed(new):
            place, x = divmod(place, size)
            found.append(x)
        return tuple(reversed(found))

    return reshaping_ways(shape, new), reshaping_ways(new, shape), function, new


def ordered(rng: Random, shape: Point) -> tuple[Ways, Ways, Function, Point]:
    order = tuple(rng.sample(range(len(shape)), len(shape)))
    back = tuple(order.index(dim) for dim in range(len(shape)))
    new = tuple(shape[dim] for dim in order)
    return (
        turning_ways(shape, order), turning_ways(new, back),
        lambda p: tuple(p[dim] for dim in order), new,
    )  # fmt: skip


def parted(_: Random, shape: Point) -> tuple[Ways, Ways, Function, Point]:
    size = shape[-1]

    def function(point: Point) -> Point | None:
        return None if point[-1] else point[:-1]

    return without_last(shape), with_last(shape[:-1], size), function, shape[:-1]


@pytest.mark.parametrize("kind", [cut, counted, ordered, parted])
def test_each_lane_has_the_same_elements(
    kind: Callable[[Random, Point], tuple[Ways, Ways, Function, Point]],
) -> None:
    rng = Random(kind.__name__)
    for _ in range(15):
        shape = rng.choice([s for s in SHAPES if kind is not parted or len(s) > 1])
        there, back, function, new = kind(rng, shape)
        layout = any_layout(rng, shape, rng.choice([1, 2, 3]))
        part = follow(layout, there)
        if part is None:
            layout = nearest(layout, there)
            part = follow(layout, there)
        assert part is not None
        assert (layout.shape, part.shape) == (shape, new)
        lanes, parts = held(layout), held(part)
        assert lanes.keys() == parts.keys()
        for lane, points in lanes.items():
            assert {function(p) for p in points} - {None} == parts[lane], (layout, part)
        whole = follow(part, back)
        assert whole is not None
        again = follow(whole, there)
        assert again is not None
        assert are_alike(again, part), (whole, part)


@pytest.mark.parametrize("kind", [cut, counted, parted])
def test_the_way_back_from_any_layout(
    kind: Callable[[Random, Point], tuple[Ways, Ways, Function, Point]],
) -> None:
    rng = Random(kind.__name__)
    for _ in range(15):
        shape = rng.choice([s for s in SHAPES if kind is not parted or len(s) > 1])
        there, back, _, new = kind(rng, shape)
        layout = any_layout(rng, new, rng.choice([1, 2, 3]))
        whole = follow(layout, back)
        if whole is None:
            layout = nearest(layout, back)
            whole = follow(layout, back)
        assert whole is not None
        assert (whole.shape, layout.shape) == (shape, new)
        again = follow(whole, there)
        assert again is not None
        assert are_alike(again, layout), (whole, layout)
