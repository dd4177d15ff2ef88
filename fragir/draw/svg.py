"""A drawing as SVG: every cell says its lane and element, and more when it is pointed at.

The pictures are light or dark as the page is, small, and read by machines too: every cell is a
`<g data-at="ROW,COL">` with a `<title>` and a `<text>`, every matrix a `<g data-grid="TITLE">`, and
`data-folds` has as JSON by which rule the rows and columns go on that are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import TypeAlias

from fragir.draw.grid import Cell, Drawing, Grid, drawing, fold_drawing
from fragir.isa.query import View

# -- palette ---------------------------------------------------------------------------------------
# Colours of drawings: 32 of them, for light and for dark pages.
#
# Eight hues of four strengths each. The hues are those of Okabe and Ito ("Color Universal Design",
# 2008, https://jfly.uni-koeln.de/color/), which people of every colour vision tell apart, in an
# order in which neighbours differ in more than hue; the strengths are shares of the hue over the
# page's ground, so that neighbouring lanes differ in lightness as well. Black text on the light
# ones, white on the dark ones has a contrast of 4.5 at least (WCAG 2.2, success criterion 1.4.3).

Colour: TypeAlias = tuple[int, int, int]

HUES: tuple[Colour, ...] = (
    (0xE6, 0x9F, 0x00),  # orange
    (0x00, 0x9E, 0x73),  # bluish green
    (0xD5, 0x5E, 0x00),  # vermillion
    (0xCC, 0x79, 0xA7),  # reddish purple
    (0xF0, 0xE4, 0x42),  # yellow
    (0x00, 0x72, 0xB2),  # blue
    (0x88, 0x88, 0x88),  # grey
    (0x56, 0xB4, 0xE9),  # sky blue
)
LIGHT, DARK = (0xFF, 0xFF, 0xFF), (0x16, 0x18, 0x1C)
INK, CHALK = (0x11, 0x11, 0x11), (0xFF, 0xFF, 0xFF)
_LIGHT_SHARES = (0.25, 0.42, 0.59, 0.76)
_DARK_SHARES = (0.18, 0.27, 0.37, 0.47)
_LIGHT_LINES = ("#6b6b6b", "#f0f0f0", "#c00000")
_DARK_LINES = ("#5a5f68", "#23262b", "#ff6b5e")
"""Lines between cells, the ground of empty ones, frames of marked ones."""
COUNT = len(HUES) * len(_LIGHT_SHARES)


def _mix(hue: Colour, ground: Colour, share: float) -> Colour:
    red, green, blue = (
        round(share * x + (1 - share) * y) for x, y in zip(hue, ground, strict=True)
    )
    return red, green, blue


def colour(shade: int, dark: bool = False) -> Colour:
    """Red, green and blue, 0 to 255, of a shade; there are `COUNT`, then they begin again."""
    hue, strength = divmod(shade % COUNT, len(_LIGHT_SHARES))
    ground, shares = (DARK, _DARK_SHARES) if dark else (LIGHT, _LIGHT_SHARES)
    return _mix(HUES[hue], ground, shares[strength])


def hexadecimal(rgb: Colour) -> str:
    """`#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)


def style(shades: Iterable[int]) -> str:
    """CSS of the classes `fr-0` to `fr-31` that are used, for light and dark pages."""
    used = sorted({shade % COUNT for shade in shades})

    def rules(dark: bool) -> str:
        ground, ink = (DARK, CHALK) if dark else (LIGHT, INK)
        line, empty, mark = _DARK_LINES if dark else _LIGHT_LINES
        head = (
            f".fr-ground{{fill:{hexadecimal(ground)}}}"
            f".fr text{{fill:{hexadecimal(ink)}}}"
            f".fr [data-at]>rect{{stroke:{line}}}.fr-none{{fill:{empty}}}"
            f".fr [data-at]>.fr-mark{{stroke:{mark};stroke-width:2;fill:none}}"
        )
        return head + "".join(
            f".fr-{shade}{{fill:{hexadecimal(colour(shade, dark))}}}" for shade in used
        )

    return f"{rules(False)}@media(prefers-color-scheme:dark){{{rules(True)}}}"


_HEIGHT, _MARGIN, _GAP, _LETTER, _LINE = 24, 34, 22, 6.7, 16
_FONT = "font:11px ui-monospace,Menlo,Consolas,monospace;text-anchor:middle"


def view_svg(view: View, colour: str = "lane", full: bool = False) -> str:
    """One SVG document with every matrix of the operand below each other."""
    return svg(drawing(view, colour), full)


def svg(drawn: Drawing, full: bool = False) -> str:
    """One SVG document with every grid; `full` leaves no repeats out."""
    shown = drawn if full else fold_drawing(drawn)
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


# -- html ------------------------------------------------------------------------------------------
# A drawing as one HTML page that needs nothing else, or as a part of a notebook.

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font-family:system-ui,sans-serif;margin:2em;max-width:100%}"
    "th{text-align:left;vertical-align:top;padding-right:1em;font-weight:600}"
    "pre{margin:0;white-space:pre-wrap}.fr-scroll{overflow-x:auto}"
)


def html(drawn: Drawing, full: bool = False) -> str:
    """A page with the picture and what is known in words."""
    title = escape(drawn.title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n{fragment(drawn, full)}</body>\n</html>\n"
    )


def fragment(drawn: Drawing, full: bool = False) -> str:
    """What stands in the page: facts and the picture."""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td><pre>{escape(text)}</pre></td></tr>\n"
        for name, text in drawn.facts
    )
    return f'<table>\n{rows}</table>\n<div class="fr-scroll">\n{svg(drawn, full)}</div>\n'
