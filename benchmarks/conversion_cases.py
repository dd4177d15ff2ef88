"""The conversions of tiles between register layouts that conversions.py compiles and counts.

Sources and targets are operands of instructions as fragir's own table has them, and three layouts
that memory asks for: 16 bytes of a row or of a column in every lane, and vectors of one element a
row. All have sizes that are powers of two: Triton can say no others.
"""

from __future__ import annotations

from dataclasses import dataclass

from fragir.dialects.frag import MmaFragment
from fragir.layout import Layout

Shape = tuple[int, int]
SQUARE = (64, 64)
ELEMENTS = {8: "i8", 16: "f16", 32: "f32", 64: "f64"}
"""What stands for elements of so many bits: a conversion only moves them."""


@dataclass(frozen=True)
class Case:
    """A tile that changes its layout; `bits` of one element."""

    name: str
    bits: int
    source: Layout
    target: Layout
    goal: int | None = None
    """The most data instructions that fragir may take, where a number is promised."""

    @property
    def shape(self) -> Shape:
        rows, cols = self.source.shape
        return rows, cols

    @property
    def warps(self) -> int:
        return max(size(layout, "warp") for layout in (self.source, self.target))


def size(layout: Layout, axis: str) -> int:
    """The size of an axis, 1 where the layout does not have it."""
    return layout.size(axis) if any(a.name == axis for a in layout.axes) else 1


def operand(
    instruction: str, name: str, warps: tuple[int, int] = (4, 1), shape: Shape = SQUARE
) -> Layout:
    """An operand of an instruction over a tile and warps."""
    return MmaFragment(instruction, name, warps).layout(*shape, 1)


def accumulator(warps: tuple[int, int] = (4, 1), shape: Shape = SQUARE) -> Layout:
    """That of m16n8k16, for elements of any width."""
    return operand("m16n8k16.f16", "c", warps, shape)


_ROWS = {
    8: "warp [4:(16,0)] lane [4:(0,16) 8:(1,0)] element [16:(0,1) 2:(8,0)]",
    16: "warp [4:(16,0)] lane [8:(0,8) 4:(1,0)] element [8:(0,1) 4:(4,0)]",
    32: "warp [4:(16,0)] lane [16:(0,4) 2:(1,0)] element [4:(0,1) 8:(2,0)]",
    64: "warp [4:(16,0)] lane [32:(0,2)] element [2:(0,1) 16:(1,0)]",
}
_COLS = {
    8: "warp [4:(0,16)] lane [4:(16,0) 8:(0,1)] element [16:(1,0) 2:(0,8)]",
    16: "warp [4:(0,16)] lane [8:(8,0) 4:(0,1)] element [8:(1,0) 4:(0,4)]",
    32: "warp [4:(0,16)] lane [16:(4,0) 2:(0,1)] element [4:(1,0) 8:(0,2)]",
    64: "warp [4:(0,16)] lane [32:(2,0)] element [2:(1,0) 16:(0,1)]",
}
ROWS = {bits: Layout.parse(text) for bits, text in _ROWS.items()}
"""16 bytes of a row in a lane, and whole rows in a warp, by the bits of an element."""
COLS = {bits: Layout.parse(text) for bits, text in _COLS.items()}
"""16 bytes of a column in a lane, and whole columns in a warp, by the bits of an element."""
ONE_WARP = Layout.parse("lane [8:(0,8) 4:(1,0)] element [8:(0,1) 4:(4,0)]")
QUADS = Layout.parse("lane [4:(0,1) 8:(1,0)] element [8:(0,4)]")
EIGHTS = Layout.parse("lane [4:(0,8) 8:(1,0)] element [8:(0,1)]")
VECTOR = Layout.parse("lane [4:(0,0) 8:(1,0)] element [4:(8,0)]")  # sums of an accumulator's rows
ROW_A_LANE = Layout.parse("lane [32:(1,0)] element [1:(0,0)]")


