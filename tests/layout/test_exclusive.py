"""Layouts with exclusive or: what they compute, their one simplified form, their algebra."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.sweeps import layout_forms
from fragir.layout import (
    Axis,
    Layout,
    LayoutError,
    Mode,
    SharedLayout,
    Swizzle,
    XorMode,
    appended,
    blocked_product,
    complement,
    compose,
    concatenated,
    from_formula,
    from_function,
    identity,
    inverse,
    layout,
    left_inverse,
    merged,
    permuted,
    quotient,
    reordered,
    restrict,
    right_inverse,
    shifted,
    sources,
    split,
    subtile,
    swizzled,
    to_cute,
    to_layout,
    to_linear,
    transposed,
    zipped_divide,
)
from fragir.sweeps import Task

Point = tuple[int, ...]
Ask = Callable[[Layout], object]
quick = settings(deadline=None, max_examples=40)


def mode(size: int, step: Point, xor: bool) -> Mode:
    return XorMode(size, step) if xor and not size & (size - 1) else Mode(size, step)


@st.composite
def layouts(
    draw: st.DrawFn,
    names: tuple[str, ...] = ("a", "b"),
    dims: tuple[str, ...] = ("row", "col"),
    most: int = 3,
    offsets: bool = True,
) -> Layout:
    """Any digits, added or exclusive-ored."""
    step = st.tuples(*[st.sampled_from((0, 1, 2, 3, 4, 6, 8, 12))] * len(dims))
    size = st.sampled_from((2, 2, 2, 4, 3, 6))
    one = st.builds(mode, size, step, st.booleans())
    axes = tuple(Axis(name, tuple(draw(st.lists(one, max_size=most)))) for name in names)
    offset = draw(st.tuples(*[st.integers(0, 3)] * len(dims))) if offsets else ()
    return Layout(axes, dims, offset)


def value(text: str, **at: int) -> Point:
    """What a text means, straight from its definition."""
    parsed = Layout.parse(text)
    point, flips = list(parsed.origin), [0] * parsed.rank
    for axis in parsed.axes:
        rest = at[axis.name]
        for one in axis.modes:
            rest, digit = divmod(rest, one.size)
            for dim, step in enumerate(one.step):
                if not one.xor:
                    point[dim] += digit * step
                for bit in range(8) if one.xor else ():
                    flips[dim] ^= (digit >> bit & 1) * (step << bit)
    return tuple(p ^ f for p, f in zip(point, flips, strict=True))


# The value


def test_text_and_parts_are_one_value() -> None:
    text = "row [8:^(144,1) 3:(1024,0)] col [64:(2,0)] offset (1,1)"
    parts = layout(
        Axis("row", (XorMode(8, (144, 1)), Mode(3, (1024, 0)))),
        Axis("col", (Mode(64, (2, 0)),)),
        offset=(1, 1),
    )
    assert Layout.parse(text) == parts
    assert str(parts) == text
    assert Layout.parse("row [ 8 : ^ ( 144 , 1 ) 3:(1024,0)] col[64:(2,0)] offset (1,1)") == parts
    assert parts != Layout.parse(text.replace("^", ""))
    assert hash(parts) == hash(Layout.parse(text))
    assert parts.exclusive
    assert not Layout.parse("row [8:144]").exclusive
    for copied in (copy.deepcopy(parts), pickle.loads(pickle.dumps(parts))):
        assert copied == parts
        assert copied.exclusive


def test_a_xored_mode_has_no_stride() -> None:
    one = XorMode(8, (144,))
    assert (one.column, one.step, one.xor) == ((144,), (144,), True)
    assert one != Mode(8, (144,))
    with pytest.raises(LayoutError, match=r"Mode 8:\^144 is combined by exclusive or"):
        _ = one.stride
    with pytest.raises(AttributeError):
        getattr(one, "strides")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a [3:^1]", r"Mode 3:\^1 of axis a is exclusive-ored bit by bit; its size"),
        ("a [0:^1]", "no positive size"),
        ("a [2:^(1,2)] b [2:1]", "strides, but the layout has"),
        ("a [2:^^1]", "Expected a mode"),
        ("a [2^1]", "Expected a mode"),
    ],
)
def test_what_is_no_layout(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        Layout.parse(text)


@given(layouts(most=2))
@quick
def test_all_ways_to_ask_agree(one: Layout) -> None:
    table = one.array()
    shape = np.array(one.shape)
    assert (table.reshape(-1, 2).max(axis=0) + 1 == shape).all()
    for slot, point in one.slots():
        at = dict(zip(one.names, slot, strict=True))
        assert point == one(**at) == tuple(table[slot]) == value(str(one), **at)
    counts = {len(slots) for slots in one.holders.values()}
    if len(counts) == 1:
        assert one.replication() == counts.pop()
    for box in (None, one.shape):
        start = one.origin if not one.exclusive else tuple(table.reshape(-1, 2).min(axis=0))
        low = (0, 0) if box else start
        wanted = set(product(*(range(a, b) for a, b in zip(low, one.shape, strict=True))))
        assert one.is_bijection(box) == (
            set(one.holders) == wanted and len(wanted) == table.size // 2
        )


def test_a_predicate_leaves_slots_out() -> None:
    some = Layout.parse("a [4:^3] b [2:1] where a%2==1")
    assert some(a=1, b=0) == (3,)
    assert some(a=2, b=0) is None
    assert (some.array() == -1).sum() == 4
    assert some.equivalent(Layout.parse("a [2:^3 2:^6] b [2:1] where a/1%2==1"))
    assert not some.is_bijection()


# The one simplified form


@pytest.mark.parametrize("shape", [0, 1, 2, 3, 5])
def test_a_function_has_one_simplified_form(shape: int) -> None:
    """Exhaustively on small shapes; `fragir sweep layout-forms` has larger ones."""
    result = layout_forms.run(Task(0, ["all", shape], 0, {}))
    assert result["findings"] == []
    assert result["tried"] >= 512


@pytest.mark.parametrize("check", sorted(layout_forms.CHECKS))
def test_random_layouts(check: str) -> None:
    """`fragir sweep layout-forms` runs many more."""
    result = layout_forms.run(Task(0, [check, 0], 1, {"batch": 40}))
    assert result["findings"] == []
    assert result["refused"] < 40


@given(layouts(), st.data())
@quick
def test_equivalent_is_the_same_function(one: Layout, data: st.DataObject) -> None:
    axes: list[Axis] = []
    for axis in one.axes:  # digits cut, and some added instead of xored or the other way round
        modes: list[Mode] = []
        for m in axis.modes:
            if m.size == 4 and data.draw(st.booleans()):
                modes += [m.moving(2, m.step), m.moving(2, tuple(2 * s for s in m.step))]
            else:
                modes.append(m)
        turned = [mode(m.size, m.step, m.xor != data.draw(st.booleans())) for m in modes]
        axes.append(Axis(axis.name, tuple(turned)))
    other = Layout(tuple(reversed(axes)), one.dims, one.offset)
    same = bool((one.array() == np.moveaxis(other.array(), 0, 1)).all())
    assert one.equivalent(other) == same
    if same:
        assert one.simplified().axis("a") == other.simplified().axis("a")
    assert (one.simplified().array() == one.array()).all()


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("a [2:^1] b [2:1]", "a [2:1] b [2:^1]"),
        ("a [2:^3] offset 1", "a [2:1] offset (1)"),
        ("a [8:^1] b [4:^8]", "a [8:1] b [4:8]"),
        (
            "row [2:144 2:288 2:576 8:1024] col [8:2 8:^16] dims (byte)",
            "row [8:^144 8:1024] col [64:2] dims (byte)",
        ),
        ("a [4:^0] b [2:^1]", "a [4:0] b [2:1]"),
        ("a [2:^2 3:4] b [2:^2]", "a [6:2] b [2:^2]"),
        ("a [2:^4 3:7] offset 2", "a [2:4 3:7] offset (2)"),
        ("a [2:^1] b [2:4] c [2:7] offset 1", "a [2:^1] b [2:4] c [2:7] offset (1)"),
    ],
)
def test_simplified(text: str, simple: str) -> None:
    assert str(Layout.parse(text).simplified()) == simple


def test_columns_of_any_layout() -> None:
    kernel = Layout.parse("row [8:^144 3:1024] col [64:2]").kernel
    assert kernel.columns("col") == ((2,), (4,), (8,), (16,), (32,), (64,))
    with pytest.raises(LayoutError, match="digit of size 3 at place 8 of axis row"):
        kernel.columns("row")
    assert not kernel.is_linear
    assert Layout.parse("row [4:(0,1) 2:^(3,1)]").kernel.columns("row") == ((0, 1), (0, 2), (3, 1))
    carrying = Layout.parse("a [2:1] b [2:1] c [2:4]").kernel
    assert [(digit.axis, digit.size) for digit in carrying.forced] == [("a", 2), ("b", 2)]
    assert carrying.columns("c") == ((4,),)


# Composition


def grown(one: Layout, sizes: dict[str, int]) -> Layout:
    """The layout with a xored digit on top of each axis, so that it has these sizes at least."""
    axes: list[Axis] = []
    for axis in one.axes:
        more = 1 << (-(-sizes[axis.name] // axis.size) - 1).bit_length()
        axes.append(Axis(axis.name, (*axis.modes, XorMode(2 * more, (5,) * one.rank))))
    return Layout(tuple(axes), one.dims, one.offset)


@given(layouts(("x", "y"), ("byte",), 2), layouts(("a", "b"), ("y", "x"), 2))
@settings(deadline=None, max_examples=50)
def test_compose_is_exact_or_refuses(outer: Layout, inner: Layout) -> None:
    outer = grown(outer, dict(zip(inner.dims, inner.shape, strict=True)))
    points = inner.array()
    wanted = outer.array()[points[..., 1], points[..., 0]]
    try:
        got = compose(outer, inner)
    except LayoutError:
        if inner.kernel.forced or outer.kernel.forced:
            return
        raise  # columns distribute, always
    assert (got.array() == wanted).all()
    assert got == got.simplified()


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        (64, "warp [4:2048] lane [4:4 8:^144] element [2:2 2:1024 8:16] dims (byte)"),
        (40, "warp [4:2048] lane [4:4 8:^144] element [2:2 2:1024 5:16] dims (byte)"),
        (24, "warp [4:2048] lane [4:4 4:^144 2:576] element [2:2 2:1024 3:16] dims (byte)"),
    ],
)
def test_accumulators_of_wgmma_in_swizzled_memory(columns: int, where: str) -> None:
    d = Layout.parse(
        f"warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) {columns // 8}:(0,8)]"
    )
    got = compose(swizzled((64, 64), 16, 128), d)
    assert str(got) == where
    points = d.array()
    assert (
        got.array() == swizzled((64, 64), 16, 128).array()[points[..., 0], points[..., 1]]
    ).all()


def test_compose_names_the_mode_that_does_not_fit() -> None:
    pitch = Layout.parse("row [8:80] col [64:1] dims (byte)")
    with pytest.raises(LayoutError, match=r"Mode 8:80 of axis row does not fit the outer"):
        compose(Layout.parse("byte [16:1 8:16 8:^144] dims (bank)"), pitch)


# Inverses


@pytest.mark.parametrize(
    ("text", "back"),
    [
        (
            "row [8:^72 8:512] col [64:1]",
            "index [64:(0,1) 8:^(1,8) 8:(8,0)] dims (row,col)",
        ),
        (
            "row [8:^72 3:512] col [64:1]",
            "index [64:(0,1) 8:^(1,8) 3:(8,0)] dims (row,col)",
        ),
        ("byte [128:1 8:^144 8:1024]", "index [128:1 8:^144 8:1024] dims (byte)"),
        (
            "row [3:1] col [2:^6]",
            "No inverse: the digit of size 3 at place 1 of axis row meets bits",
        ),
        ("row [8:^144 3:0] col [64:2]", "No inverse: mode 3:0 of axis row replicates"),
        ("row [4:^3 2:^5] col [2:^2]", "No inverse: bit 4 of axis row holds what others hold too"),
        ("row [8:^144]", "No inverse: nothing holds index 16 alone"),
        ("row [2:^1] offset 4", "offset or predicate"),
    ],
)
def test_inverse(text: str, back: str) -> None:
    one = Layout.parse(text)
    if back.startswith(("No inverse", "offset")):
        with pytest.raises(LayoutError) as refused:
            inverse(one)
        wanted = back.removeprefix("No inverse: ")
        assert wanted in refused.value.message
        return
    got = inverse(one)
    assert str(got) in (back, back.replace(" dims (row,col)", ""))
    assert compose(got, one).equivalent(identity(one.sizes))
    sizes = dict(zip(one.dims, one.shape, strict=True))
    assert compose(one, got).equivalent(identity(sizes))


@given(layouts(offsets=False, most=2))
@settings(deadline=None, max_examples=50)
def test_inverses_are_exact_or_refused(one: Layout) -> None:
    assume(one.exclusive)
    points = [point for _, point in one.slots() if point is not None]
    try:
        back = left_inverse(one)
    except LayoutError:
        assert len(set(points)) < len(points) or one.kernel.forced
    else:
        for slot, point in one.slots():
            assert point is not None
            assert back(**dict(zip(one.dims, point, strict=True))) == slot
    try:
        back = right_inverse(one)
    except LayoutError:
        box = set(product(*map(range, one.shape)))
        assert set(points) != box or one.kernel.forced
    else:
        for point in set(points):
            slot = back(**dict(zip(one.dims, point, strict=True)))
            assert slot is not None
            assert one(**dict(zip(one.names, slot, strict=True))) == point


# The rest of the algebra: exact, or refused by name, never without the exclusive or


def table(one: Layout) -> dict[tuple[int, ...], Point]:
    """The points of a layout by its coordinates a, b."""
    order = [one.names.index(name) for name in ("a", "b")]
    return {
        tuple(slot[i] for i in order): point for slot, point in one.slots() if point is not None
    }


@given(layouts(most=2), st.integers(-2, 3), st.integers(0, 9))
@settings(deadline=None, max_examples=50)
def test_a_step_moves_every_point(one: Layout, rows: int, cols: int) -> None:
    wanted = {at: (r + rows, c + cols) for at, (r, c) in table(one).items()}
    try:
        got = shifted(one, (rows, cols))
    except LayoutError:
        assert one.exclusive or min(min(p) for p in wanted.values()) < 0
    else:
        assert table(got) == wanted


@given(layouts(most=2))
@quick
def test_dimensions_and_axes_are_exchanged(one: Layout) -> None:
    assert table(transposed(one)) == {at: (c, r) for at, (r, c) in table(one).items()}
    assert permuted(one, ("col", "row")).array().tolist() == one.array()[..., ::-1].tolist()
    assert table(reordered(one, ("b", "a"))) == table(one)
    whole = merged(one, "all", ("b", "a"))
    size = one.size("b")
    assert [whole(all=x) for x in range(whole.size("all"))] == [
        table(one)[x // size, x % size] for x in range(whole.size("all"))
    ]
    assert table(reordered(split(whole, "all", b=size, a=one.size("a")), ("a", "b"))) == table(one)


@given(layouts(most=2), layouts(("b", "c"), most=1))
@settings(deadline=None, max_examples=50)
def test_a_sum_is_exact_or_refused(one: Layout, other: Layout) -> None:
    far = compose(Layout.parse("row [256:(1024,0)] col [256:(0,1024)]"), other)
    for second in (other, far):
        try:
            got = concatenated(one, second)
        except LayoutError:
            assert second is other
            assert one.exclusive or second.exclusive
            continue
        size = one.size("b")
        for slot, point in got.slots():
            a, b, c = (slot[got.names.index(name)] for name in "abc")
            first, add = one(a=a, b=b % size), second(b=b // size, c=c)
            assert None not in (first, add)
            assert point == tuple(x + y for x, y in zip(first or (), add or (), strict=True))
        assert concatenated(one, quotient(got, one)).equivalent(got)


@given(layouts(most=2), st.data())
@quick
def test_parts_are_exact_or_refused(one: Layout, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, one.size("a") - 1))
    end = data.draw(st.integers(start + 1, one.size("a")))
    try:
        got = restrict(one, a=slice(start, end))
    except LayoutError:
        return
    assert table(got) == {(a - start, b): p for (a, b), p in table(one).items() if start <= a < end}


def test_a_swizzled_tile_divided_and_repeated() -> None:
    atom = Layout.parse("row [8:^72] col [64:1]")
    tall = Layout.parse("row [8:^72 8:512] col [64:1]")
    assert str(quotient(tall, atom)) == "row [8:512] col []"
    assert str(complement(atom, (2048,))) == "rest [4:512]"
    grid = Layout.parse("row [8:1] col [2:8]")
    tiles = Layout.parse("row [8:^72 8:512] col [64:1 2:4096]")
    assert blocked_product(atom, grid).equivalent(tiles)
    blocks = zipped_divide(tiles, row=8, col=64)
    assert str(blocks) == "tile [8:^72 64:1] rest [16:512]"
    with pytest.raises(LayoutError, match="fill no box: index 1"):
        complement(Layout.parse("row [2:^3 2:^6]"), (8,))
    with pytest.raises(LayoutError, match="does not begin with the fragment's"):
        quotient(Layout.parse("row [8:^144] col [8:16]"), Layout.parse("row [8:^144]"))
    with pytest.raises(LayoutError, match="Exclusive or and sum meet in index 16"):
        appended(Layout.parse("row [8:^144 2:^16]"), "col", (2, (16,)))


def points_of_axis(one: Layout) -> list[Point]:
    return one.axis("a").points(2)


@pytest.mark.parametrize(
    "ask",
    [
        partial(subtile, start=(0, 0), shape=(2, 2), element="a"),
        partial(complement, shape=(64, 64)),
        points_of_axis,
        to_cute,
    ],
)
def test_what_knows_only_sums_names_the_mode(ask: Ask) -> None:
    one = Layout.parse("a [4:^(1,2) 3:(8,0)] b [2:(1,0) 2:^(0,3)]")
    with pytest.raises(LayoutError, match=r"\^\("):
        ask(one)


def test_conversions_of_xored_fragments() -> None:
    plain = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    mixed = Layout.parse("lane [4:^(1,2) 8:^(1,0)] element [2:^(8,1) 2:(8,0)]")
    for src, dst in ((plain, mixed), (mixed, plain), (mixed, mixed)):
        moved = sources(src, dst)
        for warp, lanes in enumerate(moved.sources):
            for lane, elements in enumerate(lanes):
                for element, slot in enumerate(elements):
                    assert slot is not None
                    assert warp == slot.warp == 0
                    held = src(lane=slot.lane, element=slot.element)
                    assert held == dst(lane=lane, element=element)
    assert sources(mixed, mixed).kind == "identity"
    over_bits = to_linear(mixed)
    assert sources(over_bits, mixed).kind == "identity"  # pyright: ignore[reportArgumentType]


# Other values that are layouts


@given(layouts(most=3, offsets=False))
@quick
def test_bases_and_back(one: Layout) -> None:
    try:
        bits = to_linear(one)
    except LayoutError:
        assert one.kernel.forced
        return
    assert to_layout(bits) == one.simplified()
    assert Layout.parse(str(bits)) == one.simplified()
    for slot, point in one.slots():
        assert bits(**dict(zip(one.names, slot, strict=True))) == point


@given(
    layouts(("row", "col"), ("byte",), 2),
    st.builds(Swizzle, st.integers(0, 2), st.integers(0, 3), st.sampled_from([2, 3, -2])),
)
@settings(deadline=None, max_examples=50)
def test_swizzles_multiply_layouts(one: Layout, swizzle: Swizzle) -> None:
    shared = SharedLayout(one, swizzle)
    wanted = [swizzle(point[0]) for _, point in one.slots() if point is not None]
    try:
        got = swizzle * one
    except LayoutError:
        assert one.kernel.forced or one.offset
        return
    assert [point for _, point in got.slots()] == [(x,) for x in wanted]
    assert Layout.parse(f"{one} {swizzle}") == got == shared.as_layout()
    assert compose(swizzle.layout(one.shape[0]), one) == got


@given(layouts(("lane", "element"), most=2))
@quick
def test_formulas_and_back(one: Layout) -> None:
    assume(one.size("lane") <= 32)
    back = from_formula(one.formula(), dims=one.dims)
    assert (back.array() == one.array()).all()


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("a [4:^3] b [4:1]", "index = b ^ (a) ^ (a * 2) for a = {0,..,3}, b = {0,..,3}"),
        (
            "a [2:^5 3:8] b [8:1] offset 16",
            "index = ((a >> 1) * 8 + b + 16) ^ (a % 2) ^ (a % 2 * 4) for a = {0,..,5}, "
            "b = {0,..,7}",
        ),
    ],
)
def test_formulas_with_exclusive_or(text: str, formula: str) -> None:
    assert Layout.parse(text).formula() == formula
    assert from_formula(formula) == Layout.parse(text).simplified()


def test_a_function_with_exclusive_or() -> None:
    one = Layout.parse("a [2:(1,0) 3:(2,0) 2:^(7,1)] b [4:^(1,0)]")
    table = dict(one.slots())
    got = from_function(one.sizes, lambda at: table[at] or (), exclusive=True)
    assert got == one.simplified()
    with pytest.raises(LayoutError, match="No layout is this function"):
        from_function(one.sizes, lambda at: table[at] or ())
    with pytest.raises(LayoutError, match="No layout is this function"):
        from_function({"a": 4, "b": 4}, lambda at: (at[0] * at[1],), ("x",), exclusive=True)


def test_shared_layouts_are_layouts() -> None:
    shared = SharedLayout.parse("row [64:128] col [64:2] dims (byte) swizzle (3,4,3)")
    d = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 8:(0,8)]")
    got = compose(shared, d)  # pyright: ignore[reportArgumentType]
    assert str(got) == "lane [4:4 8:^144] element [2:2 8:16] dims (byte)"
    swizzle = Swizzle(3, 4, 3)
    both = compose(swizzle.layout(8192), swizzle.layout(8192))
    assert str(both) == "byte [8192:1] dims (byte)"
    with pytest.raises(LayoutError, match="followed by a Layout, not int"):
        swizzle.__mul__(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LayoutError, match="has 2 dimensions"):
        Layout.parse("row [8:(1,0)] swizzle (3,4,3)")
    with pytest.raises(LayoutError, match="onto themselves"):
        Layout.parse("row [8:1] swizzle (3,4,1)")
    with pytest.raises(LayoutError, match="Mode 64:2 of axis col does not fit"):
        Layout.parse("row [8:144] col [64:2] swizzle (3,4,3)")
