"""A layout as a grid of cells: what every drawing of it starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fragir.isa.query import Holder, View

Point = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands at a place of a picture: what is written there, and what is said of it.

    `shade` is the lane (or another number) that gives the cell its colour; None where it is empty.
    `key` are the numbers that the label shows, by which repeats are found. `mark` frames the cell.
    """

    row: int
    col: int
    label: str
    note: str
    shade: int | None
    key: Point | None = None
    mark: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """Rows (axis 0) or columns (axis 1) of which only the first and the last period are drawn.

    There are `times` periods of `period` places; from one to the next the numbers of every label
    grow by `steps`, which `names` names.
    """

    axis: int
    period: int
    times: int
    names: tuple[str, ...]
    steps: Point

    @property
    def words(self) -> str:
        """`columns 8 to 247 repeat the first 8: element + 4 each time`."""
        grown = ", ".join(
            f"{name} + {step}" if step > 0 else f"{name} - {-step}"
            for name, step in zip(self.names, self.steps, strict=True)
            if step
        )
        kind = ("rows", "columns")[self.axis]
        last = self.period * (self.times - 1) - 1
        how = f"{grown} each time" if grown else "all alike"
        return f"{kind} {self.period} to {last} repeat the first {self.period}: {how}"


@dataclass(frozen=True, slots=True)
class Grid:
    """One matrix of a picture; `title` says which, where there are several.

    `names` are what the numbers of the cells' keys are. `folds` say which rows and columns are
    left out.
    """

    title: str
    row_name: str
    col_name: str
    rows: tuple[tuple[Cell, ...], ...]
    names: tuple[str, ...] = ()
    folds: tuple[Repeat, ...] = ()

    def gap(self, axis: int) -> int | None:
        """After how many drawn rows or columns some are left out; None where none are."""
        return next((fold.period for fold in self.folds if fold.axis == axis), None)


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn: a title, facts in words, and one or several grids; `key` explains a label."""

    title: str
    facts: tuple[tuple[str, str], ...]
    key: str
    grids: tuple[Grid, ...]
    beside: bool = False
    """Whether the grids stand beside each other, not below."""


def shade_of(colour: str, place: Holder) -> int:
    """The number that colours a place of an instruction's operand."""
    return {
        "lane": place.lane,
        "warp": 4 * (place.lane // 32) + 2,
        "register": place.register,
        "element": place.element,
    }[colour]


def drawing(view: View, colour: str = "lane") -> Drawing:
    """The drawing of an operand, coloured by lane, warp, register or element."""
    operand = view.operand
    facts = (
        ("type", operand.element),
        ("shape", " x ".join(map(str, view.shape))),
        ("registers a lane", f"{operand.registers.count} x .{operand.registers.type}"),
        ("layout", str(view.layout)),
        ("formula", view.layout.formula()),
    )
    title = f"{view.instruction.mnemonic}, operand {operand.name}"
    return Drawing(title, facts, "T5:3 is element 3 of lane 5", tuple(grids(view, colour)))


def grids(view: View, colour: str = "lane") -> Iterator[Grid]:
    """The matrices of an operand: one, or one for every value of the third coordinate."""
    dims = view.dims
    row_name, col_name = dims[0], dims[1]
    rows, cols = view.shape[:2]
    further = [(x,) for x in range(view.shape[2])] if len(view.shape) == 3 else [()]
    for rest in further:
        title = f"{dims[2]} {rest[0]}" if rest else ""
        cells = tuple(
            tuple(_cell(r, c, rest, view.holders((r, c, *rest)), colour) for c in range(cols))
            for r in range(rows)
        )
        yield Grid(title, row_name, col_name, cells, ("lane", "element"))


def _cell(row: int, col: int, rest: Point, places: Sequence[Holder], colour: str) -> Cell:
    """`T5:3`, element 3 of lane 5; a + where further lanes hold it too."""
    held = "\n".join(
        f"lane {p.lane}, element {p.element}: register {p.register}, bits {p.high}:{p.low}"
        for p in places
    )
    note = f"({', '.join(map(str, (row, col, *rest)))})\n{held}"
    if not places:
        return Cell(row, col, "-", note, None)
    first = places[0]
    label = f"T{first.lane}:{first.element}" + ("+" if len(places) > 1 else "")
    shade = shade_of(colour, first)
    return Cell(row, col, label, note, shade, (first.lane, first.element))


# -- marks -----------------------------------------------------------------------------------------
# Cells of a drawing that are framed: the answer to a question, seen in the whole.


def frame_points(drawn: Drawing, points: Iterable[Point]) -> Drawing:
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


# -- folding ---------------------------------------------------------------------------------------
# Leaves repeats of a large picture out, and says by which rule they go on.
#
# An accumulator of 64 x 256 has 16384 cells, yet it repeats itself every 8 columns with 4 elements
# more and every 16 rows with the next warp. What is left out is known exactly: every cell has been
# compared with the one that the rule gives.

MANY = 1 << 11
"""Cells of a picture that is drawn whole."""
FEWEST = 3
"""Periods that are worth leaving any out."""


def fold_drawing(drawn: Drawing, most: int = MANY) -> Drawing:
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
            if found not in (None, step) or kind_of(cell) != kind_of(other):
                return None
            found = step
    return () if found is None else found


def kind_of(cell: Cell) -> object:
    """What the numbers of a label do not say: whether further ones hold the cell, its frame."""
    return cell.label.endswith("+"), cell.mark


def _without(grid: Grid, fold: Repeat) -> Grid:
    kept = tuple(_kept_indices(fold))
    if fold.axis == 0:
        rows = tuple(grid.rows[i] for i in kept)
    else:
        rows = tuple(tuple(row[i] for i in kept) for row in grid.rows)
    return replace(grid, rows=rows, folds=(*grid.folds, fold))


def _kept_indices(fold: Repeat) -> Iterator[int]:
    last = fold.period * (fold.times - 1)
    yield from range(fold.period)
    yield from range(last, last + fold.period)
