"""The algebra against function tables: every result equals brute force, every error is needed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir import layout as L
from fragir.layout import Axis, Condition, Layout, LayoutError, Mode, axis, layout

Point = tuple[int, ...]
C = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")


quick = settings(deadline=None, max_examples=60)
thorough = settings(deadline=None, max_examples=200)
Result = TypeVar("Result")


def attempt(call: Callable[[], Result]) -> Result | str:
    """What the call returns, or the message of its LayoutError."""
    try:
        return call()
    except LayoutError as error:
        return error.message


def table(value: Layout) -> dict[Point, Point | None]:
    return {
        slot: value(**dict(zip(value.names, slot, strict=True)))
        for slot in product(*(range(a.size) for a in value.axes))
    }


def points(value: Layout) -> list[Point]:
    return sorted(point for point in table(value).values() if point is not None)


def box(*extents: int) -> list[Point]:
    return sorted(product(*map(range, extents)))


@st.composite
def loose(
    draw: st.DrawFn,
    names: tuple[str, ...] = ("x",),
    dims: tuple[str, ...] = ("index",),
    largest: int = 6,
) -> Layout:
    """Any modes at all."""
    mode = st.builds(Mode, st.integers(1, 4), st.tuples(*[st.integers(0, largest)] * len(dims)))
    axes = [Axis(name, tuple(draw(st.lists(mode, max_size=3)))) for name in names]
    return layout(*axes, dims=dims)


@st.composite
def tidy(
    draw: st.DrawFn,
    names: tuple[str, ...] = ("lane", "element"),
    dims: tuple[str, ...] = ("row", "col"),
    copies: bool = False,
    gaps: bool = False,
    most: int = 4,
) -> Layout:
    """Digits that tile a box, dealt to the axes in any order; perhaps with copies or gaps."""
    reach = [1] * len(dims)
    modes: dict[str, list[Mode]] = {name: [] for name in names}
    for _ in range(draw(st.integers(0, most))):
        size = draw(st.integers(2, 4))
        dim = draw(st.integers(-1 if copies else 0, len(dims) - 1))
        if gaps:
            reach[dim] *= draw(st.sampled_from([1, 1, 2, 3]))
        stride = tuple(reach[dim] if d == dim else 0 for d in range(len(dims)))
        if dim >= 0:
            reach[dim] *= size
        modes[draw(st.sampled_from(names))].append(Mode(size, stride))
    axes = [Axis(name, tuple(draw(st.permutations(modes[name])))) for name in names]
    return layout(*axes, dims=dims)


def factorizations(n: int) -> list[tuple[int, ...]]:
    if n == 1:
        return [()]
    return [(f, *rest) for f in range(2, n + 1) if n % f == 0 for rest in factorizations(n // f)]


def is_layout(values: list[int]) -> bool:
    """Whether any list of modes is this function of one axis, by trying all of them."""
    for sizes in factorizations(len(values)):
        places = [prod(sizes[:k]) for k in range(len(sizes))]
        strides = [values[place] - values[0] for place in places]
        sums = [
            values[0] + sum(x // p % n * s for p, n, s in zip(places, sizes, strides, strict=True))
            for x in range(len(values))
        ]
        if sums == values and all(s >= 0 for s in strides):
            return True
    return False


# Synthesis


@given(loose(("lane", "element"), ("row", "col")))
@quick
def test_from_function_finds_the_simplest_layout(value: Layout) -> None:
    values = table(value)
    found = L.from_function({a.name: a.size for a in value.axes}, lambda at: values[at] or ())
    assert found == value.simplified()


@given(st.lists(st.integers(0, 8), min_size=1, max_size=12))
@quick
def test_from_function_refuses_exactly_what_is_no_layout(values: list[int]) -> None:
    if is_layout(values):
        found = L.from_function({"x": len(values)}, lambda at: (values[at[0]],), ("index",))
        assert [found(x=x) for x in range(len(values))] == [(v,) for v in values]
    else:
        with pytest.raises(LayoutError, match="No layout is this function"):
            L.from_function({"x": len(values)}, lambda at: (values[at[0]],), ("index",))


def test_from_function_checks_the_sum_of_the_axes() -> None:
    with pytest.raises(LayoutError, match="at a 1, b 1 it gives"):
        L.from_function({"a": 2, "b": 2}, lambda at: (at[0] * at[1],), ("index",))


# Composition


@given(loose(("y",), largest=9), loose(("x",), ("y",)))
@thorough
def test_compose_exactly_where_it_is_a_layout(outer: Layout, inner: Layout) -> None:
    outer = L.appended(outer, "y", (-(-inner.shape[0] // outer.size("y")), (50,)))
    wanted = [outer(y=inner(x=x)[0]) for x in range(inner.size("x"))]  # type: ignore[index]
    if is_layout([w[0] for w in wanted if w is not None]):
        got = L.compose(outer, inner)
        assert [got(x=x) for x in range(inner.size("x"))] == wanted
    else:
        with pytest.raises(LayoutError, match=r"Mode .* of axis x"):
            L.compose(outer, inner)


@given(tidy(("row", "col"), ("byte",)), tidy(("lane", "element"), most=3), st.data())
@thorough
def test_compose_tile_with_fragment(tile: Layout, fragment: Layout, data: st.DataObject) -> None:
    for name, extent in zip(("row", "col"), fragment.shape, strict=True):
        tile = L.appended(tile, name, (-(-extent // tile.size(name)), (1000,)))
    sizes = [tile.size("row"), tile.size("col")]
    room = [n - m for n, m in zip(sizes, fragment.shape, strict=True)]
    offset = tuple(data.draw(st.integers(0, n)) for n in room)
    fragment = L.shifted(fragment, offset)
    try:
        got = L.compose(tile, fragment)
    except LayoutError:
        with pytest.raises(LayoutError, match="No layout"):
            L.from_function(
                fragment.sizes,
                lambda at: (
                    tile(**dict(zip(("row", "col"), table(fragment)[at] or (), strict=True))) or ()
                ),
                ("byte",),
            )
        return
    for slot, point in table(fragment).items():
        assert point is not None
        assert table(got)[slot] == tile(row=point[0], col=point[1])


def test_compose_refuses_what_leaves_the_outer_layout() -> None:
    with pytest.raises(LayoutError, match=r"reaches col 8, but .* has the size 8"):
        L.compose(Layout.parse("row [16:8] col [8:1] dims (byte)"), L.shifted(C, (0, 1)))
    with pytest.raises(LayoutError, match="are not the outer layout's axes"):
        L.compose(C, C)


def test_compose_predicates() -> None:
    outer = Layout.parse("row [16:8] col [8:1] where row/8%2==0 dims (byte)")
    with pytest.raises(LayoutError, match="row/8%2==0 does not hold everywhere"):
        L.compose(outer, C)
    half = Layout.parse("lane [4:(0,2) 8:(1,0)] where lane%4==1")
    got = L.compose(outer, half)
    assert str(got) == "lane [4:2 8:8] where lane/1%4==1 dims (byte)"


@pytest.mark.parametrize(
    ("outer", "inner", "result"),
    [  # CuTe's documentation of composition
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("(20,1):(2,0)", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
    ],
)
def test_compose_as_in_cute(outer: str, inner: str, result: str) -> None:
    first, second = (L.from_cute(text, dims=("index",)) for text in (outer, inner))
    assert isinstance(first, L.Layout)
    assert isinstance(second, L.Layout)
    first = L.merged(first, "index", ("lane", "element"))
    assert L.to_cute(L.compose(first, second)) == result


def test_logical_divide_as_in_cute() -> None:
    """CuTe's documentation: (4,2,3):(2,1,8) divided by 4:2 is ((2,2),(2,3)):((4,1),(2,8))."""
    line = Layout.parse("index [4:2 2:1 3:8]")
    got = L.zipped_divide(line, index=Layout.parse("tile [4:2]"))
    assert L.to_cute(got) == "((2,2),(2,3)):((4,1),(2,8))"


