"""The model of the pass-by-pass view: everything that the page shows, as plain values.

Lines are counted from 1, and 0 says that a line has none; `stages[0]` is the program as it was
read. A line of a stage comes from one line of the stage before (`came_from`), a line of PTX from
one of the last stage, an instruction of machine code from a line of PTX: all that is linked on the
page follows from these, in both directions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from fragir.draw.grid import Drawing, Grid, Point, folded_grid, kind_of
from fragir.draw.svg import svg
from fragir.explain.texts import LineChange, counts

if TYPE_CHECKING:
    from fragir.errors import FragirError
    from fragir.explain.page import Document


# -- pictures --------------------------------------------------------------------------------------
# Pictures of layouts that stay legible and small: a part, and by which rule the rest goes on.
#
# `fragir.draw` leaves out rows and columns that repeat by one step. The fragments of several warps
# repeat by several: 8 rows on two more elements, 64 rows on the next warp. Of those the first block
# is drawn, and the steps are said for every power of two of blocks.

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
        return _compared_picture(drawn, most)
    grids: list[Grid] = []
    words: dict[str, None] = {}
    for grid in drawn.grids:
        shown, said = _legible(grid, most)
        grids.append(shown)
        words.update(dict.fromkeys(said))
    small = replace(drawn, grids=tuple(grids))
    return LayoutPicture(drawn.title, svg(small, full=True), tuple(words), drawn.facts)


def _compared_picture(drawn: Drawing, most: int) -> LayoutPicture:
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
                *_step_texts(grid.names, [*enumerate(down)], high, "rows"),
                *_step_texts(grid.names, [*enumerate(across)], wide, "columns"),
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
            if kind_of(grid.rows[i][j]) != kind_of(grid.rows[i % high][j % wide]):
                return None
    return rows, cols


def _less(key: Point | None, other: Point) -> Point | None:
    return None if key is None else tuple(a - b for a, b in zip(key, other, strict=True))


def _step_texts(
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
    words = [f"{i * size} {what} on: {_growth_text(names, by_number[i])}" for i in told]
    yield "; ".join(words)


def _growth_text(names: tuple[str, ...], step: Point) -> str:
    grown = [
        f"{name} {'+' if by > 0 else '-'} {abs(by)}"
        for name, by in zip(names, step, strict=True)
        if by
    ]
    return ", ".join(grown) or "all alike"


Severity = Literal["error", "letter", "remark"]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The program as the user wrote it; no lines where there is no text (built in Python)."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageShown:
    """The program after a pass, which took `ms`.

    For every line: the line of the stage before that its operation was made of, and the line of
    the source. `notes` are what the pass has to say: schedules, the total price of layouts.
    """

    name: str
    ms: float
    lines: tuple[str, ...]
    came_from: tuple[int, ...]
    source: tuple[int, ...]
    differences: tuple[LineChange, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeShown:
    """A type with a layout, as it is written in the stages, and the number of its picture.

    `why_not` says why there is none.
    """

    text: str
    kind: Literal["tile", "memory"]
    shape: tuple[int, ...]
    element: str
    layout: str
    resolved: str
    picture: int | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class TileShown:
    """A tile that `frag-place` gave a layout, and who asked for that.

    `line` is its operation's in stage number `stage`, `asked_lines` are lines of the stage before.
    """

    name: str
    stage: int
    line: int
    layout: str
    asked_by: str
    asked_lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConversionShown:
    """A `frag.convert` at a line of stage number `stage`.

    `cost` is in half cycles of an SM for a warp, of doing it once; `trips` how often it is done;
    `without` the least total where it is forbidden, None where the program is then impossible.
    """

    stage: int
    line: int
    name: str
    source: str
    target: str
    cost: float
    trips: float
    steps: str
    asked_by: str
    asked_lines: tuple[int, ...]
    without: float | None
    picture: int | None


@dataclass(frozen=True, slots=True)
class PtxShown:
    """PTX, and for every line that of the last stage and that of the source it comes from."""

    lines: tuple[str, ...]
    came_from: tuple[int, ...]
    source: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperandShown:
    """An operand of an instruction: its picture, or in words what it is."""

    operand: str
    words: str
    picture: int | None


@dataclass(frozen=True, slots=True)
class InstructionShown:
    """A tensor-core instruction or matrix copy, at which lines of PTX, and its operands."""

    mnemonic: str
    lines: tuple[int, ...]
    operands: tuple[OperandShown, ...]


@dataclass(frozen=True, slots=True)
class MachineLine:
    """A line of SASS: the line of PTX that it comes from, and how many registers live there.

    `live` is None where that is not known. `spill`: it loads or stores a spilled register.
    """

    text: str
    ptx: int
    live: int | None = None
    spill: bool = False


@dataclass(frozen=True, slots=True)
class MachineFunction:
    """The machine code of a kernel, and what it takes: registers a thread, the rest in bytes."""

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    shared: int
    stack: int
    barriers: int
    lines: tuple[MachineLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to see at a line: a finding of a run, a verdict of ptxas, a word of the compiler.

    `by` says whose; `ptx` and `source` are lines, 0 where it is about the whole. `why` are lines on
    the barriers that a finding is about, and `picture` the number of their picture.
    """

    by: Literal["check", "ptxas", "compiler"]
    kind: str
    severity: Severity
    message: str
    ptx: int = 0
    source: int = 0
    why: tuple[str, ...] = ()
    picture: int | None = None


