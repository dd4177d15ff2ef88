"""Layouts as words of a command line, and the pictures of them that commands print."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fragir.cli.query import is_count
from fragir.cli.terminal import is_coloured
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.draw.grid import Drawing
    from fragir.draw.layouts import AnyLayout
    from fragir.isa.query import View
    from fragir.layout import Layout, LayoutChain


Point = tuple[int, ...]


def read_tile(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> Point | None:
    """A callback for `MxN`, or as many extents as the tile has dimensions."""
    if value is None:
        return None
    parts = value.lower().split("x")
    if not 1 <= len(parts) <= 4 or not all(is_count(part) and int(part) for part in parts):
        raise click.BadParameter(f"`{value}` is not of the form MxN")
    return tuple(map(int, parts))


def read_warps(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """A callback for a number of warps below each other, or `RxC` of them."""
    if value is None:
        return None
    parts = value.lower().split("x")
    if len(parts) > 2 or not all(is_count(part) and int(part) for part in parts):
        raise click.BadParameter(f"`{value}` is neither a number of warps nor of the form RxC")
    rows, cols = map(int, (*parts, "1")[:2])
    return rows, cols


def read_any(
    text: str, tile: Point | None = None, warps: tuple[int, int] | None = None
) -> Layout | LayoutChain:
    """The layout of a word of the command line. Raises FragirError.

    `warps` spread an operand's fragment over a tile; they count warps, also where the instruction
    is a warpgroup's.
    """
    if text.lstrip().startswith("#frag."):
        return _attribute(text.strip(), tile)
    from fragir.isa.layout_texts import operand_of, read_layout

    named = operand_of(text)
    if named is None:
        if warps is not None:
            raise FragirError(
                "--warps spreads the operand of an instruction over a tile",
                hint="this layout says its own warps",
            )
        return read_layout(text, tile)
    instruction, _ = named
    rows, cols = warps or (1, 1)
    if instruction.family.startswith("wgmma"):
        rows = rows if warps else 4
        if rows % 4:
            raise FragirError(
                f"{instruction.mnemonic} is done by four warps below each other, not by {rows}",
                hint="--warps 4, or 4x2 for two warpgroups beside each other",
            )
        rows //= 4
    if tile is None and warps is not None:
        raise FragirError("--warps needs the tile", hint="--tile MxN")
    return read_layout(text, tile, (rows, cols))


def _attribute(text: str, tile: Point | None) -> Layout:
    """The layout of an attribute of the IR; the tile's shape is an instruction's by default."""
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    from fragir.dialects.frag import LayoutAttr, MmaLayoutAttr
    from fragir.mlir.diagnostics import from_parse_error
    from fragir.plugins import FragirContext

    try:
        parser = Parser(FragirContext(), text, "<layout>")
        found = parser.parse_attribute()
        if parser.pos != len(text):
            parser.raise_error("The attribute ends here.")
    except ParseError as error:
        raise from_parse_error(error, "<layout>") from error
    except VerifyException as error:
        raise FragirError(str(error)) from error
    if not isinstance(found, LayoutAttr):
        raise FragirError(f"{found} is no layout")
    if tile is None and isinstance(found, MmaLayoutAttr):
        shape = found.data.resolve().shape
        rows, cols = found.data.warps
        tile = (shape[0] * rows, shape[1] * cols) if found.data.operand == "c" else shape
    if tile is None:
        layout = getattr(found, "data", None)
        tile = getattr(layout, "shape", None)
    if tile is None:
        raise FragirError(f"{found} needs the tile's shape", hint="--tile MxN")
    return found.layout(*tile)


# -- pictures --------------------------------------------------------------------------------------
# What `layout` and `convert` share of pictures: which view is asked for, and how it is printed.

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
    from fragir.draw.display import view_of

    access = None if picture.access is None else read_any(picture.access)
    return view_of(layout, facts, picture.view, picture.colour, bits, access)


def show(drawn: Drawing, style: str, full: bool, heading: str = "") -> None:
    """A drawing on stdout, in one of the formats `DRAWN`; text begins with the heading."""
    if style == "svg":
        from fragir.draw.svg import svg

        sys.stdout.write(svg(drawn, full))
    elif style == "html":
        from fragir.draw.svg import html

        sys.stdout.write(html(drawn, full))
    else:
        from fragir.draw import text

        shown = drawn if full else text.readable(drawn)
        if style == "markdown":
            sys.stdout.write(text.grids_markdown(shown.grids))
            return
        words = [drawn.key, *(f"{fold.words}" for grid in shown.grids for fold in grid.folds)]
        sys.stdout.write(heading + "".join(f"  {line}\n" for line in dict.fromkeys(words)) + "\n")
        write = text.coloured_text if is_coloured(sys.stdout) else text.grids_text
        sys.stdout.write(write(shown.grids))
