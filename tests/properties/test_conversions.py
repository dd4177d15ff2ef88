"""Conversions between random layouts: every slot gets its element, on the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.bare import wrong_slots
from fragir.dialects.elements import element_type
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.f2 import rank
from fragir.toolchain.ptxas import assemble

from .draws import layouts
from .judge import examples

ELEMENTS = ("s8", "f16", "f32", "f64")
MACHINES = ("sm_80", "sm_90a")


@st.composite
def exclusive(draw: st.DrawFn, rows: int, cols: int, warps: int) -> Layout:
    """A layout whose columns are added without carry: any matrix over F2 that holds the tile.

    Some columns are sums of others, or zero: copies.
    """
    widths = [rows.bit_length() - 1, cols.bit_length() - 1]
    bits, threads = sum(widths), 5 + warps.bit_length() - 1
    registers = max(0, bits - threads) + draw(st.integers(0, 2))
    number = st.integers(0, (1 << bits) - 1)
    columns = [draw(number) if draw(st.booleans()) else 0 for _ in range(threads + registers)]
    kept = iter(draw(st.permutations(range(threads + registers))))
    for bit in range(bits):  # one after the other until the tile is there
        while rank(columns) < bits and rank([*columns, 1 << bit]) > rank(columns):
            at = next(kept, None)
            if at is None:
                break
            if rank([*columns[:at], 0, *columns[at + 1 :]]) == rank(columns):
                columns[at] = 1 << bit
    order = draw(st.permutations(range(threads + registers)))
    columns = [columns[i] for i in order]
    texts = [f"2:^({c >> widths[1]},{c & ((1 << widths[1]) - 1)})" for c in columns]
    texts = [text if c else "2:(0,0)" for text, c in zip(texts, columns, strict=True)]
    lane, warp, element = texts[:5], texts[5:threads], texts[threads:]
    return Layout.parse(
        f"warp [{' '.join(warp)}] lane [{' '.join(lane)}] element [{' '.join(element)}]"
    )


@st.composite
def sides(draw: st.DrawFn) -> tuple[Layout, Layout, tuple[int, int]]:
    """Two layouts of one tile over as many warps, and its shape."""
    warps = draw(st.sampled_from([1, 1, 2, 4]))
    if draw(st.booleans()):
        shape = 1 << draw(st.integers(2, 5)), 1 << draw(st.integers(2, 5))
        source, target = draw(exclusive(*shape, warps)), draw(exclusive(*shape, warps))
    else:
        rows, cols = draw(st.sampled_from([8, 12, 16, 32])), draw(st.sampled_from([8, 16, 24, 40]))
        shape = rows, cols
        source, target = draw(layouts(*shape, warps)), draw(layouts(*shape, warps))
    if draw(st.integers(0, 3)) == 0:
        target = only_some(target, draw(st.sampled_from(["lane%2==1", "lane/4%4==2"])))
    copies = [k for k, mode in enumerate(source.axis("lane").modes) if not any(mode.step)]
    if copies and draw(st.booleans()) and all(m.size == 2 for m in source.axis("lane").modes):
        source = only_some(source, f"lane/{1 << draw(st.sampled_from(copies))}%2==1")
    return source, target, shape


def only_some(layout: Layout, lanes: str) -> Layout:
    """The layout without what other lanes hold."""
    return Layout.parse(f"{layout} where {lanes}")


def holds_all(layout: Layout, shape: Sequence[int]) -> bool:
    return len(layout.holders) == prod(shape)


@examples(15)
@given(sides(), st.sampled_from(ELEMENTS), st.sampled_from(MACHINES))
def test_every_slot_gets_its_element(
    drawn: tuple[Layout, Layout, tuple[int, int]], element: str, machine: str
) -> None:
    source, target, shape = drawn
    assert holds_all(source, shape)
    text, wrong = wrong_slots(source, target, shape, element_type(element), machine)
    assert wrong == 0, f"{source} -> {target} of {element}"
    if len(text) % 8 == 0:  # ptxas takes long
        assemble(text, machine)


def test_a_point_that_is_nowhere_is_an_error() -> None:
    source = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)] where lane%2==0")
    target = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]")
    with pytest.raises(FragirError, match=r"\(0, 2\)"):
        wrong_slots(source, target, (8, 8), element_type("f16"), "sm_80")
