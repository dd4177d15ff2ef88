"""In which layouts a product's operands are loaded from shared memory, where the usual one is dear.

Registers of bytes hold four along K. Where memory runs along M or N they are read as pairs of bytes
by ldmatrix, if a lane has neighbours of that dimension: so it is counted as "8:2 2:1", of which the
instruction's first eight are every second one (`passes/lowering/byte_matrices.py`). The columns of
C that a lane has are then four in a row, which are stored together.
"""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.layout import Layout, Mode
from fragir.layout.modes import Axis

PAIRED = 16  # rows or columns that are counted two by two


def in_pairs(dimension: str) -> Layout:
    """A dimension counted as 0, 2, 4, ..., 14, 1, 3, ..., 15."""
    return Layout((Axis(dimension, (Mode(8, (2,)), Mode(2, (1,)))),), (dimension,))


def across(is_a: bool, transposed: bool) -> bool:
    """Whether memory runs along M or N, not along K."""
    return is_a == transposed


def loaded_as(
    tile: frag.TileType, instruction: str, operand: str, warps: tuple[int, int], transposed: bool
) -> frag.TileType:
    """The type in which a tile of A or B is loaded from shared memory; the same where any does."""
    is_a = operand == "a"
    extent, parts = (tile.rows, warps[0]) if is_a else (tile.cols, warps[1])
    paired = extent % (PAIRED * parts) == 0 and ptx.bits(tile.element_type) == 8
    if not paired or not across(is_a, transposed):
        return tile
    dimension = "m" if is_a else "n"
    orders = ((dimension, in_pairs(dimension)),)
    layout = frag.MmaLayoutAttr(frag.MmaFragment(instruction, operand, warps, orders))
    return frag.TileType(tile.shape, tile.element_type, layout)
