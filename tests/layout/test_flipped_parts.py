"""Sub-tiles of layouts with exclusive-ored digits, held against every point."""

from __future__ import annotations

import re
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fragir.layout import Axis, Layout, LayoutError, Mode, Part, XorMode, subtile
from fragir.layout.modes import Point

NAMES = ("warp", "lane", "element")

Slots = dict[Point, Point]


def inside(layout: Layout, start: Point, shape: Point) -> Slots:
    """The slots that hold something of a part, with what they hold, counted from its start."""
    return {
        slot: tuple(x - s for x, s in zip(point, start, strict=True))
        for slot, point in layout.slots()
        if point is not None
        and all(s <= x < s + n for s, x, n in zip(start, point, shape, strict=True))
    }


def said(part: Part) -> Slots:
    """What a part's layout says, by the elements of the whole."""
    return {
        (*others, part.elements[element]): point
        for (*others, element), point in part.layout.slots()
        if point is not None
    }


def attempt(layout: Layout, start: Point, shape: Point) -> Part | str:
    """The part, or why there is none."""
    try:
        return subtile(layout, start, shape)
    except LayoutError as error:
        return error.message


@st.composite
def parts(draw: st.DrawFn, linear: bool) -> tuple[Layout, Point, Point]:
    """A layout with flips, and where a part of it begins and ends; `linear`: all powers of two."""
    axes: list[Axis] = []
    for name in NAMES:
        modes: list[Mode] = []
        for _ in range(draw(st.integers(1, 2))):
            step = (draw(st.integers(0, 9)), draw(st.sampled_from([0, 0, 1, 2, 4, 12])))
            if linear or draw(st.booleans()):
                modes.append(XorMode(draw(st.sampled_from([2, 4])), step))
            else:
                size = draw(st.sampled_from([2, 3, 4]))
                modes.append(Mode(size, draw(st.sampled_from([(step[0], 0), (0, step[1])]))))
        axes.append(Axis(name, tuple(modes)))
    offset = (draw(st.integers(0, 8)), 0) if draw(st.booleans()) else ()
    layout = Layout(tuple(axes), offset=offset)
    assume(layout.exclusive)
    sizes = [1, 2, 4, 8] if linear else [1, 2, 3, 4, 6, 8, 16]
    shape = tuple(draw(st.sampled_from([n for n in sizes if n <= e])) for e in layout.shape)
    start = tuple(
        n * draw(st.integers(0, e // n - 1)) for n, e in zip(shape, layout.shape, strict=True)
    )
    return layout, start, shape


@settings(max_examples=80, deadline=None)
@given(parts(linear=False))
def test_a_part_is_the_whole_seen_there(given: tuple[Layout, Point, Point]) -> None:
    layout, start, shape = given
    wanted = inside(layout, start, shape)
    part = attempt(layout, start, shape)
    if isinstance(part, str):
        assert not wanted or re.search(r"[Mm]ode \d+:", part)
    else:
        assert said(part) == wanted


@settings(max_examples=80, deadline=None)
@given(parts(linear=True))
def test_aligned_parts_are_refused_only_where_bits_decide_together(
    given: tuple[Layout, Point, Point],
) -> None:
    layout, start, shape = given
    wanted = inside(layout, start, shape)
    # a part can be said where each bit of a coordinate is free or has one value
    values = [
        len({slot[axis] >> bit & 1 for slot in wanted})
        for axis, size in enumerate(layout.sizes.values())
        for bit in range(size.bit_length() - 1)
    ]
    part = attempt(layout, start, shape)
    if not wanted:
        assert isinstance(part, str)
        assert "Nothing is held" in part or "together with others" in part
    elif len(wanted) != prod(values):
        assert isinstance(part, str)
        assert "together with others" in part
    else:
        assert isinstance(part, Part)
        assert said(part) == wanted


def test_a_swizzled_tile() -> None:
    tile = Layout.parse("lane [8:^(1,8)] element [8:(0,1) 8:(0,8)]")
    left, elements = subtile(tile, (0, 32), (4, 32))
    assert str(left) == "lane [4:^(1,8) 2:(0,0)] element [32:(0,1)] where lane/4%2==0"
    assert elements == tuple(range(32, 64))
    right, elements = subtile(tile, (4, 32), (4, 32))
    assert str(right) == "lane [4:^(1,8) 2:(0,0)] element [32:(0,1)] where lane/4%2==1"
    assert elements == tuple(range(32))
    again = subtile(subtile(tile, (4, 0), (4, 64)).layout, (0, 32), (4, 32))
    assert again.layout.equivalent(right)
    odd = Layout.parse("lane [8:^(1,8)] element [64:(0,1) 3:(8,0)]")
    third = subtile(odd, (16, 0), (8, 64))
    assert str(third.layout) == "lane [8:^(1,8)] element [64:(0,1)]"
    assert third.elements == tuple(range(128, 192))


def test_bits_that_decide_together_are_named() -> None:
    tile = Layout.parse("lane [8:^(1,8)] element [8:(0,1) 8:(0,8)]")
    with pytest.raises(LayoutError, match=r"decided by mode 8:\(0,8\) of axis element together"):
        subtile(tile, (0, 0), (8, 8))
    with pytest.raises(LayoutError, match=r"No sub-tile of \(3, 64\): Mode 8:\^\(1,8\) of axis"):
        subtile(tile, (0, 0), (3, 64))