# Complement and inverses


@given(tidy(gaps=True), st.integers(1, 3), st.integers(1, 3))
@quick
def test_complement_covers_the_tile_once(value: Layout, more: int, wider: int) -> None:
    tops = [
        max((m.stride[d] * m.size for a in value.axes for m in a.modes if m.stride[d]), default=1)
        for d in range(2)
    ]
    shape = (tops[0] * more, tops[1] * wider)
    whole = L.concatenated(value, L.complement(value, shape))
    assert points(whole) == box(*shape)


@given(loose(), st.integers(1, 24))
@quick
def test_complement_is_right_or_refused(value: Layout, size: int) -> None:
    rest = attempt(lambda: L.complement(value, (size,)))
    if isinstance(rest, str):
        assert "of axis x" in rest or not value.axis("x").modes
        return
    moving = [m for m in value.axis("x").modes if any(m.stride)]
    whole = L.concatenated(layout(Axis("x", tuple(moving)), dims=("index",)), rest)
    assert points(whole) == box(size)


@pytest.mark.parametrize(
    ("text", "shape", "rest"),
    [  # CuTe's documentation of complement, where its sizes divide
        ("x [4:1]", 24, "6:4"),
        ("x [6:4]", 24, "4:1"),
        ("x [4:1 6:4]", 24, "1:0"),
        ("x [4:2]", 24, "2:1 3:8"),
        ("x [2:4 2:1]", 24, "2:2 3:8"),
        ("x [2:1 2:6]", 24, "3:2 2:12"),
    ],
)
def test_complement_as_in_cute(text: str, shape: int, rest: str) -> None:
    got = L.complement(Layout.parse(text), (shape,))
    assert got.equivalent(Layout.parse(f"rest [{rest}]"))


