"""The layout as a value and a function: text, lookup both ways, equality."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.errors import FragirError
from fragir.layout import Axis, Condition, Layout, LayoutError, Mode, axis, layout

Point = tuple[int, ...]
Slot = tuple[int, ...]
quick = settings(deadline=None, max_examples=60)


@st.composite
def layouts(draw: st.DrawFn, rank: int | None = None) -> Layout:
    """Any layout of up to three axes, small enough to tabulate."""
    rank = draw(st.integers(1, 3)) if rank is None else rank
    names = draw(st.lists(st.sampled_from(["lane", "element", "warp"]), unique=True))
    numbers = st.tuples(*[st.integers(0, 9)] * rank)
    mode = st.builds(Mode, st.integers(1, 4), numbers)
    axes = [Axis(name, tuple(draw(st.lists(mode, max_size=2)))) for name in names]
    where = (
        draw(
            st.lists(
                st.builds(
                    Condition, st.sampled_from(names), st.just(2), st.just(3), st.integers(0, 2)
                ),
                max_size=2,
            )
        )
        if names
        else []
    )
    offset = draw(st.one_of(st.just(()), numbers))
    return layout(*axes, dims=("row", "col", "product")[:rank], offset=offset, where=where)


def brute(value: Layout) -> dict[Slot, Point | None]:
    """The function by the definition of modes, digit by digit."""
    table: dict[Slot, Point | None] = {}
    for slot in product(*(range(a.size) for a in value.axes)):
        point = list(value.offset or [0] * len(value.dims))
        held = True
        for a, coordinate in zip(value.axes, slot, strict=True):
            for c in value.where:
                if c.axis == a.name and (coordinate // c.divisor) % c.modulus != c.value:
                    held = False
            place = 1
            for mode in a.modes:
                digit = coordinate // place % mode.size
                point = [p + digit * s for p, s in zip(point, mode.stride, strict=True)]
                place *= mode.size
        table[slot] = tuple(point) if held else None
    return table


@pytest.mark.parametrize("number", [np.int64, np.uint8, np.int32])
def test_coordinates_are_numbers_of_any_package(number: Any) -> None:
    """Of flipped digits too, and what comes back is Python's."""
    plain = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    flipped = Layout.parse("row [8:^144 8:1024] col [64:2] dims (byte)")
    assert repr(plain(lane=number(13), element=number(3))) == "(11, 3)"
    assert repr(flipped(row=number(9), col=number(1))) == f"({1024 + 144 ^ 2},)"


@pytest.mark.parametrize("value", [1.0, "1", True, None])
def test_what_is_no_coordinate(value: Any) -> None:
    plain = Layout.parse("lane [4:(0,2) 8:(1,0)]")
    with pytest.raises(FragirError, match=r"lane is .*, it must be a whole number"):
        plain(lane=value)


@given(layouts())
@quick
def test_call_slots_and_table_are_the_function(value: Layout) -> None:
    table = brute(value)
    assert dict(value.slots()) == table
    for slot, point in table.items():
        assert value(**dict(zip(value.names, slot, strict=True))) == point
        entry = value.table()
        for index in slot:
            assert isinstance(entry, list)
            entry = entry[index]
        assert entry == point


@given(layouts())
@quick
def test_array(value: Layout) -> None:
    array = value.array()
    assert array.shape == (*(a.size for a in value.axes), value.rank)
    for slot, point in brute(value).items():
        assert tuple(array[slot]) == ((-1,) * value.rank if point is None else point)
    assert array.dtype == np.int64


@given(layouts())
@quick
def test_inverse_finds_exactly_the_holders(value: Layout) -> None:
    table = brute(value)
    for point in {p for p in table.values() if p is not None}:
        expected = [
            dict(zip(value.names, slot, strict=True)) for slot, p in table.items() if p == point
        ]
        assert value.inverse(*point) == expected
    assert value.inverse(*[1000] * value.rank) == []


@given(layouts())
@quick
def test_text_round_trip(value: Layout) -> None:
    again = Layout.parse(str(value))
    assert again == value
    assert hash(again) == hash(value)
    assert str(again) == str(value)
    assert eval(repr(value), {"Layout": Layout}) == value


@given(layouts())
@quick
def test_shape_is_the_extent(value: Layout) -> None:
    points = [p for p in brute(layout(*value.axes, dims=value.dims, offset=value.offset)).values()]
    expected = tuple(1 + max(p[dim] for p in points if p is not None) for dim in range(value.rank))
    assert value.shape == expected


@given(layouts())
@quick
def test_simplified_is_the_same_function(value: Layout) -> None:
    simple = value.simplified()
    assert brute(simple) == brute(value)
    assert simple.simplified() == simple
    assert all(mode.size > 1 for a in simple.axes for mode in a.modes)
    assert value.equivalent(simple)


