"""Tiles handed out in blocks of neighbours: `blocked`."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.layout import Layout, LayoutError, blocked, blocked_product, from_ttg
from fragir.layout.distribution import dims_of
from fragir.layout.modes import Point

SIZES = st.sampled_from([1, 2, 3, 4, 8])
POWERS = st.sampled_from([1, 2, 4, 8])


def held(layout: Layout) -> Counter[Point | None]:
    return Counter(point for _, point in layout.slots())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_element_is_handed_out(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    grids = [tuple(data.draw(SIZES) for _ in range(rank)) for _ in range(2)]
    order = tuple(data.draw(st.permutations(range(rank))))
    whole = tuple(data.draw(st.integers(1, 3)) * a * b for a, b in zip(*grids, strict=True))
    layout = blocked(whole, {"element": grids[0], "lane": grids[1]}, order)
    assert layout.names == ("lane", "element")
    assert layout.size("lane") == prod(grids[1])
    assert layout.is_bijection(whole)
    # the first elements of a lane are a box, in this order; lane 1 is its neighbour
    for axis, box, step in (("element", grids[0], (1,) * rank), ("lane", grids[1], grids[0])):
        for place in range(prod(box)):
            rest, wanted = place, [0] * rank
            for dim in order:
                rest, digit = divmod(rest, box[dim])
                wanted[dim] = digit * step[dim]
            assert layout.axis(axis).at(place, rank) == tuple(wanted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_number_is_divided_among_the_dimensions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, 24)) for _ in range(data.draw(st.integers(1, 3))))
    lanes = data.draw(st.integers(1, 40))
    layout = blocked(shape, {"lane": lanes})
    assert layout.size("lane") == lanes
    count = held(layout)
    assert set(count) == {point for _, point in blocked(shape, {}).slots()}
    assert len(set(count.values())) == 1
    assert len(count) == prod(shape)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_it_is_tritons(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    order = tuple(data.draw(st.permutations(range(rank))))
    grids = [tuple(data.draw(POWERS) for _ in range(rank)) for _ in range(3)]
    shape = tuple(2 ** data.draw(st.integers(0, 6)) for _ in range(rank))
    fields = ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
    text = ", ".join(f"{name} = {list(grid)}" for name, grid in zip(fields, grids, strict=True))
    triton = from_ttg(f"#ttg.blocked<{{{text}, order = {list(order)}}}>", shape)
    ours = blocked(shape, dict(zip(("element", "lane", "warp"), grids, strict=True)), order)
    assert isinstance(triton, Layout)
    assert ours.equivalent(triton)


def test_it_is_a_product_of_compact_layouts() -> None:
    element, lane = Layout.parse("element [8:(0,1)]"), Layout.parse("lane [8:(0,1) 4:(1,0)]")
    product = blocked_product(element, lane)
    assert blocked((4, 64), {"element": (1, 8), "lane": (4, 8)}).equivalent(product)
    assert dims_of(4) == blocked((1, 1, 2, 2), {}).dims


@pytest.mark.parametrize(
    ("shape", "shares", "order", "message"),
    [
        ((4, 20), {"element": (1, 8)}, None, "20 along dimension 1 is no multiple of the 8"),
        ((4, 12), {"lane": (1, 8), "element": (1, 2)}, None, "12 along dimension 1 cuts mode 2:"),
        ((4, 8), {"lane": (8,)}, None, "does not have 2 dimensions"),
        ((4, 8), {"lane": 8}, (0, 0), r"\(0, 0\) is no order of 2 dimensions"),
        ((2, 2, 2, 2, 2), {}, None, "not of 5"),
    ],
)
def test_what_does_not_come_out_even_is_refused(
    shape: Point, shares: dict[str, int | Point], order: Point | None, message: str
) -> None:
    with pytest.raises(LayoutError, match=message):
        blocked(shape, shares, order)