@dataclass(frozen=True, slots=True)
class OpenShown:
    """What is up to the schedule, by its line of PTX; 0 where that is not known."""

    ptx: int
    why: str


@dataclass(frozen=True, slots=True)
class SchedulesShown:
    """For which schedules a run with checks speaks: for every one where nothing is `open`."""

    open: tuple[OpenShown, ...]
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ValueShown:
    """What a tile or a register held at a line of PTX: rows of numbers as texts.

    `holders[i][j]` are those who hold the element at row i and column j: `W0 T5:3`, lane 5's
    element 3, as the pictures of layouts have it. `when` says at which execution, in which block.
    `line` of stage number `stage` defines the tile; 0 where it is no tile of a stage.
    """

    at: str
    what: str
    when: str
    ptx: int
    rows: tuple[tuple[str, ...], ...]
    holders: tuple[tuple[str, ...], ...]
    words: tuple[str, ...] = ()
    stage: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class ErrorShown:
    """What is wrong with the program: the stages go as far as it came."""

    message: str
    file: str | None
    line: int | None
    col: int | None
    doing: str
    """The pass that failed, empty where it was another step."""

    @classmethod
    def of(cls, error: FragirError, doing: str = "") -> ErrorShown:
        """An error of a user's program."""
        return cls(error.sentence, error.file, error.line, error.col, doing)


@dataclass(frozen=True, slots=True, repr=False)
class ProgramReport:
    """Everything about a program on its way to machine code. `document` is its JSON."""

    kind: Literal["mlir", "ptx"]
    target: str
    source: SourceText
    pipeline: str = ""
    stages: tuple[StageShown, ...] = ()
    ptx: PtxShown | None = None
    machine: tuple[MachineFunction, ...] = ()
    no_machine: str = ""
    """Why there is no machine code."""
    types: tuple[TypeShown, ...] = ()
    tiles: tuple[TileShown, ...] = ()
    conversions: tuple[ConversionShown, ...] = ()
    instructions: tuple[InstructionShown, ...] = ()
    pictures: tuple[LayoutPicture, ...] = ()
    marks: tuple[Mark, ...] = ()
    ran: str = ""
    """How the program was run for findings and values; empty where it was not."""
    schedules: SchedulesShown | None = None
    values: tuple[ValueShown, ...] = ()
    timeline: None = None
    """What ran when, by unit. Nothing makes one yet; the page has a place for it."""
    error: ErrorShown | None = None
    exception: FragirError | None = field(default=None, compare=False)
    """The error itself, for those who go on with it."""

    def __repr__(self) -> str:
        names = ", ".join(stage.name for stage in self.stages)
        return f"<{self.source.name} for {self.target}: {names}>"

    def document(self) -> Document:
        """The model as `fragir explain --json` prints it (docs/json.md)."""
        kept = [one.name for one in fields(self) if one.name != "exception"]
        found = {name: plain_value(getattr(self, name)) for name in kept}
        for shown, stage in zip(found["stages"], self.stages, strict=True):
            shown["counts"] = counts(stage.differences)
        return found

    def html(self) -> str:
        """One page, which needs nothing else."""
        from fragir.explain.page import page

        return page(self.document())

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        from fragir.explain.page import frame_page

        return frame_page(self.document())


def plain_value(value: object) -> Any:
    """A value of the model as lists, dicts, texts and numbers."""
    if isinstance(value, tuple):
        return [plain_value(one) for one in cast("tuple[object, ...]", value)]
    if is_dataclass(value):
        return {one.name: plain_value(getattr(value, one.name)) for one in fields(value)}
    return value
