"""What the order of tiles makes a product read: from L2 to the SMs, and from memory into L2.

The tiles of a wave run side by side and go through K together. Each reads its rows of A and its
columns of B, K elements long: a *slab*. Slabs that several tiles of a wave share come from memory
once; those of an earlier wave are still in L2 if less than its size was touched in between (least
recently used goes first). Nothing here depends on K but through the sizes of slabs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# -- orders ----------------------------------------------------------------------------------------
# Orders in which the tiles of a matrix are visited, as lists of (row, column) of tiles.
#
# Tiles that are near each other in an order are computed at the same time, and share what they read
# of A (their row) and of B (their column) in the L2 cache.

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


USABLE = 0.7
"""Part of an L2 cache that keeps slabs: C passes through it, and it has more than one partition."""

Slab = tuple[bool, int]
"""Of B or not, and which row or column of tiles."""


class Traffic(NamedTuple):
    """Bytes that a product reads."""

    l2: int
    """From L2, by all SMs."""
    dram: int
    """From memory into L2."""


def best_group(rows: int, columns: int, running: int) -> int:
    """Rows of tiles of a group for which the tiles that run at once read the least of A and B.

    `running` tiles of `rows` x `columns` elements, in groups of G: they need G slabs of A and
    ceil(running / G) of B. Powers of two, of which sizes are multiples more often than of others:
    the last group is then a whole one.
    """
    sizes = [1 << exponent for exponent in range(max(1, running).bit_length())]
    return min(sizes, key=lambda group: (group * rows + -(-running // group) * columns, group))


def traffic(
    rows: int,
    columns: int,
    slabs: tuple[int, int],
    running: int,
    capacity: float,
    *,
    order: str = "rows",
    group: int = 1,
    cluster: int = 1,
    matrices: int = 1,
) -> Traffic:
    """What a product of `rows` x `columns` tiles reads, its tiles in an order of `tile_order`.

    `slabs` are bytes of A for a row of tiles and of B for a column, `running` how many tiles run at
    once, `capacity` bytes of L2 for slabs. In a cluster, tiles below each other get B by one read.
    """
    a, b = slabs
    bands = -(-rows // cluster)
    places = list(tile_order(bands, columns, order, group))
    wave = max(1, running // cluster)
    once = Traffic(
        bands * columns * (cluster * a + b),
        _misses(list(_waves(places, wave)), cluster * a, b, capacity),
    )
    return Traffic(once.l2 * matrices, once.dram * matrices)


def _waves(places: Sequence[Tile], count: int) -> Iterator[frozenset[Slab]]:
    """The slabs of each wave."""
    for first in range(0, len(places), count):
        tiles = places[first : first + count]
        yield frozenset(slab for row, column in tiles for slab in ((False, row), (True, column)))


def _misses(waves: Sequence[frozenset[Slab]], a: int, b: int, capacity: float) -> int:
    """Bytes that come from memory."""
    last: dict[Slab, int] = {}
    total = 0.0
    for number, wave in enumerate(waves):
        missing: dict[int, float] = {}  # by the wave in which a slab was touched before
        for slab in wave:
            before = last.get(slab, -1)
            if before not in missing:
                missing[before] = (
                    1.0 if before < 0 else _missing(waves[before : number + 1], a, b, capacity)
                )
            total += missing[before] * (b if slab[0] else a)
            last[slab] = number
    return round(total)


def _missing(waves: Sequence[frozenset[Slab]], a: int, b: int, capacity: float) -> float:
    """Part of a slab of the first and the last of these waves that is gone by the last.

    At a place x of K (0 to 1) there were touched since: of the first wave what lies behind x, of
    the last what lies before x, and all of the waves between.
    """
    between: set[Slab] = set()
    for wave in waves[1:-1]:
        between |= wave
        if _bytes(between, a, b) > capacity:
            return 1.0
    old, new = waves[0] - between, waves[-1] - between
    whole = _bytes(between, a, b) + _bytes(old & new, a, b)
    ends = sorted((whole + _bytes(old - new, a, b), whole + _bytes(new - old, a, b)))
    # what was touched goes in a straight line from one to the other as x goes from 0 to 1
    if ends[0] > capacity:
        return 1.0
    return 0.0 if ends[1] <= capacity else 1.0 - (capacity - ends[0]) / (ends[1] - ends[0])


def _bytes(slabs: Iterable[Slab], a: int, b: int) -> int:
    return sum(b if of_b else a for of_b, _ in slabs)
