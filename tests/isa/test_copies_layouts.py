"""ldmatrix, stmatrix, movmatrix, tcgen05.ld/st (PTX ISA 9.2, 9.7.14.5.15 to .17, 9.7.16.8)."""

from __future__ import annotations

from itertools import product

import pytest

from fragir import isa
from fragir.isa.selection import selected_layout
from fragir.layout import Layout


def layout_of(instruction: isa.Instruction, name: str) -> Layout:
    layout = instruction.operands[name].layout
    assert layout is not None
    return layout


COPIES = [i for i in isa.instructions() if i.family in ("ldmatrix", "stmatrix")]


@pytest.mark.parametrize("instruction", COPIES, ids=lambda i: i.mnemonic)
def test_registers_of_matrix_copies(instruction: isa.Instruction) -> None:
    shape, num = instruction.form.shape, instruction.shape[2]
    trans = "trans" in instruction.form.flags
    layout = layout_of(instruction, "registers")
    per = layout.size("element") // num
    seen: set[tuple[int, ...] | None] = set()
    for lane, i in product(range(32), range(layout.size("element"))):
        g, t = lane >> 2, lane & 3
        matrix, j = divmod(i, per)
        if shape == "m8n8":  # half j of the register of each matrix
            point = (2 * t + j, g) if trans else (g, 2 * t + j)
        elif shape == "m16n16":  # registers 2m and 2m + 1, four bytes each
            point = (4 * t + j % 4, g + 8 * (j // 4))
        elif shape == "m8n16":
            point = (g, 4 * t + j)
        else:  # stmatrix m16n8: eight stored rows of 16
            point = (2 * t + j % 2, g + 8 * (j // 2))
        assert layout(lane=lane, element=i) == (*point, matrix)
        seen.add((*point, matrix))
    rows, cols, _ = instruction.operands["registers"].shape
    assert len(seen) == rows * cols * num


@pytest.mark.parametrize("instruction", COPIES, ids=lambda i: i.mnemonic)
def test_addresses_of_matrix_copies(instruction: isa.Instruction) -> None:
    """Lanes 0-7 give the rows of the first matrix, 8-15 of the second, ... (16 for m16n16)."""
    rows, num = instruction.operands["registers"].shape[0], instruction.shape[2]
    layout = layout_of(instruction, "addresses")
    assert layout.size("lane") == 32
    assert layout.size("element") == 1
    for lane in range(32):
        expected = (lane % rows, 0, lane // rows) if lane < rows * num else None
        assert layout(lane=lane, element=0) == expected


def test_movmatrix_transposes() -> None:
    move = isa.lookup("movmatrix.sync.aligned.m8n8.trans.b16")
    a, d = layout_of(move, "a"), layout_of(move, "d")
    for lane, half in product(range(32), range(2)):
        g, t = lane >> 2, lane & 3
        assert a(lane=lane, element=half) == (g, 2 * t + half)
        assert d(lane=lane, element=half) == (2 * t + half, g)


def test_ldmatrix_feeds_mma() -> None:
    """x4 of a row-major 16 x 16 tile is A of m16n8k16; x2.trans of a k-major tile is its B."""
    mma = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    x4 = layout_of(isa.find("ldmatrix", shape="m8n8", num=4, type="b16"), "registers")
    x2 = layout_of(isa.find("ldmatrix", shape="m8n8", num=2, type="b16", trans=True), "registers")
    for lane in range(32):
        for i in range(8):
            point = x4(lane=lane, element=i)
            assert point is not None
            row, col, matrix = point  # matrices 0, 1 below each other, 2, 3 to their right
            expected = (row + 8 * (matrix % 2), col + 8 * (matrix // 2))
            assert layout_of(mma, "a")(lane=lane, element=i) == expected
        for i in range(4):
            point = x2(lane=lane, element=i)
            assert point is not None
            row, col, matrix = point
            assert layout_of(mma, "b")(lane=lane, element=i) == (row + 8 * matrix, col)


@pytest.mark.parametrize("num", [2**i for i in range(8)])
def test_tensor_memory(num: int) -> None:
    """Register r of a lane, relative to the address (figures of section 9.7.16.8)."""
    for shape in ("32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"):
        each = {"16x128b": 2, "16x256b": 4}.get(shape, 1)
        if num * each > 128:
            continue
        for family, packed in product(("tcgen05.ld", "tcgen05.st"), (False, True)):
            found = isa.find(family, shape=shape, num=num, type="b32", packed=packed)
            assert found.operands["registers"].registers.count == num * each
            layout = selected_layout(found, "registers", offset=64)
            for lane, r in product(range(32), range(num * each)):
                g, t = lane >> 2, lane & 3
                row, word = {
                    "32x32b": (lane, r),
                    "16x64b": (g + 8 * (lane & 1), ((lane >> 1) & 1) + 2 * r),
                    "16x128b": (g + 8 * (r & 1), t + 4 * (r >> 1)),
                    "16x256b": (g + 8 * ((r >> 1) & 1), 2 * t + (r & 1) + 8 * (r >> 2)),
                    "16x32bx2": (lane % 16, r),
                }[shape]
                offset = 64 if shape == "16x32bx2" and lane >= 16 else 0
                if packed:
                    for half in range(2):
                        point = (row, 2 * word + half + offset)
                        assert layout(lane=lane, element=2 * r + half) == point
                else:
                    assert layout(lane=lane, element=r) == (row, word + offset)


def test_tensor_memory_holds_an_accumulator() -> None:
    """16x256b.x1 of 32-bit words is the accumulator fragment of m16n8."""
    words = layout_of(isa.find("tcgen05.ld", shape="16x256b", num=1, type="b32"), "registers")
    mma = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    for lane, i in product(range(32), range(4)):
        assert words(lane=lane, element=i) == layout_of(mma, "d")(lane=lane, element=i)
