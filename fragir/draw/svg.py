"""A drawing as SVG: every cell says its lane and element, and more when it is pointed at.

The pictures are light or dark as the page is, small, and read by machines too: every cell is a
`<g data-at="ROW,COL">` with a `<title>` and a `<text>`, every matrix a `<g data-grid="TITLE">`, and
`data-folds` has as JSON by which rule the rows and columns go on that are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from fragir.draw.folding import folded
from fragir.draw.grid import Cell, Drawing, Grid, drawing
from fragir.draw.palette import COUNT, style
from fragir.isa.query import View

_HEIGHT, _MARGIN, _GAP, _LETTER, _LINE = 24, 34, 22, 6.7, 16
_FONT = "font:11px ui-monospace,Menlo,Consolas,monospace;text-anchor:middle"


def view_svg(view: View, colour: str = "lane", full: bool = False) -> str:
    """One SVG document with every matrix of the operand below each other."""
    return svg(drawing(view, colour), full)


def svg(drawn: Drawing, full: bool = False) -> str:
    """One SVG document with every grid; `full` leaves no repeats out."""
    shown = drawn if full else folded(drawn)
    width, height = 0, 0
    body: list[str] = []
    for grid in shown.grids:
        wide, high = _size(grid)
        x, y = (width, 0) if shown.beside else (0, height)
        body.extend(_grid(grid, x, y))
        if shown.beside:
            width, height = width + wide + _GAP, max(height, high)
        else:
            width, height = max(width, wide), height + high
    for line in (f"{shown.key}.", *dict.fromkeys(_folds(shown))):
        height += _LINE
        body.append(
            f'<text x="4" y="{height - 4}" style="text-anchor:start">{escape(line)}</text>\n'
        )
        width = max(width, int(_LETTER * len(line)) + 8)
    shades = [c.shade for g in shown.grids for row in g.rows for c in row if c.shade is not None]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fr" viewBox="0 0 {width} {height + 4}" '
        f'width="{width}" height="{height + 4}" style="{_FONT}" role="img">\n'
        f"<title>{escape(shown.title)}</title>\n<style>{style(shades)}</style>\n"
        f'<rect class="fr-ground" width="{width}" height="{height + 4}"/>\n'
        f"{''.join(body)}</svg>\n"
    )


def _folds(drawn: Drawing) -> Iterator[str]:
    for grid in drawn.grids:
        for fold in grid.folds:
            yield f"{fold.words}."


def _cell_width(grid: Grid) -> int:
    longest = max((len(cell.label) for row in grid.rows for cell in row), default=1)
    return max(26, int(_LETTER * longest) + 9)


def _size(grid: Grid) -> tuple[int, int]:
    """Width and height, with the numbers at its edges."""
    rows, cols = len(grid.rows), len(grid.rows[0])
    gaps = [0 if grid.gap(axis) is None else _GAP for axis in (0, 1)]
    width = _MARGIN + _cell_width(grid) * cols + gaps[1] + 1
    named = _MARGIN + int(_LETTER * len(grid.title)) if grid.title else 0
    return max(width, named), _MARGIN + _HEIGHT * rows + gaps[0] + 6 + _over(grid)


def _over(grid: Grid) -> int:
    return _LINE if grid.title else 0


def _grid(grid: Grid, left: int, top: int) -> Iterator[str]:
    folds = [
        {
            "axis": ("rows", "columns")[fold.axis],
            "period": fold.period,
            "times": fold.times,
            "steps": dict(zip(fold.names, fold.steps, strict=True)),
        }
        for fold in grid.folds
    ]
    told = f' data-folds="{escape(json.dumps(folds))}"' if folds else ""
    yield f'<g data-grid="{escape(grid.title)}" transform="translate({left},{top})"{told}>\n'
    over = _over(grid)
    if grid.title:
        yield f'<text x="4" y="12" style="text-anchor:start">{escape(grid.title)}</text>\n'
    corner = f"{grid.row_name}\\{grid.col_name}"
    yield _text(_MARGIN // 2, over + _MARGIN // 2, corner, 8)
    wide = _cell_width(grid)
    xs = [_along(grid, 1, i, wide) + _MARGIN for i in range(len(grid.rows[0]))]
    for x, cell in zip(xs, grid.rows[0], strict=True):
        yield _text(x + wide // 2, over + _MARGIN - 6, str(cell.col))
    for number, row in enumerate(grid.rows):
        y = over + _MARGIN + _along(grid, 0, number, _HEIGHT)
        yield _text(_MARGIN // 2, y + 16, str(row[0].row))
        for x, cell in zip(xs, row, strict=True):
            yield _cell(cell, x, y, wide)
    yield from _dots(grid, over, wide)
    yield "</g>\n"


def _along(grid: Grid, axis: int, number: int, size: int) -> int:
    gap = grid.gap(axis)
    return size * number + (_GAP if gap is not None and number >= gap else 0)


def _dots(grid: Grid, over: int, wide: int) -> Iterator[str]:
    """Dots where rows or columns are left out."""
    rows, cols = len(grid.rows), len(grid.rows[0])
    across, down = grid.gap(1), grid.gap(0)
    if across is not None:
        x = _MARGIN + wide * across + _GAP // 2
        for number in range(0, rows, 4):
            y = over + _MARGIN + _along(grid, 0, number, _HEIGHT) + 16
            yield _text(x, y, "⋯", 14)
    if down is not None:
        y = over + _MARGIN + _HEIGHT * down + _GAP // 2 + 4
        for number in range(0, cols, 4):
            yield _text(_MARGIN + _along(grid, 1, number, wide) + wide // 2, y, "⋮", 14)


def _text(x: int, y: int, text: str, size: int = 0) -> str:
    sized = f' font-size="{size}"' if size else ""
    return f'<text x="{x}" y="{y}"{sized}>{escape(text)}</text>\n'


def _cell(cell: Cell, x: int, y: int, wide: int) -> str:
    fill = "none" if cell.shade is None else cell.shade % COUNT
    box = f'x="{x}" y="{y}" width="{wide}" height="{_HEIGHT}"'
    inner = f'x="{x + 2}" y="{y + 2}" width="{wide - 4}" height="{_HEIGHT - 4}"'
    frame = f'<rect class="fr-mark" {inner}/>' if cell.mark else ""
    return (
        f'<g data-at="{cell.row},{cell.col}"><title>{escape(cell.note)}</title>'
        f'<rect class="fr-{fill}" {box}/>{frame}'
        f'<text x="{x + wide // 2}" y="{y + 16}">{escape(cell.label)}</text></g>\n'
    )
