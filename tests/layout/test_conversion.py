"""Conversion plans: what they say is what the layouts hold, and the shortest way is found."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.layout import (
    Axis,
    Condition,
    Layout,
    LayoutError,
    Mode,
    Slot,
    layout,
    masked,
    permuted,
    replicated,
    sources,
    split,
)

quick = settings(deadline=None, max_examples=80)

C16 = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]")
A16 = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Two layouts of one tile with digits of two and three, each perhaps with copies."""
    digits = draw(st.lists(st.tuples(st.integers(2, 3), st.integers(0, 1)), max_size=4))
    reach = [1, 1]
    modes: list[Mode] = []
    for size, dim in digits:
        stride = (reach[0], 0) if dim == 0 else (0, reach[1])
        reach[dim] *= size
        modes.append(Mode(size, stride))
    lanes = draw(st.sampled_from([1, 2, 3, 6]))
    warps = draw(st.sampled_from([1, 2, 3]))

    def one() -> Layout:
        parts: dict[str, list[Mode]] = {"warp": [], "lane": [], "element": []}
        left = {"warp": warps, "lane": lanes}
        for mode in draw(st.permutations(modes)):
            name = draw(st.sampled_from(["element", "warp", "lane"]))
            if left.get(name, 0) % mode.size or name == "element":
                name = "element"
            else:
                left[name] //= mode.size
            parts[name].append(mode)
        for name, copies in left.items():
            parts[name].append(Mode(copies, (0, 0)))
        if draw(st.booleans()):
            parts["element"].append(Mode(2, (0, 0)))
        order = draw(st.permutations(("warp", "lane", "element")))
        return layout(*(Axis(n, tuple(draw(st.permutations(parts[n])))) for n in order))

    return one(), one()


def held(value: Layout, slot: Slot) -> tuple[int, ...] | None:
    return value(**{name: x for name, x in slot._asdict().items() if name in value.names})


@given(pairs(), st.booleans())
@settings(deadline=None, max_examples=200)
def test_every_slot_gets_its_element_the_shortest_way(
    pair: tuple[Layout, Layout], mask: bool
) -> None:
    src, dst = pair
    if mask and dst.size("lane") > 1:
        dst = masked(dst, Condition("lane", 1, 2, 1))
    got = sources(src, dst)
    warps, lanes, elements = (dst.size(name) for name in ("warp", "lane", "element"))
    crossed = moved = 0
    for warp, lane, element in product(range(warps), range(lanes), range(elements)):
        at = Slot(warp, lane, element)
        wanted = held(dst, at)
        source = got.source(warp=warp, lane=lane, element=element)
        if wanted is None:
            assert source is None
            continue
        assert source is not None
        assert held(src, source) == wanted
        copies = [Slot(**found) for found in src.inverse(*wanted)]
        assert source in copies
        assert source[:2] == (warp, lane) or (warp, lane) not in {c[:2] for c in copies}
        assert source.warp == warp or warp not in {c.warp for c in copies}
        moved += source[:2] != (warp, lane)
        crossed += source.warp != warp
    assert got.moved == moved
    if got.mapping is not None:
        names = got.mapping.names
        for at, point in got.mapping.slots():
            assert got.source(**dict(zip(names, at, strict=True))) == point
    if crossed:
        assert got.kind == "block"
    elif moved:
        assert got.kind == "warp"
    if got.permutation is not None:
        assert moved == 0
        same = got.permutation == tuple(range(src.size("element")))
        assert got.kind == ("identity" if same else "registers")
    else:
        assert got.kind in ("warp", "block")


@given(pairs())
@quick
def test_to_itself_is_the_identity(pair: tuple[Layout, Layout]) -> None:
    assert sources(pair[0], pair[0]).kind == "identity"


@given(pairs())
@quick
def test_renamed_registers_are_found(pair: tuple[Layout, Layout]) -> None:
    src = pair[0]
    element = src.axis("element").modes
    turned = layout(
        *(Axis(a.name, element[::-1] if a.name == "element" else a.modes) for a in src.axes)
    )
    got = sources(src, turned)
    assert got.kind in ("identity", "registers")
    assert got.permutation is not None
    for e, source in enumerate(got.permutation):
        at = dict.fromkeys(("lane", "warp"), 0)
        assert src(**at, element=source) == turned(**at, element=e)


