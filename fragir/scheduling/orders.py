"""Orders in which the tiles of a matrix are visited, as lists of (row, column) of tiles.

Tiles that are near each other in an order are computed at the same time, and share what they read
of A (their row) and of B (their column) in the L2 cache.
"""

from __future__ import annotations

from collections.abc import Iterator

Tile = tuple[int, int]


def tile_order(rows: int, columns: int, order: str, group: int = 1) -> Iterator[Tile]:
    """Every tile of `rows` x `columns` tiles once.

    `order` is "rows" or "linear" (one row after the other), "columns", "grouped" (`group` rows at a
    time, column by column) or "hilbert" (`curve`).
    """
    if order == "columns":
        yield from ((row, column) for column in range(columns) for row in range(rows))
    elif order == "grouped":
        for first in range(0, rows, group):
            last = min(rows, first + group)
            yield from ((row, column) for column in range(columns) for row in range(first, last))
    elif order == "hilbert":
        yield from curve(rows, columns)
    else:
        yield from ((row, column) for row in range(rows) for column in range(columns))


def curve(rows: int, columns: int) -> Iterator[Tile]:
    """A Hilbert curve through a rectangle of any size: each tile is beside the one before it.

    Steps are of one row or column, but for one diagonal step where the longer side is odd and the
    shorter one even. By J. Cerveny's generalisation, github.com/jakubcerveny/gilbert: a
    rectangle is cut into three, a corner, the long side, the other corner turned round, or in the
    middle where it is longer than one and a half times its width.
    """
    if rows and columns:
        if columns >= rows:
            yield from _curve((0, 0), (0, columns), (rows, 0))
        else:
            yield from _curve((0, 0), (rows, 0), (0, columns))


def _curve(start: Tile, along: Tile, across: Tile) -> Iterator[Tile]:
    """From `start`, the rectangle that two vectors span, of which one is a row's, one a column's;
    the way leads along the first."""
    row, column = start
    length, width = abs(along[0] + along[1]), abs(across[0] + across[1])
    step, side = _unit(along), _unit(across)
    if width == 1 or length == 1:
        one = step if width == 1 else side
        for i in range(length * width):
            yield row + i * one[0], column + i * one[1]
        return
    half, half_across = _half(along), _half(across)
    if 2 * length > 3 * width:
        if abs(half[0] + half[1]) % 2 and length > 2:  # even parts need no diagonal step
            half = _plus(half, step)
        yield from _curve(start, half, across)
        yield from _curve(_plus(start, half), _minus(along, half), across)
        return
    if abs(half_across[0] + half_across[1]) % 2 and width > 2:
        half_across = _plus(half_across, side)
    yield from _curve(start, half_across, half)
    yield from _curve(_plus(start, half_across), along, _minus(across, half_across))
    corner = _plus(start, _plus(_minus(along, step), _minus(half_across, side)))
    yield from _curve(corner, _minus((0, 0), half_across), _minus(half, along))


def _half(v: Tile) -> Tile:
    """Half of a vector, rounded towards zero."""
    return int(v[0] / 2), int(v[1] / 2)


def _unit(v: Tile) -> Tile:
    return (v[0] > 0) - (v[0] < 0), (v[1] > 0) - (v[1] < 0)


def _plus(v: Tile, w: Tile) -> Tile:
    return v[0] + w[0], v[1] + w[1]


def _minus(v: Tile, w: Tile) -> Tile:
    return v[0] - w[0], v[1] - w[1]
