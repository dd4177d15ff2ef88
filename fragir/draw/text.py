"""Tables and grids as plain text, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.draw.grid import Grid, grids
from fragir.isa.query import View

Row = Sequence[object]


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


def _numbered(grid: Grid) -> tuple[list[str], list[list[object]]]:
    corner = f"{grid.row_name}\\{grid.col_name}"
    names = [corner, *(str(cell.col) for cell in grid.rows[0])]
    return names, [[row[0].row, *(cell.label for cell in row)] for row in grid.rows]


def view_text(view: View) -> str:
    """Every element of the matrix with its lane and element: `T5:3`."""
    return grids_text(grids(view))


def grids_text(drawn: Iterable[Grid]) -> str:
    """Grids below each other."""
    parts: list[str] = []
    for grid in drawn:
        parts.append((f"{grid.title}\n" if grid.title else "") + columns(*_numbered(grid)))
    return "\n".join(parts)


def view_markdown(view: View) -> str:
    """The same as Markdown tables."""
    return grids_markdown(grids(view))


def grids_markdown(drawn: Iterable[Grid]) -> str:
    """Grids as Markdown tables."""
    parts: list[str] = []
    for grid in drawn:
        parts.append((f"{grid.title}\n\n" if grid.title else "") + markdown(*_numbered(grid)))
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
