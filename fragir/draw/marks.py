"""Cells of a drawing that are framed: the answer to a question, seen in the whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fragir.draw.grid import Drawing, Point


def framed(drawn: Drawing, points: Iterable[Point]) -> Drawing:
    """A matrix view with the cells of these points framed, and no others.

    A point is a column, or a row and a column; of an instruction's operand a third coordinate says
    in which grid it stands.
    """
    wanted = {_place(point) for point in points}
    grids = tuple(
        replace(
            grid,
            rows=tuple(
                tuple(replace(cell, mark=(number, cell.row, cell.col) in wanted) for cell in row)
                for row in grid.rows
            ),
        )
        for number, grid in enumerate(drawn.grids)
    )
    return replace(drawn, grids=grids)


def _place(point: Point) -> Point:
    """Number of the grid, row, column."""
    row, col, grid = (*(point if len(point) > 1 else (0, *point)), 0)[:3]
    return grid, row, col
