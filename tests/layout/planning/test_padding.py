"""Rows of shared memory padded by trial: passes counted lane by lane."""

from __future__ import annotations

import pytest

from fragir.layout import Layout, wavefronts
from fragir.layout.planning.padding import padded_rows

PAIRS = {
    "rows to columns": (
        "lane [32:(1,0)] element [96:(0,1)]",
        "lane [32:(0,3)] element [32:(1,0) 3:(0,1)]",
        32,
    ),
    "columns over 24 lanes": (
        "lane [32:(1,0)] element [24:(0,1)]",
        "lane [24:(0,1)] element [32:(1,0)]",
        16,
    ),
    "to half of the lanes": (
        "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]",
        "warp [4:(0,6)] lane [2:(0,1) 2:(0,0) 8:(0,2)] element [64:(1,0)] where lane/16%2==0",
        16,
    ),
    "a shifted tile": (
        "lane [32:(1,0)] element [24:(0,1)] offset (0,1)",
        "lane [32:(1,0)] element [24:(0,1)] offset (0,1)",
        8,
    ),
}


def counted(layout: Layout, pitch: int, unit: int, size: int) -> int:
    """The passes of the first warp, of all elements in accesses of so many bytes."""
    zeros = {axis.name: 0 for axis in layout.axes}
    lanes = {8: 16, 16: 8}.get(size, 32)
    paid = 0
    for element in range(0, layout.size("element"), size // unit):
        points = [
            layout(**zeros | {"lane": lane, "element": element})
            for lane in range(layout.size("lane"))
        ]
        for first in range(0, len(points), lanes):
            group = [point for point in points[first : first + lanes] if point]
            paid += wavefronts([(row * pitch + col) * unit for row, col in group], size)
    return paid


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_fewest_passes_of_all_pads(name: str) -> None:
    *texts, bits = PAIRS[name]
    source, target = (Layout.parse(str(text)) for text in texts)
    unit = int(bits) // 8
    found = padded_rows(source, target, int(bits))
    sides = list(zip((source, target), found.sizes, strict=True))
    assert found.passes == tuple(counted(s, found.pitch, unit, size) for s, size in sides)
    wide = max(4, *found.sizes)
    plain = -(-source.shape[1] * unit // wide) * wide // unit
    tried = [
        sum(counted(side, plain + pad // unit, unit, size) for side, size in sides)
        for pad in range(0, 128, wide)
    ]
    assert found.pitch * unit % wide == 0
    assert sum(found.passes) == min(tried)
    assert found.scratch == source.shape[0] * found.pitch * unit


def test_vectors_are_taken_where_every_lane_starts_at_one() -> None:
    rows = Layout.parse("lane [32:(1,0)] element [24:(0,1)]")
    odd = Layout.parse("lane [32:(1,0)] element [24:(0,1)] offset (0,2)")
    assert padded_rows(rows, odd, 16).sizes == (16, 4)
    assert padded_rows(rows, odd, 16).accesses == (3, 12)
