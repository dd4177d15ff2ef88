"""What is asked is framed: the cells with a frame are the answer, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
WIDE = "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16"
SVG = "{http://www.w3.org/2000/svg}"
Cells = set[tuple[int, int]]
Fragir = Callable[..., Any]


def framed(text: str) -> list[Cells]:
    """The framed cells of every matrix of a picture."""
    root = ElementTree.fromstring(text)
    found: list[Cells] = []
    for grid in (g for g in root.iter(f"{SVG}g") if "data-grid" in g.attrib):
        marked: Cells = set()
        for cell in grid.iter(f"{SVG}g"):
            if any("fr-mark" in rect.get("class", "") for rect in cell.findall(f"{SVG}rect")):
                row, col = map(int, cell.attrib["data-at"].split(","))
                marked.add((row, col))
        found.append(marked)
    return found


# lane 5 of the ISA's figure: groupID 1, thread 1 of the group
LANE_5 = {(row, col) for row in (1, 9) for col in (2, 3, 10, 11)}


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        ((MMA, "a", "--lane", "5"), LANE_5),
        ((MMA, "a", "--lane", "5", "--element", "3"), {(9, 3)}),
        ((MMA, "a", "--at", "9,3"), {(9, 3)}),
        ((MMA, "a", "--output", "3,4"), {(3, k) for k in range(16)}),
        ((MMA, "b", "--output", "3,4"), {(k, 4) for k in range(16)}),
        ((MMA, "d", "--output", "3,4"), {(3, 4)}),
        ((f"{MMA}:a", "--lane", "5"), LANE_5),
        ((f"{MMA}:a", "--at", "9,3"), {(9, 3)}),
        (("row [8:^16] col [8:2] dims (byte)", "--at", "3,4"), {(3, 4)}),
        (("lane [32:2] element [2:1] dims (col)", "--lane", "3"), {(0, 6), (0, 7)}),
    ],
)
def test_the_answer_is_framed(fragir: Fragir, words: tuple[str, ...], cells: Cells) -> None:
    result = fragir("layout", *words, "--format", "svg")
    assert (result.code, result.err) == (0, "")
    assert framed(result.out) == [cells]


def test_frames_of_several_matrices(fragir: Fragir) -> None:
    """m8n8k4 computes four products: lanes 4 to 7 and 20 to 23 hold those of the second."""
    found = framed(fragir("layout", QUAD, "a", "--lane", "5", "--format", "svg").out)
    assert found == [set(), {(1, k) for k in range(4)}, set(), set()]


def test_what_is_framed_is_not_left_out(fragir: Fragir) -> None:
    """A large picture is folded, but not over a frame."""
    found = framed(fragir("layout", WIDE, "d", "--at", "20,33", "--format", "svg").out)
    assert found == [{(20, 33)}]


def test_pages_have_frames_too(fragir: Fragir) -> None:
    assert "fr-mark" in fragir("layout", MMA, "a", "--lane", "5", "--format", "html").out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((MMA, "a", "--lane", "5", "--view", "hardware", "--format", "svg"), 2, "--view matrix"),
        ((MMA, "a", "--lane", "5", "--format", "formula"), 2, "leave the question out"),
        (
            ("lane [32:(0,0,1)] element [2:(0,1,0) 2:(1,0,0)]", "--lane", "5", "--format", "svg"),
            1,
            "not of 3 dimensions",
        ),
    ],
)
def test_what_cannot_be_framed(
    fragir: Fragir, words: tuple[str, ...], code: int, message: str
) -> None:
    result = fragir("layout", *words)
    assert result.code == code
    assert message in result.err
