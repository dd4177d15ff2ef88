"""A layout as a grid of cells: what every drawing of it starts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fragir.isa.query import Holder, View


@dataclass(frozen=True, slots=True)
class Cell:
    """An element of the matrix and every place that holds it."""

    row: int
    col: int
    places: tuple[Holder, ...]

    @property
    def label(self) -> str:
        """`T5:3`, element 3 of lane 5; a + where further lanes hold it too."""
        if not self.places:
            return "-"
        first = self.places[0]
        return f"T{first.lane}:{first.element}" + ("+" if len(self.places) > 1 else "")


@dataclass(frozen=True, slots=True)
class Grid:
    """One matrix of an operand; `title` says which, where there are several."""

    title: str
    row_name: str
    col_name: str
    rows: tuple[tuple[Cell, ...], ...]


def grids(view: View) -> Iterator[Grid]:
    """The matrices of an operand: one, or one for every value of the third coordinate."""
    dims = view.dims
    row_name, col_name = dims[0], dims[1]
    rows, cols = view.shape[:2]
    further = [(x,) for x in range(view.shape[2])] if len(view.shape) == 3 else [()]
    for rest in further:
        title = f"{dims[2]} {rest[0]}" if rest else ""
        cells = tuple(
            tuple(Cell(r, c, view.holders((r, c, *rest))) for c in range(cols)) for r in range(rows)
        )
        yield Grid(title, row_name, col_name, cells)
