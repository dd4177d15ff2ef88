"""Pictures of layouts that stay legible and small: a part, and by which rule the rest goes on.

`fragir.draw` leaves out rows and columns that repeat by one step. The fragments of several warps
repeat by several: 8 rows on two more elements, 64 rows on the next warp. Of those the first block
is drawn, and the steps are said for every power of two of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fragir.draw.folding import folded_grid
from fragir.draw.grid import Cell, Drawing, Grid, Point
from fragir.draw.svg import svg

MOST = 1 << 10
"""Cells of a picture."""
_SIDE = 64
"""Rows or columns of a block at most."""


@dataclass(frozen=True, slots=True)
class LayoutPicture:
    """A drawing as SVG. `words` say what it leaves out; `facts` are what is known besides."""

    title: str
    svg: str
    words: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


def picture_of(drawn: Drawing, most: int = MOST) -> LayoutPicture:
    """The picture of a drawing; of grids of more than `most` cells a part."""
    if drawn.beside:
        return _compared(drawn, most)
    grids: list[Grid] = []
    words: dict[str, None] = {}
    for grid in drawn.grids:
        shown, said = _legible(grid, most)
        grids.append(shown)
        words.update(dict.fromkeys(said))
    small = replace(drawn, grids=tuple(grids))
    return LayoutPicture(drawn.title, svg(small, full=True), tuple(words), drawn.facts)


def _compared(drawn: Drawing, most: int) -> LayoutPicture:
    """Grids that are compared: the same part of each, below each other."""
    rows, cols = len(drawn.grids[0].rows), len(drawn.grids[0].rows[0])
    high, wide, words = rows, cols, tuple[str, ...]()
    if rows * cols > most:
        high, wide = next(_blocks(rows, cols, most), (min(rows, 32), min(cols, 32)))
        words = (_first(rows, cols, high, wide),)
    grids = tuple(_part(grid, high, wide) for grid in drawn.grids)
    small = replace(drawn, grids=grids, beside=False)
    return LayoutPicture(drawn.title, svg(small, full=True), words, drawn.facts)


def _legible(grid: Grid, most: int) -> tuple[Grid, Sequence[str]]:
    folded = folded_grid(grid, most)
    if _cells(folded) <= most:
        return folded, ()
    rows, cols = len(grid.rows), len(grid.rows[0])
    keys = [[cell.key for cell in row] for row in grid.rows]
    for high, wide in _blocks(rows, cols, most):
        steps = _steps(grid, keys, high, wide)
        if steps is not None:
            down, across = steps
            said = [
                *_said(grid.names, [*enumerate(down)], high, "rows"),
                *_said(grid.names, [*enumerate(across)], wide, "columns"),
            ]
            return _part(grid, high, wide), [_first(rows, cols, high, wide), *said]
    high, wide = next(_blocks(rows, cols, most), (min(rows, 32), min(cols, 32)))
    return _part(grid, high, wide), [_first(rows, cols, high, wide)]


def _cells(grid: Grid) -> int:
    return len(grid.rows) * len(grid.rows[0])


def _part(grid: Grid, high: int, wide: int) -> Grid:
    return replace(grid, rows=tuple(row[:wide] for row in grid.rows[:high]), folds=())


def _first(rows: int, cols: int, high: int, wide: int) -> str:
    return f"the first {high} x {wide} of {rows} x {cols}"


def _blocks(rows: int, cols: int, most: int) -> Iterator[tuple[int, int]]:
    """Sizes of blocks that divide a matrix, the largest first, square before oblong."""
    found = [
        (high, wide)
        for high in range(1, min(rows, _SIDE) + 1)
        for wide in range(1, min(cols, _SIDE) + 1)
        if rows % high == 0 and cols % wide == 0 and high * wide <= most
    ]
    yield from sorted(found, key=lambda size: (-size[0] * size[1], abs(size[0] - size[1])))


def _steps(
    grid: Grid, keys: list[list[Point | None]], high: int, wide: int
) -> tuple[list[Point], list[Point]] | None:
    """By what the numbers of every block differ from the first one's: for each row of blocks and
    for each column of blocks. None where they do not, all alike."""
    corner = keys[0][0]
    if corner is None:
        return None
    down = [_less(row[0], corner) for row in keys[::high]]
    across = [_less(key, corner) for key in keys[0][::wide]]
    if None in down or None in across:
        return None
    rows = [step for step in down if step is not None]
    cols = [step for step in across if step is not None]
    for i, line in enumerate(keys):
        for j, key in enumerate(line):
            first = keys[i % high][j % wide]
            if first is None or key is None:
                return None
            step = (a + b for a, b in zip(rows[i // high], cols[j // wide], strict=True))
            if key != tuple(a + b for a, b in zip(first, step, strict=True)):
                return None
            if _kind(grid.rows[i][j]) != _kind(grid.rows[i % high][j % wide]):
                return None
    return rows, cols


def _less(key: Point | None, other: Point) -> Point | None:
    return None if key is None else tuple(a - b for a, b in zip(key, other, strict=True))


def _kind(cell: Cell) -> object:
    """What the numbers of a label do not say."""
    return cell.label.endswith("+"), cell.mark


def _said(
    names: tuple[str, ...], steps: list[tuple[int, Point]], size: int, what: str
) -> Iterator[str]:
    """`16 rows on: element + 4; 64 rows on: warp + 1`; every block where that is not the sum."""
    if len(steps) == 1:
        return
    by_number = dict(steps)
    powers = [i for i, _ in steps if i and i & (i - 1) == 0]
    sums = all(
        step == tuple(map(sum, zip(*(by_number[p] for p in powers if i & p), strict=True)))
        for i, step in steps
        if i
    )
    told = powers if sums else [i for i, _ in steps if i]
    words = [f"{i * size} {what} on: {_grown(names, by_number[i])}" for i in told]
    yield "; ".join(words)


def _grown(names: tuple[str, ...], step: Point) -> str:
    grown = [
        f"{name} {'+' if by > 0 else '-'} {abs(by)}"
        for name, by in zip(names, step, strict=True)
        if by
    ]
    return ", ".join(grown) or "all alike"
