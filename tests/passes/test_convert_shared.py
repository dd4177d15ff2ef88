"""Conversions through shared memory, compiled and run: who waits, rounds, copies, padded rows."""

from __future__ import annotations

import pytest

from benchmarks.sweeps.conversions import Case, findings
from fragir.layout import Layout

ACC = "lane [4:(0,2) 8:(1,0)] element [2:(0,1)"
CASES = {
    "a group of two warps waits": (
        *("group", 16, (64, 128), 4),
        f"warp [2:(32,0) 2:(0,64)] {ACC} 4:(8,0) 8:(0,8)]",
        "warp [2:(0,32) 2:(0,64)] lane [4:(0,8) 8:(1,0)] element [8:(0,1) 8:(8,0)]",
    ),
    "half of the warps store": (
        *("block", 32, (64, 64), 4),
        f"warp [2:(32,0) 2:(0,0)] {ACC} 4:(8,0) 8:(0,8)]",
        "warp [2:(0,32) 2:(0,0)] lane [8:(0,4) 4:(1,0)] element [4:(0,1) 16:(4,0)]",
    ),
    "lanes with copies": (
        *("warp", 32, (8, 16), 1),
        "lane [4:(0,0) 8:(1,0)] element [16:(0,1)]",
        "lane [8:(0,2) 4:(0,0)] element [8:(1,0) 2:(0,1)]",
    ),
    "rounds of each warp": (
        *("warp", 32, (128, 128), 8),
        f"warp [8:(16,0)] {ACC} 2:(8,0) 16:(0,8)]",
        "warp [8:(16,0)] lane [32:(0,4)] element [4:(0,1) 16:(1,0)]",
    ),
    "rounds of the block": (
        *("block", 32, (128, 128), 8),
        f"warp [8:(16,0)] {ACC} 2:(8,0) 16:(0,8)]",
        "warp [8:(0,16)] lane [4:(0,4) 8:(1,0)] element [4:(0,1) 16:(8,0)]",
    ),
    "odd digits in lanes": (
        *("rows", 16, (64, 24), 4),
        f"warp [4:(16,0)] {ACC} 2:(8,0) 3:(0,8)]",
        "warp [4:(0,6)] lane [2:(0,1) 16:(4,0)] element [4:(1,0) 3:(0,2)]",
    ),
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_element_arrives(name: str, target: str) -> None:
    reach, bits, shape, warps, *texts = CASES[name]
    source, target_layout = (Layout.parse(text) for text in texts)
    found, plan = findings(Case(name, bits, source, target_layout, shape, warps), 3, target)
    assert found == []
    if plan.through is None:
        assert reach == "rows"
        assert plan.rows is not None
    else:
        assert plan.through.meeting.reach == reach
