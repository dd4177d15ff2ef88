"""Tables and grids as plain text, Markdown and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fragir.draw.grid import Drawing, Grid, grids
from fragir.isa.query import View

Row = Sequence[object]
DOTS = "⋯"
_CELL = re.compile(r"\S+( \S+)*")


def columns(names: Sequence[str], rows: Sequence[Row]) -> str:
    """Aligned columns under their names; numbers to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    right = [all(isinstance(row[i], int) for row in rows) for i in range(len(names))]
    widths = [max(map(len, (name, *(t[i] for t in texts)))) for i, name in enumerate(names)]
    lines: list[str] = []
    for line in (list(names), *texts):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def markdown(names: Sequence[str], rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def csv(names: Sequence[str], rows: Sequence[Row]) -> str:
    """Comma-separated values, quoted where they must be."""
    import csv as standard
    from io import StringIO

    stream = StringIO()
    writer = standard.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return stream.getvalue()


def _numbered_cells(grid: Grid) -> tuple[list[str], list[list[object]]]:
    """Names of the columns and rows of cells; dots stand where some are left out."""
    corner = f"{grid.row_name}\\{grid.col_name}"
    down, across = grid.gap(0), grid.gap(1)

    def line(cells: Sequence[object]) -> list[object]:
        return [*cells] if across is None else [*cells[:across], DOTS, *cells[across:]]

    names = [corner, *map(str, line([cell.col for cell in grid.rows[0]]))]
    rows = [[row[0].row, *line([cell.label for cell in row])] for row in grid.rows]
    if down is not None:
        rows.insert(down, [DOTS] * len(names))
    return names, rows


def readable(drawn: Drawing) -> Drawing:
    """The drawing without the repeats of large grids, as a picture has it."""
    from fragir.draw.grid import fold_drawing

    return fold_drawing(drawn)


def view_text(view: View) -> str:
    """Every element of the matrix with its lane and element: `T5:3`."""
    return grids_text(grids(view))


def grids_text(drawn: Iterable[Grid]) -> str:
    """Grids below each other."""
    parts: list[str] = []
    for grid in drawn:
        parts.append((f"{grid.title}\n" if grid.title else "") + columns(*_numbered_cells(grid)))
    return "\n".join(parts)


def coloured_text(drawn: Iterable[Grid], width: int | None = None) -> str:
    """Grids with the colours of their cells, for a terminal; one too narrow gets no colours."""
    from io import StringIO

    from rich.console import Console
    from rich.style import Style
    from rich.text import Text

    from fragir.draw.svg import INK, colour, hexadecimal

    console = Console(file=StringIO(), force_terminal=True, width=width)
    for grid in drawn:
        text = columns(*_numbered_cells(grid))
        if max(map(len, text.splitlines()), default=0) > console.width:
            console.print(Text(f"{grid.title}\n" if grid.title else "", end=""), end="")
            console.print(Text(text, no_wrap=True, overflow="ignore"), soft_wrap=True)
            continue
        lines = text.splitlines()
        shades = [[cell.shade for cell in row] for row in grid.rows]
        down, across = grid.gap(0), grid.gap(1)
        if down is not None:
            shades.insert(down, [])
        shown = Text(f"{grid.title}\n" if grid.title else "")
        shown.append(lines[0] + "\n", style="bold")
        for line, row in zip(lines[1:], shades, strict=True):
            words = Text(line)
            spans = [match.span() for match in _CELL.finditer(line)][1:]
            if across is not None and row:
                del spans[across]
            for (start, end), shade in zip(spans, row, strict=False):
                if shade is not None:
                    back = hexadecimal(colour(shade))
                    words.stylize(Style(color=hexadecimal(INK), bgcolor=back), start, end)
            shown.append_text(words).append("\n")
        console.print(shown, no_wrap=True)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def grids_markdown(drawn: Iterable[Grid]) -> str:
    """Grids as Markdown tables."""
    parts: list[str] = []
    for grid in drawn:
        parts.append((f"{grid.title}\n\n" if grid.title else "") + markdown(*_numbered_cells(grid)))
    return "\n".join(parts)


def view_csv(view: View) -> str:
    """One line for every slot of every lane: where it is and which element it holds."""
    names = ["lane", "element", "register", "low", "high", *view.dims]
    rows: list[Row] = []
    for lane in range(view.lanes):
        for place, point in view.held(lane):
            held = point if point is not None else ("",) * len(view.dims)
            rows.append([lane, place.element, place.register, place.low, place.high, *held])
    return csv(names, rows)
