"""Expressions of tiles: what operators on tiles gather until a tile is used."""

from __future__ import annotations

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


def nodes(tile: Tile, is_leaf: set[Tile]) -> list[Tile]:
    """The tiles that a tile is computed from, and itself, each once, operands first.

    Tiles in `is_leaf` are not looked into.
    """
    order: list[Tile] = []
    seen: set[Tile] = set()
    # an expression may be thousands of terms deep: no recursion; True comes after the operands
    waiting = [(tile, False)]
    while waiting:
        at, ready = waiting.pop()
        if ready:
            order.append(at)
        elif at not in seen:
            seen.add(at)
            waiting.append((at, True))
            if at.expression is not None and at not in is_leaf:
                operands = [o for o in at.expression.operands if isinstance(o, Tile)]
                waiting += [(operand, False) for operand in reversed(operands)]
    return order
