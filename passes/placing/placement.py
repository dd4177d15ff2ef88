"""A tile's layout, written into its type."""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from fragir.diagnostics import fail
from fragir.dialects import frag


def owner_of(value: SSAValue) -> Operation:
    """The operation that makes a value, or whose region takes it."""
    owner = value.owner if isinstance(value, OpResult) else value.owner.parent_op()
    assert isinstance(owner, Operation)
    return owner


def set_layout(value: SSAValue, layout: frag.LayoutAttr) -> None:
    """Gives a tile its layout. Fails where it cannot have it."""
    tile = frag.tile_of(value)
    if tile.layout == layout:
        return
    placed = placed_type(value, tile, layout)
    in_flight = not isinstance(value.type, frag.TileType)
    Rewriter.replace_value_with_new_type(value, frag.InFlightType(placed) if in_flight else placed)


def placed_type(value: SSAValue, tile: frag.TileType, layout: frag.LayoutAttr) -> frag.TileType:
    try:
        return tile.with_layout(layout)
    except VerifyException as error:
        fail(owner_of(value), f"{tile} cannot have the layout {layout}: {error}")


def named(value: SSAValue) -> str:
    """What a tile, or memory, is called in messages."""
    what = "a tile " if frag.held_tile(value.type) is not None else ""
    return f"%{value.name_hint}" if value.name_hint else f"{what}{value.type}"
