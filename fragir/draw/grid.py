"""A layout as a grid of cells: what every drawing of it starts from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fragir.isa.query import Holder, View


@dataclass(frozen=True, slots=True)
class Cell:
    """An element of the matrix: what is written there, and what is said when it is pointed at.

    `shade` is the lane (or another number) that gives the cell its colour; None where it is empty.
    """

    row: int
    col: int
    label: str
    note: str
    shade: int | None


@dataclass(frozen=True, slots=True)
class Grid:
    """One matrix of an operand; `title` says which, where there are several."""

    title: str
    row_name: str
    col_name: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn: a title, facts in words, and one or several grids; `key` explains a label."""

    title: str
    facts: tuple[tuple[str, str], ...]
    key: str
    grids: tuple[Grid, ...]


def drawing(view: View) -> Drawing:
    """The drawing of an operand."""
    operand = view.operand
    facts = (
        ("type", operand.element),
        ("shape", " x ".join(map(str, view.shape))),
        ("registers a lane", f"{operand.registers.count} x .{operand.registers.type}"),
        ("layout", str(view.layout)),
        ("formula", view.layout.formula()),
    )
    title = f"{view.instruction.mnemonic}, operand {operand.name}"
    return Drawing(title, facts, "T5:3 is element 3 of lane 5", tuple(grids(view)))


def grids(view: View) -> Iterator[Grid]:
    """The matrices of an operand: one, or one for every value of the third coordinate."""
    dims = view.dims
    row_name, col_name = dims[0], dims[1]
    rows, cols = view.shape[:2]
    further = [(x,) for x in range(view.shape[2])] if len(view.shape) == 3 else [()]
    for rest in further:
        title = f"{dims[2]} {rest[0]}" if rest else ""
        cells = tuple(
            tuple(_cell(r, c, view.holders((r, c, *rest))) for c in range(cols))
            for r in range(rows)
        )
        yield Grid(title, row_name, col_name, cells)


def _cell(row: int, col: int, places: Sequence[Holder]) -> Cell:
    """`T5:3`, element 3 of lane 5; a + where further lanes hold it too."""
    held = "\n".join(
        f"lane {p.lane}, element {p.element}: register {p.register}, bits {p.high}:{p.low}"
        for p in places
    )
    note = f"({row}, {col})\n{held}"
    if not places:
        return Cell(row, col, "-", note, None)
    first = places[0]
    label = f"T{first.lane}:{first.element}" + ("+" if len(places) > 1 else "")
    return Cell(row, col, label, note, first.lane)
