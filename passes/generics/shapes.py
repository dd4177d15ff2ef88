"""How large the tiles of a kernel are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

ELEMENTS = 2048
"""Of a tile: sixteen a lane of four warps."""
COLUMNS = 256
"""Of a tile with rows, at most."""


def rows_of(sizes: Sequence[int | SSAValue], threads: int) -> tuple[int, int]:
    """The shape of a tile of whole rows, of at least an element a thread."""
    length, rows = sizes[-1], sizes[-2]
    assert isinstance(length, int)
    columns = max(32, _power_of_two(length))
    most = max(1, min(16, 2 * ELEMENTS // columns))
    if isinstance(rows, int):
        most = min(most, _power_of_two(rows))
    return max(most, threads // columns), columns


def tile_of(sizes: Sequence[int | SSAValue], threads: int) -> tuple[int, ...]:
    """The shape of a tile: of one axis, or of the last two. It has at least an element a thread:
    of a smaller one several threads would have the same element, read it and write it.
    """

    def fitting(size: int | SSAValue, most: int) -> int:
        return most if not isinstance(size, int) else min(most, _power_of_two(size))

    if len(sizes) == 1:
        return (max(threads, fitting(sizes[0], ELEMENTS)),)
    columns = fitting(sizes[-1], COLUMNS)
    rows = fitting(sizes[-2], max(1, ELEMENTS // columns))
    return max(rows, threads // columns), columns


def _power_of_two(size: int) -> int:
    """The next one."""
    return 1 << max(0, size - 1).bit_length()
