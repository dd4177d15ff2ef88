"""How large the tiles of a kernel are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

ELEMENTS = 2048
"""Of a tile: sixteen a lane of four warps."""
COLUMNS = 256
"""Of a tile with rows, at most."""


def rows_of(sizes: Sequence[int | SSAValue]) -> tuple[int, int]:
    """The shape of a tile of whole rows."""
    length, rows = sizes[-1], sizes[-2]
    assert isinstance(length, int)
    columns = max(32, 1 << max(0, length - 1).bit_length())
    most = max(1, min(16, 2 * ELEMENTS // columns))
    if isinstance(rows, int):
        most = min(most, 1 << max(0, rows - 1).bit_length())
    return most, columns


def tile_of(sizes: Sequence[int | SSAValue]) -> tuple[int, ...]:
    """The shape of a tile: of one axis, or of the last two."""

    def fitting(size: int | SSAValue, most: int) -> int:
        return most if not isinstance(size, int) else min(most, 1 << max(0, size - 1).bit_length())

    if len(sizes) == 1:
        return (max(32, fitting(sizes[0], ELEMENTS)),)
    columns = fitting(sizes[-1], COLUMNS)
    return fitting(sizes[-2], max(1, ELEMENTS // columns)), columns