@given(tidy())
@quick
def test_inverse_of_a_bijection(value: Layout) -> None:
    back = L.inverse(value)
    for slot, point in table(value).items():
        assert point is not None
        assert back(row=point[0], col=point[1]) == slot
    assert L.inverse(back).equivalent(value)


@given(tidy(copies=True))
@quick
def test_right_inverse(value: Layout) -> None:
    back = L.right_inverse(value)
    assert tuple(back.sizes.values()) == value.shape
    for row, col in product(*map(range, value.shape)):
        slot = back(row=row, col=col)
        assert slot is not None
        assert value(**dict(zip(back.dims, slot, strict=True))) == (row, col)


@given(tidy(gaps=True))
@quick
def test_left_inverse(value: Layout) -> None:
    back = L.left_inverse(value)
    for slot, point in table(value).items():
        assert point is not None
        assert back(row=point[0], col=point[1]) == slot


@given(loose(("x", "y")))
@quick
def test_inverses_are_right_or_refused(value: Layout) -> None:
    right = attempt(lambda: L.right_inverse(value))
    if isinstance(right, str):
        assert "mode" in right
    else:
        for at in range(value.shape[0]):
            slot = right(index=at)
            assert slot is not None
            assert value(x=slot[0], y=slot[1]) == (at,)
    left = attempt(lambda: L.left_inverse(value))
    if isinstance(left, str):
        assert "mode" in left
    else:
        for slot, point in table(value).items():
            assert point is not None
            assert left(index=point[0]) == slot


def test_inverse_errors_name_the_mode() -> None:
    copies = L.replicated(C, "warp", 2)
    with pytest.raises(LayoutError, match=r"mode 2:\(0,0\) of axis warp replicates"):
        L.inverse(copies)
    with pytest.raises(LayoutError, match=r"mode 4:\(0,2\) of axis lane leaves a gap"):
        L.inverse(Layout.parse("lane [4:(0,2)]"))
    with pytest.raises(LayoutError, match=r"mode 4:2 of axis lane overlaps"):
        L.inverse(Layout.parse("lane [4:2 4:1]"))
    with pytest.raises(LayoutError, match="moves along row and col"):
        L.inverse(Layout.parse("lane [4:(1,1)]"))


# Division and products