def _operands() -> list[Case]:
    """From one operand of a product to another, and to what memory asks for."""
    f16, e4m3, s8, tf32 = "m16n8k16.f16", "m16n8k32.e4m3", "m16n8k32.s8", "m16n8k8.tf32"
    half, byte, f64 = "m64n64k16.f16", "m64n64k32.e4m3", "m8n8k4.f64"
    one, two = (1, 1), (2, 2)
    small, flat, square, large = (16, 16), (16, 64), (32, 32), (128, 64)
    rows16, rows32 = ROWS[16], ROWS[32]
    return [
        Case("acc to A, f16", 16, operand(f16, "c"), operand(f16, "a"), 0),
        Case("acc to A, e4m3", 8, operand(e4m3, "c"), operand(e4m3, "a"), 24),
        Case("acc to A, s8", 8, operand(s8, "c"), operand(s8, "a"), 24),
        Case("acc to A, tf32", 32, operand(tf32, "c"), operand(tf32, "a"), 16),
        Case("acc to B, f16", 16, operand(f16, "c"), operand(f16, "b")),
        Case("acc to B, f16, 16x16, 1 warp", 16, operand(f16, "c", one, small),
             operand(f16, "b", one, small), 4),
        Case("acc to B, f16, 1 warp", 16, operand(f16, "c", one), operand(f16, "b", one)),
        Case("rows to A, f16", 16, rows16, operand(f16, "a")),
        Case("rows to B, f16", 16, rows16, operand(f16, "b")),
        Case("acc to B, f16, 128x64", 16, operand(f16, "c", shape=large),
             operand(f16, "b", shape=large)),
        Case("wgmma acc to B, f16, 128x64", 16, operand(half, "c", one, large),
             operand(f16, "b", shape=large)),
        Case("acc to rows, f16", 16, operand(f16, "c"), rows16),
        Case("acc to rows, f32", 32, operand(f16, "c"), rows32),
        Case("acc 4x1 to 2x2 warps, f16", 16, operand(f16, "c"), operand(f16, "c", two)),
        Case("acc 2x2 to 4x1 warps, f32", 32, operand(f16, "c", two), operand(f16, "c")),
        Case("A k16 to A k8, f16", 16, operand(f16, "a"), operand("m16n8k8.f16", "a")),
        Case("B k16 to B k8, f16, 1 warp", 16, operand(f16, "b", one),
             operand("m16n8k8.f16", "b", one)),
        Case("wgmma acc to A, f16", 16, operand(half, "c", one), operand(half, "a", one), 0),
        Case("wgmma acc to A, e4m3", 8, operand(byte, "c", one), operand(byte, "a", one), 24),
        Case("wgmma acc to rows, f16", 16, operand(half, "c", one), rows16),
        Case("acc to A, f64, 32x32, 1 warp", 64, operand(f64, "c", one, square),
             operand(f64, "a", one, square)),
        Case("acc to rows, f16, 16x64, 1 warp", 16, operand(f16, "c", one, flat), ONE_WARP),
        Case("acc to A, e4m3, 16x64, 1 warp", 8, operand(e4m3, "c", one, flat),
             operand(e4m3, "a", one, flat), 24),
        Case("transpose of quads, f32", 32, QUADS, EIGHTS),
        Case("row vector to row a lane, f32", 32, VECTOR, ROW_A_LANE),
        Case("row a lane to row vector, f32", 32, ROW_A_LANE, VECTOR),
    ]  # fmt: skip


def _by_width(bits: int) -> list[Case]:
    """What an accumulator's tile goes through on its way to memory, for elements of any width."""
    rows, cols, acc = ROWS[bits], COLS[bits], accumulator()
    return [
        Case(f"acc to rows, {bits} bit", bits, acc, rows),
        Case(f"rows to acc, {bits} bit", bits, rows, acc),
        Case(f"acc to columns, {bits} bit", bits, acc, cols),
        Case(f"columns to acc, {bits} bit", bits, cols, acc),
        Case(f"rows to columns, {bits} bit", bits, rows, cols),
        Case(f"acc 2x2 to rows, {bits} bit", bits, accumulator((2, 2)), rows),
        Case(f"acc 4x1 to 1x4 warps, {bits} bit", bits, acc, accumulator((1, 4))),
    ]


def _from_memory() -> list[Case]:
    """From what memory asks for to operands."""
    f16, s8, tf32, f64 = "m16n8k16.f16", "m16n8k32.s8", "m16n8k8.tf32", "m8n8k4.f64"
    return [
        Case("rows to A, tf32", 32, ROWS[32], operand(tf32, "a")),
        Case("rows to B, tf32", 32, ROWS[32], operand(tf32, "b")),
        Case("columns to B, tf32", 32, COLS[32], operand(tf32, "b")),
        Case("acc to B, tf32", 32, operand(tf32, "c"), operand(tf32, "b")),
        Case("rows to A, s8", 8, ROWS[8], operand(s8, "a")),
        Case("rows to B, s8", 8, ROWS[8], operand(s8, "b")),
        Case("columns to B, s8", 8, COLS[8], operand(s8, "b")),
        Case("acc to B, s8", 8, operand(s8, "c"), operand(s8, "b")),
        Case("acc to B, f64", 64, operand(f64, "c"), operand(f64, "b")),
        Case("rows to A, f64", 64, ROWS[64], operand(f64, "a")),
        Case("acc to rows, f64", 64, operand(f64, "c"), ROWS[64]),
        Case("columns to B, f16", 16, COLS[16], operand(f16, "b")),
        Case("rows to B, f16, 2x2 warps", 16, ROWS[16], operand(f16, "b", (2, 2))),
        Case("columns to A, f16", 16, COLS[16], operand(f16, "a")),
    ]


CASES = (
    *_operands(),
    *(case for bits in ELEMENTS for case in _by_width(bits)),
    *_from_memory(),
)
