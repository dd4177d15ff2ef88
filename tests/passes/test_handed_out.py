"""Copies over threads and tiles that nothing gives a layout: each element once."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f16, f32, i1, i8

from fragir.dialects import frag, ptx
from fragir.layout.modes import WARP
from fragir.passes.lowering.copies import WIDTHS, distribution
from fragir.passes.placing.placement import default_layout


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from([32, 64, 96, 128]),
)
def test_each_piece_is_copied_once(rows: int, pieces: int, chunk: int, threads: int) -> None:
    layout, spare = distribution(rows, pieces * chunk, chunk, threads)
    assert layout.size("thread") == threads
    found = Counter(point for _, point in layout.slots())
    beyond = {point for point in found if point is not None and point[0] >= rows}
    inside = {(row, chunk * piece) for row in range(rows) for piece in range(pieces)}
    assert set(found) - beyond == inside
    assert max(found.values()) == 1
    assert bool(beyond) == spare
    # neighbouring threads copy neighbouring pieces, until the columns of a round end
    first = [layout(thread=thread, element=0) for thread in range(threads)]
    for one, other in pairwise(first):
        assert one is not None
        assert other in ((one[0], one[1] + chunk), (one[0] + 1, 0))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_tile_has_rows_in_order(data: st.DataObject) -> None:
    shape = tuple(
        data.draw(st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32, 40]))
        for _ in range(data.draw(st.integers(1, 3)))
    )
    element = data.draw(st.sampled_from([f32, f16, i8, i1]))
    warps = data.draw(st.integers(1, 4))
    threads = WARP * warps
    layout = default_layout(frag.TileType(shape, element), threads)
    assert layout.names == ("warp", "lane", "element")
    assert (layout.size("warp"), layout.size("lane")) == (warps, WARP)
    found = Counter(point for _, point in layout.slots())
    assert len(found) == prod(shape)
    if any(number & (number - 1) for number in (*shape, threads)):
        return  # powers of two divide; of others parts may overlap: see tests/layout/test_covering
    assert len(set(found.values())) == 1
    assert prod(shape) < threads or max(found.values()) == 1
    # elements side by side in a lane are side by side in a row, 16 bytes where that comes out even
    together = 1 if element == i1 else WIDTHS[0] * 8 // ptx.bits(element)
    if shape[-1] % together == 0 and prod(shape) % (threads * together) == 0:
        for number in range(together):
            point = layout(warp=0, lane=0, element=number)
            assert point == (*(0,) * (len(shape) - 1), number)
