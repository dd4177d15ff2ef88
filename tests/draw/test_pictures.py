"""Pictures say what the layouts are: every cell of the SVG is read back and asked of the layout."""

from __future__ import annotations

import re

import pytest

from fragir import isa
from fragir.draw.grid import drawing
from fragir.draw.layouts import AnyLayout, hardware_drawing, layout_drawing
from fragir.draw.svg import svg, view_svg
from fragir.isa.layout_texts import read_layout
from fragir.isa.query import View
from tests.draw.reading import pictures

M16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
REGISTERS = [
    "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
    "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]",
    "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 5:(0,8)]",
    "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 32:(0,8)]",
    "warp [2:(0,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
    "warp [2:(16,0) 2:(0,24)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]",
    "lane [4:(0,0) 8:(1,0)] element [8:(0,1)] offset (16,0) where lane%4==1",
    "lane [4:(0,1) 8:(1,0)]",
    "lane [32:(0,1)] element [7:(1,0)]",
    "lane [3:(0,5) 10:(1,0)] element [5:(0,1)]",
    "lane [8:^(1,1) 4:(8,0)] element [8:(0,1)]",
    "lane [2:(0,8) 16:(1,0)] element [8:(0,1)]",
    "lane [2:(1,0,0) 2:(0,2,0) 4:(0,0,1) 2:(4,0,0)] element [2:(0,1,0) 2:(2,0,0) 2:(0,4,0)]",
    "block [2:(32,0)] warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]",
    "element [6:1]",
    "lane [32:1] element [2:32]",
    'f2:{"lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "register": [[0, 1], [8, 0]]}',
    'f2:{"lane": [[1, 1], [2, 2], [4, 4], [8, 0], [0, 0]], "register": [[0, 1], [0, 2], [0, 4]]}',
    "cute:((4,8),(2,2)):((2@1,1@0),(1@1,8@0))",
    "formula:row = %laneid / 4\ncol = %laneid % 4 * 2 + i for %laneid = {0,..,31}, i = {0,..,1}",
    "ttg:tensor<64x32xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], "
    "warpsPerCTA = [4, 1], order = [1, 0]}>>",
    "ttg:tensor<32x64xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
    "warpsPerCTA = [2, 2], instrShape = [16, 8]}>>",
    f"{M16}:a",
    f"{M16}:b",
    f"{M16}:c",
    "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32:a",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64:b",
    "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16:d",
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16:d",
    "wgmma.mma_async.sync.aligned.m64n104k16.f16.f16.f16:d",
]
MEMORY = [
    "row [16:128] col [64:2] dims (byte)",
    "row [8:^144 8:1024] col [64:2] dims (byte)",
    "row [8:^72 8:512] col [64:1]",
    "row [7:80] col [5:16] dims (byte)",
    "cute:Sw<3,4,3> o 0 o (8,80):(80,1)",
    "cute:Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)",
    'f2:{"row": [[5], [10]], "col": [[1], [2]]} dims (bank)',
    "byte [128:1 8:^144 8:1024] dims (byte)",
    "index [24:3]",
    "row [64:^144] col [64:2] dims (byte)",
]


def everything(layout: AnyLayout) -> dict[tuple[int, ...], set[tuple[int, ...]]]:
    """Point to slots, asked of the layout one slot after the other."""
    found: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for slot, _ in layout.slots():
        point = layout(**dict(zip(layout.names, slot, strict=True)))
        if point is not None:
            found.setdefault(point, set()).add(slot)
    return found


def named(title: str) -> tuple[int, ...]:
    """The numbers of `product 2` or `block 1, warp 3`."""
    return tuple(map(int, re.findall(r"\d+", title)))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("text", REGISTERS)