def test_accumulator_as_operand() -> None:
    """m16n8k16: two accumulators beside each other are the A operand, register for register."""
    assert sources(C16, A16).kind == "identity"
    by_row = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8) 2:(8,0)]")
    got = sources(C16, by_row)
    assert got.kind == "registers"
    assert got.permutation == (0, 1, 4, 5, 2, 3, 6, 7)


def test_masked_lanes_do_not_count() -> None:
    src = Layout.parse("lane [2:(0,1) 2:(1,0)] element [2:(2,0)]")
    dst = Layout.parse("lane [2:(1,0) 2:(0,1)] element [2:(2,0)]")
    assert sources(src, dst).kind == "warp"
    only_zero = masked(dst, Condition("lane", 1, 4, 0))
    assert sources(src, only_zero).kind == "identity"


def test_transposing_moves_between_lanes() -> None:
    c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]")
    t = Layout.parse("lane [4:(2,0) 8:(0,1)] element [2:(1,0)]")
    got = sources(c, t)
    assert got.kind == "warp"
    assert str(got.mapping) == (
        "warp [] lane [4:(0,8,0) 2:(0,0,1) 4:(0,1,0)] element [2:(0,4,0)] dims (warp,lane,element)"
    )
    # movmatrix (PTX ISA 9.2, section 9.7.14.5.17): row and column change places.
    for lane, e in product(range(32), range(2)):
        row, col = 2 * (lane % 4) + e, lane // 4
        assert got.source(lane=lane, element=e) == (0, 4 * row + col // 2, col % 2)
    assert sources(c, permuted(c, ("col", "row"))).kind == "identity"


@pytest.mark.parametrize("columns", [8, 24, 40, 256])
def test_lanes_of_a_warpgroup_count_threads(columns: int) -> None:
    """wgmma's accumulator with 128 lanes and with four warps of 32 is the same."""
    element = f"element [2:(0,1) 2:(8,0) {columns // 8}:(0,8)]"
    threads = Layout.parse(f"lane [4:(0,2) 8:(1,0) 4:(16,0)] {element}")
    assert sources(threads, split(threads, "lane", lane=32, warp=4)).kind == "identity"
    rows = Layout.parse(f"lane [32:(1,0) 2:(32,0) 2:(0,0)] element [{columns}:(0,1)]")
    got = sources(threads, rows)
    assert got.kind == "block"
    # Row 40 is with warp 2, lanes of row 8 of its 16; row 40 is wanted by lane 8 of warps 1 and 3.
    assert got.source(warp=1, lane=8, element=5) == (2, 2, 3)
    assert got.source(warp=3, lane=8, element=5) == (2, 2, 3)


def test_nearest_copies() -> None:
    src = replicated(Layout.parse("element [2:(0,1)] lane [2:(0,0) 2:(1,0)]"), "warp", 3)
    dst = Layout.parse("element [2:(0,1)] lane [2:(1,0) 2:(0,0)] warp [3:(0,0)]")
    got = sources(src, dst)
    assert got.kind == "warp"
    assert [got.source(warp=2, lane=lane, element=0) for lane in range(4)] == [
        (2, 0, 0),
        (2, 3, 0),
        (2, 0, 0),
        (2, 3, 0),
    ]


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(LayoutError, match=r"wants element \(0, 8\), which the source does not"):
        sources(Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"), C16)


@pytest.mark.parametrize(
    ("src", "dst", "message"),
    [
        ("lane [32:(1,0)]", "lane [16:(1,0)]", "over 32 lanes, 32 a warp.*over 16, 16"),
        ("lane [32:(1,0)]", "lane [32:(1,0)] warp [2:(0,0)]", "over 32 lanes.*over 64"),
        ("lane [32:(1,0)]", "thread [32:(1,0)]", "no axis thread"),
        ("lane [32:(1,0)]", "lane [32:1]", "dimensions"),
        ("lane [48:(1,0)]", "lane [48:(1,0)]", "no whole warps"),
    ],
)
def test_what_cannot_be_compared(src: str, dst: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        sources(Layout.parse(src), Layout.parse(dst))