@given(tidy(("row", "col"), ("byte",)), st.data())
@quick
def test_zipped_divide_is_tile_and_rest(tile: Layout, data: st.DataObject) -> None:
    shape = tile.size("row"), tile.size("col")
    rows, cols = (
        data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        for size in shape
    )
    wanted: dict[Point, Point] = {}
    for (r, c), point in table(tile).items():
        inside = r % rows + rows * (c % cols)
        which = r // rows + shape[0] // rows * (c // cols)
        wanted[inside, which] = point or ()
    got = attempt(lambda: L.zipped_divide(tile, row=rows, col=cols))
    if isinstance(got, str):
        sizes = {"tile": rows * cols, "rest": shape[0] * shape[1] // (rows * cols)}
        with pytest.raises(LayoutError, match="No layout"):
            L.from_function(sizes, lambda at: wanted[at], ("byte",))
    else:
        assert table(got) == wanted


@given(tidy(gaps=True, names=("x",), dims=("index",), most=2), st.integers(1, 3))
@quick
def test_logical_divide_by_a_layout(tiler: Layout, more: int) -> None:
    top = max((m.stride[0] * m.size for m in tiler.axis("x").modes), default=1)
    line = Layout.parse(f"index [{top * more}:5]")
    got = L.logical_divide(line, index=tiler)
    tile = [5 * p[0] for p in (tiler(x=x) for x in range(tiler.size("x"))) if p is not None]
    all_ = [p[0] for p in (got(index=i) for i in range(top * more)) if p is not None]
    assert all_[: len(tile)] == tile
    assert sorted(all_) == [5 * x for x in range(top * more)]


def test_divide_refuses_what_does_not_divide() -> None:
    line = Layout.parse("row [4:1 3:10] dims (byte)")
    with pytest.raises(LayoutError, match=r"row.*5 along index.*12"):
        L.logical_divide(line, row=5)
    with pytest.raises(LayoutError, match=r"Mode 6:\(1\)|Mode 6:1 of axis tile"):
        L.zipped_divide(line, row=6)
    with pytest.raises(LayoutError, match="no axis col"):
        L.logical_divide(line, col=2)


@given(tidy(), tidy(names=("element", "warp"), copies=True, most=3))
@quick
def test_blocked_product_and_quotient(fragment: Layout, grid: Layout) -> None:
    got = L.blocked_product(fragment, grid)
    height, width = fragment.shape
    for (lane, e), point in table(fragment).items():
        for (f, warp), which in table(grid).items():
            assert point is not None
            assert which is not None
            element = e + fragment.size("element") * f
            expected = point[0] + height * which[0], point[1] + width * which[1]
            assert got(lane=lane, element=element, warp=warp) == expected
    rest = L.quotient(got, fragment)
    assert L.concatenated(fragment, rest).equivalent(got)


@given(tidy(), tidy(names=("element", "warp"), most=3))
@quick
def test_raked_product(fragment: Layout, grid: Layout) -> None:
    got = L.raked_product(fragment, grid)
    blocked = L.blocked_product(fragment, grid)
    for lane, e, f, warp in product(
        range(fragment.size("lane")),
        range(fragment.size("element")),
        range(grid.size("element")),
        range(grid.size("warp")),
    ):
        raked = f + grid.size("element") * e
        block = e + fragment.size("element") * f
        assert got(lane=lane, element=raked, warp=warp) == blocked(
            lane=lane, element=block, warp=warp
        )


@pytest.mark.parametrize(
    ("first", "second", "product_"),
    [  # CuTe's documentation of logical_product
        ("x [2:4 2:1]", "y [6:1]", "x [2:4 2:1] y [2:2 3:8]"),
        ("x [2:4 2:1]", "y [4:2 2:1]", "x [2:4 2:1] y [4:8 2:2]"),
    ],
)
def test_logical_product_as_in_cute(first: str, second: str, product_: str) -> None:
    got = L.logical_product(Layout.parse(first), Layout.parse(second))
    assert got.equivalent(Layout.parse(product_))
    with pytest.raises(LayoutError, match="have an axis x"):
        L.logical_product(Layout.parse(first), Layout.parse(first))


def test_quotient_refuses_another_fragment() -> None:
    tile = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(8,0) 2:(0,1)]")
    with pytest.raises(LayoutError, match="does not begin with the fragment's element"):
        L.quotient(tile, C)
    short = Layout.parse("lane [4:(0,2) 8:(1,0)] element [3:(0,1)]")
    with pytest.raises(LayoutError, match=r"Mode 3:\(0,1\) of axis element cannot be cut at 4"):
        L.quotient(short, C)