def test_cells_of_a_matrix(text: str, full: bool) -> None:
    layout = read_layout(text)
    if full and layout.sizes.get("element", 1) > 64:
        pytest.skip("16384 cells; its repeats are written out by the other case")
    slots = everything(layout)
    letters = {"warp": "W", "lane": "T", "element": ":", "block": "B"}
    drawn: set[tuple[int, ...]] = set()
    for picture in pictures(svg(layout_drawing(layout), full)):
        for (row, col), (label, _, colour) in picture.cells.items():
            point = (row, col) if layout.rank > 1 else (col,)
            point = (*point, *named(picture.title)) if layout.rank == 2 else point
            if layout.rank == 3:
                point = (*named(picture.title), row, col)
            holders = slots.get(point, set())
            if label == "-":
                assert not holders, point
                assert colour == "fr-none"
                continue
            drawn.add(point)
            assert label.endswith("+") == (len(holders) > 1)
            at = {n: re.search(letter + r"(\d+)", label) for n, letter in letters.items()}
            bare = re.match(r"^(\d+)", label)
            slot = tuple(
                int(m[1]) if (m := at[n]) is not None else int(bare[1]) if bare else 0
                for n in layout.names
            )
            assert slot in holders, (label, point)
    assert drawn == set(slots)


@pytest.mark.parametrize("text", REGISTERS)
def test_cells_of_the_hardware(text: str) -> None:
    layout = read_layout(text)
    order = [n for n in layout.names if n not in ("lane", "element")]
    order += [n for n in ("lane", "element") if n in layout.names]
    count = 0
    for picture in pictures(svg(hardware_drawing(layout))):
        for (row, col), (label, _, _) in picture.cells.items():
            last = (row, col) if len(order) > 1 else (col,)
            at = dict(zip(order, (*named(picture.title), *last), strict=True))
            point = layout(**at)
            assert label == ("-" if point is None else ",".join(map(str, point)))
            count += 1
    assert count == len(list(layout.slots()))


@pytest.mark.parametrize("text", MEMORY)
def test_cells_of_memory(text: str) -> None:
    layout = read_layout(text)
    count = 0
    for picture in pictures(svg(layout_drawing(layout))):
        for (row, col), (label, _, _) in picture.cells.items():
            slot = (row, col) if len(layout.names) > 1 else (col,)
            point = layout(**dict(zip(layout.names, slot, strict=True)))
            assert label == ("-" if point is None else ",".join(map(str, point)))
            count += 1
    assert count == len(list(layout.slots()))


def test_there_are_forty() -> None:
    assert len(REGISTERS) + len(MEMORY) == 40


@pytest.mark.parametrize("operand", ["d", "a"])
def test_a_large_accumulator_is_small(operand: str) -> None:
    found = isa.lookup("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
    text = view_svg(View.of(found, operand))
    assert len(text.encode()) < 1_000_000
    assert operand == "a" or "repeat the first 8: element + 4 each time" in text


def test_what_does_not_repeat_is_drawn_whole() -> None:
    """One element that is out of its row: no rule holds, so nothing is left out."""
    rows = "row [64:128] col [64:2] dims (byte)"
    assert "data-folds" in svg(layout_drawing(read_layout(rows)))
    chain = read_layout("cute:Sw<3,4,3> o 0 o (48,80):(80,1)")
    (picture,) = pictures(svg(layout_drawing(chain)))
    assert len(picture.cells) == 48 * 80


def test_every_operand_of_an_instruction() -> None:
    for name in ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", M16):
        instruction = isa.lookup(name)
        for operand in instruction.operands:
            view = View.of(instruction, operand)
            for picture in pictures(svg(drawing(view))):
                for at, (label, note, _) in picture.cells.items():
                    places = view.holders((*at, *named(picture.title)))
                    first = places[0]
                    assert label.rstrip("+") == f"T{first.lane}:{first.element}"
                    assert all(f"bits {p.high}:{p.low}" in note for p in places)


def test_colours_follow_what_is_asked() -> None:
    layout = read_layout("warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")

    def classes(colour: str, bits: int | None = None) -> int:
        (picture,) = pictures(svg(layout_drawing(layout, colour=colour, bits=bits)))
        return len({found[2] for found in picture.cells.values()})

    assert classes("lane") == 32
    assert classes("warp") == 2
    assert classes("element") == 4
    assert classes("register", 16) == 2
