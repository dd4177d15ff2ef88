"""What the commands about instructions share: reading points, JSON of places and registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fragir.isa import Instruction
    from fragir.isa.query import Holder

TABLE_FORMATS = ("text", "csv", "markdown")


def is_count(text: str) -> bool:
    """Whether a word is a number from 0 on, and no longer than any that could be meant."""
    return text.isascii() and text.isdigit() and len(text) < 20


def read_point(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """A callback for `ROW,COL`, or as many coordinates as a layout has."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not 1 <= len(parts) <= 4 or not all(map(is_count, parts)):
        raise click.BadParameter(f"`{value}` is not of the form ROW,COL")
    return tuple(map(int, parts))


def find(mnemonic: str, target: str | None = None) -> Instruction:
    """The instruction in any spelling; FragirError with the nearest legal ones."""
    from fragir import isa
    from fragir.isa.targets import require_target

    if target is not None:
        require_target(target)
    return isa.lookup(mnemonic, target=target)


def place_json(place: Holder) -> dict[str, object]:
    """Where an element is, as in the documents of `layout`."""
    return {
        "lane": place.lane,
        "element": place.element,
        "register": place.register,
        "bits": [place.low, place.high],
    }


def place_row(place: Holder) -> tuple[object, ...]:
    """The same as cells of a table."""
    return place.lane, place.element, place.register, f"{place.high}:{place.low}"


PLACE_COLUMNS = ("lane", "element", "register", "bits")


def print_rows(style: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on stdout as text, csv or markdown."""
    import sys

    from fragir.draw import text

    render = {"text": text.columns, "csv": text.csv, "markdown": text.markdown}[style]
    sys.stdout.write(render(list(columns), [list(row) for row in rows]))
