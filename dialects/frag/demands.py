"""Layouts that products dictate: each operand's fragments, spread over warps or warpgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from fragir.dialects.frag.attributes import (
    DIMENSIONS,
    ExplicitLayoutAttr,
    MmaFragment,
    MmaLayoutAttr,
)
from fragir.dialects.frag.lane_selected import selected_tile
from fragir.dialects.frag.types import TileType
from fragir.dialects.interfaces import LayoutDemand, OperandAt, Tile, value_of
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.layout import Layout

Warps = tuple[int, int]


def fragments(
    operands: Iterable[tuple[Tile, str, str]], words: Iterable[str], warps: Warps
) -> Iterator[LayoutDemand]:
    """(tile, short name of the instruction, its operand) as demands; `words` name the tiles.

    Where one of them is placed with a dimension in another order, all that share it have to be.
    """
    operands = list(operands)
    orders = orders_of(value_of(tile) for tile, _, _ in operands)
    for (tile, name, operand), word in zip(operands, words, strict=True):
        own = tuple((d, order) for d, order in orders.items() if d in DIMENSIONS[operand])
        layout = MmaLayoutAttr(MmaFragment(name, operand, warps, own))
        yield LayoutDemand(tile, layout, f"operand {word}")


def orders_of(values: Iterable[SSAValue]) -> dict[str, Layout]:
    """The orders that placed operands have their dimensions in, sorted by name."""
    found: dict[str, Layout] = {}
    for value in values:
        placement = value.type.placement if isinstance(value.type, TileType) else None
        if isinstance(placement, MmaLayoutAttr):
            for name, order in placement.data.orders:
                found.setdefault(name, order)
    return dict(sorted(found.items()))


def check_in_order(values: Iterable[SSAValue], why: str) -> None:
    """FragirError where a placed operand has a dimension in another order, and `why`."""
    for name, order in orders_of(values).items():
        raise FragirError(
            f"{name} is in the order {order.axes[0]}, but {why}",
            hint=f"leave `{name} = ...` out of the layouts, and frag.convert what has it",
        )


def selected(instruction: Instruction, operand: str, value: Tile, warps: Warps) -> LayoutDemand:
    """The demand for a tile of metadata (e) or scales (sfa, sfb)."""
    tile = value_of(value).type
    assert isinstance(tile, TileType)
    layout = selected_tile(instruction, operand, (tile.rows, tile.cols), warps)
    word = "metadata" if operand == "e" else operand
    return LayoutDemand(value, ExplicitLayoutAttr(layout), f"operand {word}")


def scales(
    instruction: Instruction, op: Operation, values: Sequence[SSAValue], warps: Warps
) -> Iterator[LayoutDemand]:
    """The demands for the scales of A and B, an operation's last operands; none without scales."""
    first = len(op.operands) - len(values)
    for index, name in enumerate(("sfa", "sfb")[: len(values)], first):
        yield selected(instruction, name, OperandAt(op, index), warps)
