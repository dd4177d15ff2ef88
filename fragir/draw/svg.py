"""A layout as an SVG picture, and as one HTML page that needs nothing else.

Every lane has a colour; a cell shows its lane and element, and says more when pointed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from fragir.draw.grid import Cell, Drawing, Grid, drawing
from fragir.isa.query import View

_WIDTH, _HEIGHT, _MARGIN = 46, 24, 34
_STYLE = "font-family:monospace;font-size:11px;text-anchor:middle;dominant-baseline:central"


def view_svg(view: View) -> str:
    """One SVG document with every matrix of the operand below each other."""
    return svg(drawing(view))


def view_html(view: View) -> str:
    """A page with the picture, the registers and the layout in words."""
    return html(drawing(view))


def svg(drawn: Drawing) -> str:
    """One SVG document with every grid below each other."""
    body: list[str] = []
    width, y = 0, 0
    for grid in drawn.grids:
        body.extend(_grid(grid, y))
        width = max(width, _MARGIN + _WIDTH * len(grid.rows[0]) + 1)
        y += _MARGIN + _HEIGHT * len(grid.rows) + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" '
        f'height="{y}" style="{_STYLE}">\n<title>{escape(drawn.title)}</title>\n'
        f'<rect width="{width}" height="{y}" fill="white"/>\n{"".join(body)}</svg>\n'
    )


def html(drawn: Drawing) -> str:
    """A page with the picture and what is known in words."""
    title = escape(drawn.title)
    rows = "".join(
        f"<tr><th>{name}</th><td><pre>{escape(text)}</pre></td></tr>\n"
        for name, text in drawn.facts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{title}</title>\n"
        "<style>body{font-family:sans-serif;margin:2em}th{text-align:left;vertical-align:top;"
        "padding-right:1em}pre{margin:0}div{overflow-x:auto}</style>\n</head>\n<body>\n"
        f"<h1>{title}</h1>\n<table>\n{rows}</table>\n"
        f"<p>{escape(drawn.key)}.</p>\n<div>\n{svg(drawn)}</div>\n</body>\n</html>\n"
    )


def _grid(grid: Grid, top: int) -> Iterator[str]:
    corner = grid.title or f"{grid.row_name}\\{grid.col_name}"
    yield _text(_MARGIN // 2, top + _MARGIN // 2, corner, 8)
    for cell in grid.rows[0]:
        yield _text(_MARGIN + _WIDTH * cell.col + _WIDTH // 2, top + _MARGIN - 10, str(cell.col))
    for row in grid.rows:
        y = top + _MARGIN + _HEIGHT * row[0].row
        yield _text(_MARGIN // 2, y + _HEIGHT // 2, str(row[0].row))
        for cell in row:
            yield _cell(cell, _MARGIN + _WIDTH * cell.col, y)


def _text(x: int, y: int, text: str, size: int = 11) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}">{escape(text)}</text>\n'


def _cell(cell: Cell, x: int, y: int) -> str:
    fill = "#eeeeee" if cell.shade is None else colour(cell.shade)
    return (
        f'<g><title>{escape(cell.note)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" fill="{fill}" stroke="#666"/>'
        f'<text x="{x + _WIDTH // 2}" y="{y + _HEIGHT // 2}">{escape(cell.label)}</text></g>\n'
    )


def colour(lane: int) -> str:
    """A light colour; neighbouring lanes differ in hue, the four warps in lightness."""
    return f"hsl({lane % 4 * 90 + lane // 4 % 8 * 11},70%,{84 - lane // 32 * 5}%)"