@pytest.mark.parametrize("columns", range(8, 264, 8))
def test_wgmma_accumulators_are_made_of_mma_fragments(columns: int) -> None:
    d = Layout.parse(
        f"warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) {columns // 8}:(0,8)]"
    )
    assert d.is_bijection((64, columns))
    rest = L.quotient(d, C)
    assert rest.size("element") == columns // 8
    assert L.blocked_product(C, Layout.parse(f"element [{columns // 8}:(0,1)]")).equivalent(
        L.restrict(d, warp=0)
    )
    assert table(L.inverse(d))[63, columns - 1] == (3, 31, columns // 2 - 1)


# Parts


@given(tidy(names=("lane", "element"), copies=True), st.data())
@quick
def test_restrict(value: Layout, data: st.DataObject) -> None:
    lane = data.draw(st.integers(0, value.size("lane") - 1))
    start = data.draw(st.integers(0, value.size("element") - 1))
    stop = data.draw(st.integers(start + 1, value.size("element")))
    got = attempt(lambda: L.restrict(value, lane=lane, element=slice(start, stop)))
    if isinstance(got, str):
        part = [value(lane=lane, element=e) for e in range(start, stop)]
        with pytest.raises(LayoutError, match="No layout"):
            L.from_function({"element": stop - start}, lambda at: part[at[0]] or ())
        assert "axis element" in got
        return
    assert got.names == ("element",)
    for e in range(start, stop):
        assert got(element=e - start) == value(lane=lane, element=e)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 15), st.data())
@quick
def test_restrict_keeps_predicates(
    divisor: int, modulus: int, start: int, data: st.DataObject
) -> None:
    value_ = data.draw(st.integers(0, modulus - 1))
    length = data.draw(st.integers(1, 16 - start))
    whole = layout(axis("lane", (16, (1,))), where=[Condition("lane", divisor, modulus, value_)])
    wanted = [whole(lane=start + x) for x in range(length)]
    got = attempt(lambda: L.restrict(whole, lane=slice(start, start + length)))
    if isinstance(got, str):
        assert "lane/" in got
        assert None in wanted
        return
    assert [got(lane=x) for x in range(length)] == wanted