@given(layouts(rank=2), layouts(rank=2))
@quick
def test_equivalent_is_equality_of_functions(a: Layout, b: Layout) -> None:
    same_axes = {x.name: x.size for x in a.axes} == {x.name: x.size for x in b.axes}
    if same_axes:
        order = [a.names.index(name) for name in b.names]
        moved = {tuple(slot[i] for i in order): point for slot, point in brute(a).items()}
        assert a.equivalent(b) == (moved == brute(b))
    elif {x.name: x.size for x in a.axes if x.size > 1} != {
        x.name: x.size for x in b.axes if x.size > 1
    }:
        assert not a.equivalent(b)


@given(layouts(), st.data())
@quick
def test_equivalent_sees_split_modes(value: Layout, data: st.DataObject) -> None:
    """Every way of writing the same digits is found equal."""
    axes: list[Axis] = []
    for a in value.axes:
        modes: list[Mode] = []
        for mode in a.modes:
            factor = data.draw(st.sampled_from([f for f in (1, 2, 3, 4) if mode.size % f == 0]))
            modes.append(Mode(factor, mode.stride))
            modes.append(Mode(mode.size // factor, tuple(factor * s for s in mode.stride)))
        axes.append(Axis(a.name, tuple(modes)))
    other = Layout(tuple(axes), value.dims, value.offset, value.where)
    assert value.equivalent(other)
    assert value.simplified() == other.simplified()


@given(layouts(rank=2))
@quick
def test_bijection_and_replication(value: Layout) -> None:
    points = list(brute(value).values())
    counts = [points.count(p) for p in points if p is not None]
    if len(set(counts)) <= 1:
        assert value.replication() == (counts[0] if counts else 0)
    else:
        with pytest.raises(LayoutError, match="is held"):
            value.replication()
    start = value.offset or (0, 0)
    box = {(r, c) for r in range(start[0], value.shape[0]) for c in range(start[1], value.shape[1])}
    assert value.is_bijection() == (len(points) == len(set(points)) and set(points) == box)
    tile = {(r, c) for r in range(4) for c in range(3)}
    assert value.is_bijection((4, 3)) == (len(points) == 12 and set(points) == tile)


def test_text_is_read_as_written() -> None:
    value = Layout.parse(
        "lane [4:(0,2) 8:(1,0)] element[2:(0,1)] offset (3,4) where lane/2%4==1 and element%2==0"
    )
    assert value.axes == (axis("lane", (4, (0, 2)), (8, (1, 0))), axis("element", (2, (0, 1))))
    assert value.offset == (3, 4)
    assert value.where == (Condition("lane", 2, 4, 1), Condition("element", 1, 2, 0))
    assert value.dims == ("row", "col")
    assert Layout.parse("x [3:2]") == layout(axis("x", (3, (2,))), dims=("index",))
    assert Layout.parse("x [] dims (a,b,c,d)").dims == ("a", "b", "c", "d")
    assert str(layout(axis("x"), dims=("index",))) == "x [] dims (index)"


def test_zero_offset_is_none() -> None:
    assert Layout.parse("x [2:(1,0)] offset (0,0)") == Layout.parse("x [2:(1,0)]")


@pytest.mark.parametrize(
    ("text", "message", "col"),
    [
        ("lane [4:(0,2) 8:(1,0) element [2:(0,1)]", "found 'element'", 23),
        ("lane [4;(0,2)]", "found '4'", 7),
        ("lane [4:(0,2)] where lane/2%4=1", "a condition", 22),
        ("lane [4:(0,2)] offset x", "found 'offset'", 16),
        ("lane [4:(0,2)", "found the end", 14),
    ],
)
def test_syntax_errors_name_the_place(text: str, message: str, col: int) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        Layout.parse(text)
    assert caught.value.col == col
    assert caught.value.source == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lane [0:(0,2)]", "no positive size"),
        ("lane [4:(0,2) 8:(1,0,0)]", "has 3 strides"),
        ("lane [4:(0,2)] lane [4:(0,2)]", "appears twice"),
        ("lane [4:(0,2)] where warp%2==1", "names no axis"),
        ("lane [4:(0,2)] where lane%2==2", "can never hold"),
        ("lane [4:(0,2)] dims (row,row)", "appears twice"),
        ("lane [4:(0,2)] offset (1)", "Offset"),
        ("lane [4:(0,2,3,4)]", "needs names"),
    ],
)
def test_malformed_layouts_are_refused(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        Layout.parse(text)


def test_negative_strides_are_refused() -> None:
    with pytest.raises(LayoutError, match="negative stride"):
        layout(axis("x", (2, (-1, 0))))


def test_wrong_coordinates_are_refused() -> None:
    value = Layout.parse("lane [4:(0,2)] element [2:(1,0)] warp [1:(0,0)]")
    assert value(lane=3, element=1) == (1, 6)
    with pytest.raises(LayoutError, match="axis element is missing"):
        value(lane=3)
    with pytest.raises(LayoutError, match="lane=4 is outside"):
        value(lane=4, element=0)
    with pytest.raises(LayoutError, match="outside"):
        value(lane=-1, element=0)
    with pytest.raises(LayoutError, match="no axis thread"):
        value(thread=0, lane=0, element=0)


def test_import_is_light() -> None:
    code = (
        "import sys, fragir.layout; "
        "print([m for m in ('numpy', 'lark', 'xdsl', 'fragir.layout.formula') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
