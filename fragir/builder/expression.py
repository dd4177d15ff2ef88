"""The order in which expressions of tiles are computed once a tile is used."""

from __future__ import annotations

from fragir.builder.values import Tile


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
