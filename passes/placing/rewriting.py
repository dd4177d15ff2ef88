"""Writes inferred layouts into a function: types of tiles, conversions, what is made again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.narrow import memref_type
from fragir.passes.placing.inference import Chosen, Inference
from fragir.passes.placing.placement import placed_type, set_layout
from fragir.passes.placing.sites import MemorySite
from fragir.passes.placing.tables import Move

if TYPE_CHECKING:
    from fragir.passes.placing.memories import SharedMatrix


def write(inference: Inference) -> None:
    """Makes what is to be had in other layouts, then places the tiles."""
    for chosen in inference.chosen:
        for move in chosen.moves:
            _insert(chosen, move)
    for chosen in inference.chosen:
        for site, candidate in chosen.layouts.items():
            if isinstance(site, MemorySite):
                _lay(site.matrix, candidate.layout)
                continue
            for point in site.points:
                if isinstance(point, SSAValue):
                    set_layout(point, candidate.layout)


def _lay(matrix: SharedMatrix, order: frag.LayoutAttr) -> None:
    """Lets the rows of memory lie in an order, in its type and in those of its views."""
    from fragir.dialects.frag.row_orders import rows_as_they_are, stored

    if order == rows_as_they_are(matrix.rows):
        return
    assert isinstance(order, frag.ExplicitLayoutAttr)
    for value in matrix.values:
        Rewriter.replace_value_with_new_type(value, stored(memref_type(value.type), order))


def _insert(chosen: Chosen, move: Move) -> None:
    """Makes a value in another layout and hands it to the operands that want it."""
    layout, value = move.target.layout, move.value
    if chosen.tables.made_again(move):
        made = _again(value, layout)
    else:
        tile = frag.tile_of(value)
        made = frag.ConvertOp(value, placed_type(value, tile, layout))
        made.location = move.edges[0].operand.op.location
        at = _behind(value) if move.at_value else InsertPoint.before(move.edges[0].operand.op)
        Rewriter.insert_op(made, at)
    result = made.results[0]
    result.name_hint = value.name_hint
    for edge in move.edges:
        edge.operand.op.operands[edge.operand.number] = result


def _behind(value: SSAValue) -> InsertPoint:
    """Right behind where a value is made, and waits there."""
    if isinstance(value, BlockArgument):
        return InsertPoint.at_start(value.owner)
    last = value.owner
    assert isinstance(last, Operation)
    # what is waited for or released there may be memory that the conversion can then have
    following = last.next_op
    while following is not None and following.name in ("frag.wait", "frag.release"):
        last, following = following, following.next_op
    return InsertPoint.after(last)


def _again(value: SSAValue, layout: frag.LayoutAttr) -> Operation:
    """The operation that makes a value, once more right behind it, in another layout.

    What it is made of is made again too.
    """
    assert isinstance(value, OpResult)
    op: Operation = value.owner
    other = op.clone()
    other.location = op.location
    tile = frag.tile_of(value)
    for index, operand in enumerate(op.operands):
        if isinstance(operand.type, frag.TileType):
            other.operands[index] = _again(operand, layout).results[0]
    Rewriter.insert_op(other, InsertPoint.after(op))
    Rewriter.replace_value_with_new_type(other.results[0], placed_type(value, tile, layout))
    return other
