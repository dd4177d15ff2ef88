"""Layouts as words of a command line: any notation, an operand's name, an attribute of the IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fragir.cli.query import is_count
from fragir.errors import FragirError

if TYPE_CHECKING:
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

    from fragir.diagnostics import from_parse_error
    from fragir.dialects.frag import LayoutAttr, MmaLayoutAttr
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
