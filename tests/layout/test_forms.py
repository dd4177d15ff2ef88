"""F2 bases and CuTe's shape:stride: single trips against literal text, and round trips."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.layout import (
    Axis,
    Layout,
    LayoutError,
    LinearLayout,
    Mode,
    from_cute,
    layout,
    linear,
    to_cute,
    to_layout,
    to_linear,
)

Point = tuple[int, ...]
quick = settings(deadline=None, max_examples=80)


@st.composite
def binary(draw: st.DrawFn, names: tuple[str, ...] = ("lane", "element"), most: int = 6) -> Layout:
    """Power-of-two digits that tile a box, dealt to the axes, with some copies."""
    reach = [1, 1]
    modes: dict[str, list[Mode]] = {name: [] for name in names}
    for _ in range(draw(st.integers(0, most))):
        size = draw(st.sampled_from([2, 4]))
        dim = draw(st.integers(-1, 1))
        stride = (reach[0] if dim == 0 else 0, reach[1] if dim == 1 else 0)
        if dim >= 0:
            reach[dim] *= size
        modes[draw(st.sampled_from(names))].append(Mode(size, stride))
    return layout(*(Axis(name, tuple(draw(st.permutations(modes[name])))) for name in names))


@st.composite
def linears(
    draw: st.DrawFn, axes: tuple[str, ...], dims: tuple[str, ...], width: int = 4
) -> LinearLayout:
    """Any bases at all."""
    basis = st.tuples(*[st.integers(0, (1 << width) - 1)] * len(dims))
    return LinearLayout(
        tuple((name, tuple(draw(st.lists(basis, max_size=3)))) for name in axes), dims
    )


def slots(value: LinearLayout) -> list[dict[str, int]]:
    ranges = [range(1 << len(bases)) for _, bases in value.axes]
    return [dict(zip(value.names, slot, strict=True)) for slot in product(*ranges)]


# F2


def test_bases_of_the_accumulator() -> None:
    """The bases that Triton prints for an m16n8 accumulator."""
    value = to_linear(Layout.parse("element [2:(0,1) 2:(8,0)] lane [4:(0,2) 8:(1,0)] warp []"))
    assert str(value) == (
        'f2:{"register": [[0, 1], [8, 0]], '
        '"lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "warp": []}'
    )
    triton = (
        "f2:{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
        "warp = []}"
    )
    assert LinearLayout.parse(triton) == value


@given(binary())
@quick
def test_linear_is_the_same_function(value: Layout) -> None:
    bits = to_linear(value)
    for slot, point in value.slots():
        assert bits(**dict(zip(value.names, slot, strict=True))) == point
    assert to_layout(bits) == value.simplified()
    assert LinearLayout.parse(str(bits)) == bits


@given(linears(("a", "b"), ("c", "d")))
@quick
def test_linear_text(value: LinearLayout) -> None:
    assert LinearLayout.parse(str(value)) == value
    images = [value(**slot) for slot in slots(value)]
    assert len(set(images)) == 1 << value.rank
    box = 1 << sum(value.bits)
    assert value.is_bijection == (len(images) == len(set(images)) == box)


@given(linears(("a", "b"), ("c", "d"), 3), linears(("x",), ("a", "b"), 2))
@quick
def test_linear_compose(outer: LinearLayout, inner: LinearLayout) -> None:
    sizes = {name: len(bases) for name, bases in outer.axes}
    if any(bits > sizes[name] for name, bits in zip(inner.dims, inner.bits, strict=True)):
        with pytest.raises(LayoutError, match="does not fit"):
            linear.compose(outer, inner)
        return
    got = linear.compose(outer, inner)
    for slot in slots(inner):
        assert got(**slot) == outer(**dict(zip(inner.dims, inner(**slot), strict=True)))


@given(linears(("a", "b"), ("c", "d"), 2))
@settings(deadline=None, max_examples=200)
def test_linear_inverses(value: LinearLayout) -> None:
    images = {value(**slot) for slot in slots(value)}
    if images == set(product(*map(range, value.shape))):
        back = linear.right_inverse(value)
        for point in images:
            slot = back(**dict(zip(value.dims, point, strict=True)))
            assert value(**dict(zip(value.names, slot, strict=True))) == point
    else:
        with pytest.raises(LayoutError, match="No right inverse"):
            linear.right_inverse(value)
    if value.is_bijection:
        back = linear.inverse(value)
        for slot in slots(value):
            point = value(**slot)
            assert back(**dict(zip(value.dims, point, strict=True))) == tuple(slot.values())
    else:
        with pytest.raises(LayoutError, match=r"No (right )?inverse"):
            linear.inverse(value)


@given(binary(most=4), linears(("element", "warp"), ("row", "col"), 2))
@quick
def test_linear_divide_undoes_product(fragment: Layout, grid: LinearLayout) -> None:
    first = to_linear(fragment)
    whole = linear.product(first, grid)
    rest = linear.divide(whole, first)
    assert linear.product(first, rest) == whole
    assert dict(rest.axes) == {"lane": (), **dict(grid.axes)}


def test_linear_divide_refuses_another_fragment() -> None:
    tile = LinearLayout.of({"register": [[0, 1], [0, 2]], "lane": [[1, 1]]})
    with pytest.raises(LayoutError, match="element does not begin with"):
        linear.divide(tile, LinearLayout.of({"register": [[0, 2]]}))
    with pytest.raises(LayoutError, match=r"Basis \(1, 1\) of axis lane moves inside"):
        linear.divide(tile, LinearLayout.of({"register": [[0, 1]]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lane [3:(0,1)]", "Mode 3:.* of axis lane is not a power of two"),
        ("lane [4:(0,3)]", r"Mode 4:\(0,3\) of axis lane carries"),
        ("lane [2:(0,1)] element [2:(0,1)]", r"Mode 2:\(0,1\) of axis element carries"),
        ("lane [2:(0,1)] offset (1,0)", "offset or predicate"),
    ],
)
def test_what_is_not_linear(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        to_linear(Layout.parse(text))


@pytest.mark.parametrize("text", ["", "f2:", "f2:[1]", 'f2:{"a": [1]}', 'f2:{"a": [["x"]]}'])
def test_linear_syntax(text: str) -> None:
    with pytest.raises(LayoutError, match="Not a layout over F2"):
        LinearLayout.parse(text)


# CuTe


@pytest.mark.parametrize(
    ("cute", "shape", "text"),
    [  # thread-value layouts from CUTLASS's include/cute/atom/mma_traits_sm80.hpp
        (
            "((4,8),(2,2)):((32,1),(16,8))",
            (16, 8),
            "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
        ),
        (
            "((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))",
            (16, 16),
            "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]",
        ),
        ("((4,8),2):((16,1),8)", (8, 8), "lane [4:(0,2) 8:(1,0)] element [2:(0,1)]"),
        ("(32,(6,1)):(1,(32,7))", (32, 6), "lane [32:(1,0)] element [6:(0,1)]"),
        ("(48,1):(1,0)", (16, 3), "lane [16:(1,0) 3:(0,1)] element []"),
    ],
)
def test_from_cute(cute: str, shape: Point, text: str) -> None:
    assert str(from_cute(cute, shape)) == text


def test_to_cute() -> None:
    d = Layout.parse("warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]")
    assert to_cute(d) == "(4,(4,8),(2,2,3)):(16,(128,1),(64,8,512))"
    assert to_cute(Layout.parse("lane [4:(0,2)] element []"), (4, 8)) == "(4,1):(8,0)"
    assert to_cute(Layout.parse("row [4:1 2:8]")) == "(4,2):(1,8)"


@st.composite
def mixed(draw: st.DrawFn) -> Layout:
    reach = [1, 1]
    modes: dict[str, list[Mode]] = {"lane": [], "element": []}
    for _ in range(draw(st.integers(0, 5))):
        size = draw(st.integers(2, 5))
        dim = draw(st.integers(-1, 1))
        stride = (reach[0] if dim == 0 else 0, reach[1] if dim == 1 else 0)
        if dim >= 0:
            reach[dim] *= size
        modes[draw(st.sampled_from(["lane", "element"]))].append(Mode(size, stride))
    return layout(*(Axis(name, tuple(draw(st.permutations(m)))) for name, m in modes.items()))


@given(mixed(), st.integers(0, 3), st.integers(0, 3))
@quick
def test_cute_round_trip(value: Layout, more: int, wider: int) -> None:
    shape = value.shape[0] + more, value.shape[1] + wider
    text = to_cute(value, shape)
    read = from_cute(text, shape)
    assert isinstance(read, Layout)
    assert read.equivalent(value)
    assert to_cute(read, shape) == to_cute(value.simplified(), shape)
    # The index that CuTe computes is the column-major number of the point.
    flat = from_cute(text, dims=("index",))
    for slot, point in value.slots():
        assert point is not None
        assert flat(lane=slot[0], element=slot[1]) == (point[0] + shape[0] * point[1],)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(4,8)", "no ':'"),
        ("(4,8:(1,2)", "comma or \\)"),
        ("(4,8):(1,2))", "left over"),
        ("(4,8):(1,x)", "'x' is not part"),
        ("(4,(2,4)):(1,4)", "same nesting"),
        ("4:1", "does not have 2 modes"),
        ("(4,8,2):(1,2,3)", "does not have 2 modes"),
        ("(4,8):(1,)", "number or \\( is missing"),
        ("(16,9):(1,16)", "reaches index 143"),
        ("(6,4):(4,32)", "Mode 6:4 of axis lane"),
    ],
)
def test_cute_errors(text: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        from_cute(text, (16, 8))


def test_cute_refuses_what_it_cannot_say() -> None:
    with pytest.raises(LayoutError, match="neither offset nor predicate"):
        to_cute(Layout.parse("lane [4:(0,2)] offset (1,0)"))
    with pytest.raises(LayoutError, match="does not fit into"):
        to_cute(Layout.parse("lane [4:(0,2)]"), (1, 4))
