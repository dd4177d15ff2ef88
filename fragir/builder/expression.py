"""Expressions of tiles: what operators on tiles gather until a tile is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr

from fragir.builder.values import Operand, Tile


@dataclass(frozen=True, eq=False)
class Expression:
    """A function of tiles, scalars and numbers, element by element, and where it was written."""

    function: str
    operands: tuple[Operand, ...]
    location: LocationAttr
    name: str | None = None


def nodes(tile: Tile, is_leaf: set[Tile], seen: set[Tile] | None = None) -> Iterator[Tile]:
    """The tiles that a tile is computed from, and itself, each once, operands first.

    Tiles in `is_leaf` are not looked into.
    """
    seen = set() if seen is None else seen
    if tile in seen:
        return
    seen.add(tile)
    if tile.expression is not None and tile not in is_leaf:
        for operand in tile.expression.operands:
            if isinstance(operand, Tile):
                yield from nodes(operand, is_leaf, seen)
    yield tile
