"""What `layout` and `convert` share of pictures: which view is asked for, and how it is printed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fragir.cli.terminal import in_colour
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.draw.grid import Drawing
    from fragir.draw.layouts import AnyLayout
    from fragir.isa.query import View

DRAWN = ("text", "markdown", "svg", "html")
"""The formats that are pictures of the whole."""
FRAMED = ("svg", "html")
"""Those in which the answer to a question can be framed."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a picture shows: its view, what has one colour, who reads the memory, repeats."""

    view: str = "matrix"
    colour: str = "lane"
    access: str | None = None
    full: bool = False


def operand_drawing(view: View, picture: Picture) -> Drawing:
    """The drawing of an instruction's operand."""
    from fragir.draw.grid import drawing

    if picture.view == "memory":
        raise FragirError(
            f"operand {view.operand.name} of {view.instruction.mnemonic} is held in registers",
            hint="--view memory is of a layout of memory, and --access names who reads it",
        )
    if picture.colour == "bank":
        raise FragirError(
            f"operand {view.operand.name} of {view.instruction.mnemonic} is held in registers",
            hint="--colour bank is of a layout of memory",
        )
    drawn = drawing(view, picture.colour)
    if picture.view == "matrix":
        return drawn
    from dataclasses import replace

    from fragir.draw.layouts import hardware_drawing

    found = hardware_drawing(view.layout, drawn.facts, picture.colour)
    return replace(found, title=drawn.title)


def text_drawing(
    layout: AnyLayout, facts: tuple[tuple[str, str], ...], picture: Picture, bits: int | None
) -> Drawing:
    """The drawing of any layout."""
    from fragir.cli.layout_texts import read_any
    from fragir.draw.views import view_of

    access = None if picture.access is None else read_any(picture.access)
    return view_of(layout, facts, picture.view, picture.colour, bits, access)


def show(drawn: Drawing, style: str, full: bool, heading: str = "") -> None:
    """A drawing on stdout, in one of the formats `DRAWN`; text begins with the heading."""
    if style == "svg":
        from fragir.draw.svg import svg

        sys.stdout.write(svg(drawn, full))
    elif style == "html":
        from fragir.draw.html import html

        sys.stdout.write(html(drawn, full))
    else:
        from fragir.draw import text

        shown = drawn if full else text.readable(drawn)
        if style == "markdown":
            sys.stdout.write(text.grids_markdown(shown.grids))
            return
        words = [drawn.key, *(f"{fold.words}" for grid in shown.grids for fold in grid.folds)]
        sys.stdout.write(heading + "".join(f"  {line}\n" for line in dict.fromkeys(words)) + "\n")
        write = text.coloured if in_colour(sys.stdout) else text.grids_text
        sys.stdout.write(write(shown.grids))
