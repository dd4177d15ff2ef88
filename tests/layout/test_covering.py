"""Tiles that no threads divide: parts that overlap, and who of several holders is the first."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from random import Random

import pytest

from fragir.layout import Layout
from fragir.layout.distribution import covering
from fragir.layout.modes import WARP, Point
from fragir.layout.replicas import Overlap, overlaps, single_holders

SEEDS = range(60)


def drawn(seed: int) -> tuple[tuple[int, ...], int, int]:
    """A shape, a vector that divides its rows, and warps."""
    random = Random(seed)
    rank = random.randint(1, 4)
    shape = tuple(random.randint(1, {1: 200, 2: 40, 3: 9, 4: 5}[rank]) for _ in range(rank))
    vector = random.choice([n for n in (1, 2, 4) if shape[-1] % n == 0])
    return shape, vector, random.choice([1, 2, 3, 4, 8])


@pytest.mark.parametrize("seed", SEEDS)
def test_every_element_has_a_lane_and_lanes_have_few(seed: int) -> None:
    shape, vector, warps = drawn(seed)
    layout = covering(shape, vector, WARP, warps)
    held = Counter(point for _, point in layout.slots())
    assert all(point is not None and len(point) == len(shape) for point in held)
    assert len(held) == prod(shape)
    assert (layout.shape, layout.size("lane"), layout.size("warp")) == (shape, WARP, warps)
    first = [point for slot, point in layout.slots() if slot[:2] == (0, 0)]
    assert len(set(first)) == len(first), "a lane has an element twice"
    # twice as many along each dimension, and what the warps leave over
    units = prod(shape) // vector
    assert len(first) <= vector * 2 ** len(shape) * max(1, -(-units // WARP))


@pytest.mark.parametrize("seed", SEEDS)
def test_one_holder_is_the_first(seed: int) -> None:
    shape, vector, warps = drawn(seed)
    layout = covering(shape, vector, WARP, warps)
    threads = WARP * (warps + seed % 2)  # a warp beyond the layout's holds its first one's again
    conditions, apart = single_holders(layout, threads)
    spoken = Counter[Point]()
    for warp, lane, element in product(
        range(threads // WARP), range(WARP), range(layout.size("element"))
    ):
        slot = {"warp": warp, "lane": lane, "element": element}
        if all(c(slot[c.axis]) for c in conditions):
            slot["warp"] %= warps
            if all(is_first(overlap, slot) for overlap in apart):
                point = layout(**slot)
                assert point is not None
                spoken[point] += 1
    assert len(spoken) == prod(shape)
    assert set(spoken.values()) == {1}


def is_first(overlap: Overlap, slot: dict[str, int]) -> bool:
    """Whether no part before a slot's has the same element along a dimension."""
    (place,), (number,) = overlap.inner(**slot) or (0,), overlap.outer(**slot) or (0,)
    return number == 0 or place >= overlap.apart


def test_digits_alone_do_not_overlap() -> None:
    for text in (
        "warp [2:(0,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
        "lane [32:(1,1)] element [2:(0,1)]",  # one digit along two dimensions
        "lane [32:(0,2)] element [2:(0,1)]",
    ):
        assert overlaps(Layout.parse(text)) == ()
    (found,) = overlaps(Layout.parse("lane [32:1] element [2:20] dims (index)"))
    assert (found.dim, found.apart) == (0, 12)
