"""Leaves repeats of a large picture out, and says by which rule they go on.

An accumulator of 64 x 256 has 16384 cells, yet it repeats itself every 8 columns with 4 elements
more and every 16 rows with the next warp. What is left out is known exactly: every cell has been
compared with the one that the rule gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fragir.draw.grid import Cell, Drawing, Grid, Point, Repeat

MANY = 1 << 11
"""Cells of a picture that is drawn whole."""
FEWEST = 3
"""Periods that are worth leaving any out."""


def folded(drawn: Drawing, most: int = MANY) -> Drawing:
    """The drawing with the repeats of grids of more than `most` cells left out."""
    return replace(drawn, grids=tuple(folded_grid(grid, most) for grid in drawn.grids))


def folded_grid(grid: Grid, most: int = MANY) -> Grid:
    """The longer side is folded first, the other where that was not enough."""
    rows, cols = len(grid.rows), len(grid.rows[0])
    found = grid
    for axis in sorted((0, 1), key=lambda axis: -(rows, cols)[axis]):
        if len(found.rows) * len(found.rows[0]) > most:
            fold = _fold(found, axis)
            if fold is not None:
                found = _without(found, fold)
    return found


def _fold(grid: Grid, axis: int) -> Repeat | None:
    """The shortest period of rows or columns that leaves something out."""
    lines = grid.rows if axis == 0 else tuple(zip(*grid.rows, strict=True))
    count = len(lines)
    for period in range(1, count // FEWEST + 1):
        if count % period == 0:
            steps = _steps(lines, period)
            if steps is not None:
                names = grid.names if steps else ()
                return Repeat(axis, period, count // period, names, steps)
    return None


def _steps(lines: Sequence[Sequence[Cell]], period: int) -> Point | None:
    """By what all numbers grow from each line to the one a period on; None where they differ."""
    found: Point | None = None
    for now, later in zip(lines, lines[period:], strict=False):
        for cell, other in zip(now, later, strict=True):
            if cell.key is None or other.key is None:
                if cell.key is not other.key:
                    return None
                continue
            step = tuple(y - x for x, y in zip(cell.key, other.key, strict=True))
            if found not in (None, step) or _kind(cell) != _kind(other):
                return None
            found = step
    return () if found is None else found


def _kind(cell: Cell) -> object:
    """What the numbers of a label do not say: whether further ones hold the cell, its frame."""
    return cell.label.endswith("+"), cell.mark


def _without(grid: Grid, fold: Repeat) -> Grid:
    kept = tuple(_kept(fold))
    if fold.axis == 0:
        rows = tuple(grid.rows[i] for i in kept)
    else:
        rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return replace(grid, rows=rows, folds=(*grid.folds, fold))


def _kept(fold: Repeat) -> Iterator[int]:
    last = fold.period * (fold.times - 1)
    yield from range(fold.period)
    yield from range(last, last + fold.period)