@given(tidy(names=("warp", "lane", "element"), copies=True, gaps=True), st.data())
@quick
def test_subtile(value: Layout, data: st.DataObject) -> None:
    extent = tuple(data.draw(st.integers(1, n)) for n in value.shape)
    start = tuple(
        n * data.draw(st.integers(0, whole // n - 1))
        for n, whole in zip(extent, value.shape, strict=True)
    )
    inside = {
        slot: point
        for slot, point in table(value).items()
        if point is not None
        and all(s <= p < s + n for s, p, n in zip(start, point, extent, strict=True))
    }
    got = attempt(lambda: L.subtile(value, start, extent))
    if isinstance(got, str):
        assert not inside or "mode" in got
        return
    part, elements = got
    found = {
        (warp, lane, elements[e]): tuple(p + s for p, s in zip(point, start, strict=True))
        for (warp, lane, e), point in table(part).items()
        if point is not None
    }
    assert found == inside


@pytest.mark.parametrize(
    ("text", "start", "shape", "message"),
    [
        ("element [3:(1,0) 2:(2,0)]", (2, 0), (1, 1), r"mode 2:\(2,0\) .* overlaps"),
        ("element [2:(1,0) 2:(4,0)]", (2, 0), (2, 1), "Nothing is held from row 2"),
        ("element [6:(1,0)]", (4, 0), (4, 1), "does not tile row 6"),
        ("element [9:(1,0)]", (4, 0), (2, 1), r"mode 9:\(1,0\) .* cut at row 2"),
        ("element [2:(1,0) 3:(3,0)]", (2, 0), (2, 1), r"2 along row does not divide mode 3"),
        ("element [4:(1,1)]", (0, 0), (2, 2), "moves along row and col"),
        ("element [4:(1,0)] offset (1,0)", (0, 0), (1, 1), "shift it to zero"),
        ("element [4:(1,0)] where element%2==0", (0, 0), (1, 1), "predicate over element"),
    ],
)
def test_subtile_refuses(text: str, start: Point, shape: Point, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        L.subtile(Layout.parse(text), start, shape)


# Rearranging


@given(tidy(copies=True))
@quick
def test_dims(value: Layout) -> None:
    turned = L.transposed(value)
    assert turned.dims == value.dims
    swapped = L.permuted(value, ("col", "row"))
    assert swapped.dims == ("col", "row")
    for slot, point in table(value).items():
        assert point is not None
        assert table(turned)[slot] == table(swapped)[slot] == point[::-1]
    assert L.transposed(turned) == value


@given(tidy(names=("a", "b", "c"), copies=True), st.permutations(("a", "b", "c")))
@quick
def test_merged_split_reordered_renamed(value: Layout, order: list[str]) -> None:
    whole = L.merged(value, "t", order)
    for slot, point in table(value).items():
        at = dict(zip(value.names, slot, strict=True))
        t = place = 0
        place = 1
        for name in order:
            t += place * at[name]
            place *= value.size(name)
        assert whole(t=t) == point
    sizes = {name: value.size(name) for name in order}
    again = L.split(whole, "t", **sizes)
    assert again.equivalent(value)
    assert L.reordered(again, value.names).names == value.names
    assert L.renamed(value, a="z").equivalent(value) == (value.size("a") == 1)


@given(st.integers(1, 4), st.integers(1, 4), st.data(), st.sampled_from([2, 3, 4, 6, 8, 12]))
@quick
def test_conditions_follow_merging_and_concatenation(
    divisor: int, modulus: int, data: st.DataObject, size: int
) -> None:
    which = data.draw(st.integers(0, modulus - 1))
    small = layout(
        axis("lane", (size, (1,))),
        axis("warp", (3, (20,))),
        where=[Condition("lane", divisor, modulus, which)],
    )
    merged = attempt(lambda: L.merged(small, "t", ("lane", "warp")))
    longer = attempt(lambda: L.concatenated(small, Layout.parse("lane [2:100]")))
    if isinstance(merged, str) or isinstance(longer, str):
        assert isinstance(merged, str)
        assert isinstance(longer, str)
        assert "does not fit the size" in merged
        assert size % (divisor * modulus)
        return
    for (lane, warp), point in table(small).items():
        assert merged(t=lane + size * warp) == point
        assert longer(lane=lane, warp=warp) == point
        upper = longer(lane=lane + size, warp=warp)
        assert upper == (None if point is None else (point[0] + 100,))
    above = L.concatenated(Layout.parse("lane [2:100]"), small)
    for (lane, warp), point in table(small).items():
        assert above(lane=2 * lane, warp=warp) == point
        assert above(lane=2 * lane + 1, warp=warp) == (None if point is None else (point[0] + 100,))


def test_split_refuses_wrong_sizes() -> None:
    with pytest.raises(LayoutError, match="has the size 32, not 16"):
        L.split(C, "lane", lane=4, warp=4)
    with pytest.raises(LayoutError, match=r"Mode 2:\(8,0\) of axis element cannot be cut at 3"):
        L.split(L.appended(C, "element", (3, (0, 8))), "element", a=6, b=2)


def test_masked_and_shifted() -> None:
    masked = L.masked(L.shifted(C, (16, 8)), Condition("lane", 1, 4, 2))
    assert masked(lane=2, element=0) == (16, 12)
    assert masked(lane=3, element=0) is None
    with pytest.raises(LayoutError, match="Offset"):
        L.shifted(C, (-1, 0))
