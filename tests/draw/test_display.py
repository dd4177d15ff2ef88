"""`picture`: every view of what draws itself, and what cannot be drawn."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.query import View
from fragir.layout import Layout, from_cute, sources, swizzled, to_linear
from fragir.layout.planning.planner import plan_conversion

C = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
ROWS = Layout.parse("lane [2:(0,4) 16:(1,0)] element [4:(0,1)]")


def cells(svg: str) -> dict[tuple[int, int], str]:
    """What stands in each cell of a picture of one matrix."""
    found = re.findall(r'data-at="(\d+),(\d+)"[^>]*>.*?<text[^>]*>([^<]*)</text>', svg, re.DOTALL)
    return {(int(row), int(col)): text for row, col, text in found}


@pytest.mark.parametrize(
    "value",
    [C, to_linear(C), View.of(isa.lookup("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"), "d")],
    ids=["layout", "linear", "view"],
)
def test_matrix(value: Any) -> None:
    """Who holds each element; what a notebook shows by itself is the same picture."""
    picture = value.picture()
    found = cells(picture.svg)
    assert len(found) == 16 * 8
    for (row, col), text in found.items():
        slot = C.inverse(row, col)[0]
        assert text == f"T{slot['lane']}:{slot['element']}"
    assert value._repr_svg_() == picture._repr_svg_() == picture.svg


def test_hardware() -> None:
    found = cells(C.picture("hardware", full=True).svg)
    assert len(found) == 32 * 4
    assert {at: text.replace(" ", "") for at, text in found.items()} == {
        (lane, i): "{},{}".format(*C(lane=lane, element=i) or ())
        for lane in range(32)
        for i in range(4)
    }


def test_memory() -> None:
    memory = Layout.parse("row [8:128] col [64:2] dims (byte)")
    rows = Layout.parse("lane [8:(1,0)] element [8:(0,1)]")
    assert "8 passes over the banks" in memory.picture("memory", access=rows).svg
    good = swizzled((8, 64), 16, 128)
    assert "one pass over the banks" in good.picture("memory", access=rows).svg
    assert "a colour is a bank" in good.picture(colour="bank").svg


def test_conversions() -> None:
    """The plan's and the exchange's picture are one; wide ones stand below each other."""
    assert sources(C, ROWS).picture() == plan_conversion(C, ROWS, 16).picture()
    wide = Layout.parse("lane [32:(1,0)] element [32:(0,1)]")
    turned = Layout.parse("lane [32:(0,1)] element [32:(1,0)]")

    def width(svg: str) -> int:
        return int(re.findall(r'width="(\d+)"', svg)[0])

    assert width(sources(wide, turned).picture().svg) < 1.5 * width(wide.picture().svg)
    assert width(sources(C, ROWS).picture().svg) > 1.5 * width(C.picture().svg)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (C, {"view": "sideways"}, "view is 'sideways', it must be one of matrix, hardware, memory"),
        (C, {"colour": "red"}, "colour is 'red', it must be one of lane"),
        (C, {"access": ROWS}, "`access` is of a picture of memory"),
        (C, {"view": "memory"}, "does not say where elements stand in memory"),
        (C, {"view": "hardware", "colour": "bank"}, "bank is of a layout of memory"),
        (swizzled((8, 64), 16, 128), {"view": "memory", "access": "x"}, "`access` is a layout"),
        (swizzled((8, 64), 16, 128), {"view": "hardware"}, "neither lanes nor elements"),
        (Layout.parse("lane [2:(0,0,1)]"), {}, ""),
    ],
)
def test_what_cannot_be_drawn(value: Layout, options: dict[str, Any], message: str) -> None:
    if not message:  # three dimensions: as grids of two
        assert value.picture().svg.startswith("<svg")
        return
    with pytest.raises(FragirError, match=re.escape(message)):
        value.picture(**options)


def test_a_picture_says_little_of_itself() -> None:
    picture = C.picture()
    assert repr(picture) == f"<picture of {C}, {len(picture.svg)} bytes of SVG>"
    long = from_cute("Sw<3,4,3> o 0 o (8,80):(80,1)")
    assert len(repr(long.picture())) < 120
