"""Writes inferred layouts into a function: types of tiles, conversions, what is made again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import DiagnosticException, PassFailedException

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.regrouped import STAGED, RenamingOp
from fragir.dialects.limits import LANE_REGISTERS
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.mlir.diagnostics import LocatedFailure, fail, trial
from fragir.passes.placing.placement import placed_type, set_layout, tile_text
from fragir.passes.placing.relations import Demand, Plain

if TYPE_CHECKING:
    from fragir.passes.placing.inference import Chosen, Inference
    from fragir.passes.placing.memories import SharedMatrix
    from fragir.passes.placing.tables import Move


def write(inference: Inference) -> None:
    """Makes what is to be had in other layouts, then places the tiles."""
    from fragir.passes.placing.sites import MemorySite

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
    from fragir.dialects.frag.row_orders import rows_as_they_are, type_in_row_order

    if order == rows_as_they_are(matrix.rows):
        return
    assert isinstance(order, frag.ExplicitLayoutAttr)
    for value in matrix.values:
        Rewriter.replace_value_with_new_type(
            value, type_in_row_order(memref_type(value.type), order)
        )


def _insert(chosen: Chosen, move: Move) -> None:
    """Makes a value in another layout and hands it to the operands that want it."""
    layout, value = move.target.layout, move.value
    if chosen.tables.is_made_again(move):
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


# -- staging ---------------------------------------------------------------------------------------
# The last resort: other shapes of tiles through shared memory, where registers cannot hold them.
#
# What only renames registers (`frag.reshape`, `frag.slice`, ...) may take so many of a lane, or ask
# for layouts that do not go together. Then some of these operations are `staged`: their tiles have
# any layouts, and their elements go through shared memory. A remark says so.


class PlacedTiles(NamedTuple):
    """The layouts of the tiles that some threads hold."""

    plain: Plain
    inference: Inference | None

    def demands(self) -> Iterator[tuple[SSAValue, frag.LayoutAttr, Demand | None]]:
        """Every tile with its layout, and who wants that."""
        for demand, values in self.plain.placed:
            for value in values:
                yield value, demand.layout, demand
        for chosen in () if self.inference is None else self.inference.chosen:
            for site, candidate in chosen.layouts.items():
                for point in site.points:
                    if isinstance(point, SSAValue) and frag.held_tile(point.type) is not None:
                        yield point, candidate.layout, candidate.demand


Attempt = Callable[[], PlacedTiles]
"""Places all tiles, as the operations are now. Raises where that cannot be."""
_REFUSED = (PassFailedException, DiagnosticException, FragirError)


def place_with_staging(
    operations: Sequence[Operation], attempt: Attempt
) -> tuple[PlacedTiles, list[str]]:
    """What an attempt finds with as few staged operations as it takes, and remarks on those."""
    renaming = [op for op in operations if isinstance(op, RenamingOp) and not op.staged]
    if not renaming:
        return attempt(), []
    staged: list[RenamingOp] = []
    while True:
        found: PlacedTiles | None = None
        refused_at: Operation | None = None
        try:
            with trial():
                found = attempt()
        except _REFUSED as error:
            refused_at = error.op if isinstance(error, LocatedFailure) else None
        if found is not None:
            culprits = _culprits(found)
        elif isinstance(refused_at, RenamingOp) and not refused_at.staged:
            culprits = [refused_at]
        else:
            culprits = renaming
        culprits = [op for op in culprits if not op.staged]
        if found is not None and not culprits:
            return found, [_remark(op) for op in staged]
        if not culprits:
            break
        for op in culprits:
            op.attributes[STAGED] = UnitAttr()
        staged += culprits
    for op in staged:  # nothing is won
        del op.attributes[STAGED]
    return attempt(), []


def _culprits(found: PlacedTiles) -> list[RenamingOp]:
    """The operations for which lanes hold too much of a tile: who asks for that, or else all that
    have to do with it."""
    asking: dict[RenamingOp, None] = {}
    touching: dict[RenamingOp, None] = {}
    for value, layout, demand in found.demands():
        if registers(value, layout) <= LANE_REGISTERS:
            continue
        if demand is not None and isinstance(demand.op, RenamingOp):
            asking[demand.op] = None
        for op in _beside(value):
            touching[op] = None
    return list(asking or touching)


def _beside(value: SSAValue) -> Iterable[RenamingOp]:
    ops = [use.operation for use in value.uses]
    if isinstance(value.owner, Operation):
        ops.append(value.owner)
    return (op for op in ops if isinstance(op, RenamingOp))


def registers(value: SSAValue, layout: frag.LayoutAttr) -> int:
    """How many 32-bit registers of a lane a tile takes in a layout."""
    tile = frag.tile_of(value)
    elements = layout.layout(*tile.shape).sizes.get("element", 1)
    return -(-elements * element_bits(tile.element_type) // 32)


def _remark(op: RenamingOp) -> str:
    tiles = [frag.tile_of(value) for value in (*op.operands, *op.results)]
    size = max(prod(t.shape) * max(8, element_bits(t.element_type)) // 8 for t in tiles)
    return (
        f"{op.name} of {tiles[0]} goes through shared memory, {size} bytes and a barrier: lanes "
        "would have to hold too much of it"
    )


# -- asserted --------------------------------------------------------------------------------------
# `frag.convert ... assert_free`: conversions that must take no instruction.


def check_free(op: frag.ConvertOp, target: str, inference: Inference | None) -> None:
    """Fails where a conversion is not free, with what it costs and which memory might help."""
    from fragir.isa.features import features_of
    from fragir.passes.placing.prices import Prices

    source, wanted = frag.tile_of(op.source), frag.tile_of(op.result)
    try:
        have, want = source.resolve(), wanted.resolve()
    except FragirError as error:
        fail(op, f"frag.convert: {error}")
    prices = Prices(features_of(target))
    prices.settle(have, want, source.element_type)
    price = prices.price(have, want, source.element_type)
    if price.cost:
        fail(
            op,
            f"frag.convert is asserted to be free, but takes {price.words} a thread: "
            f"{price.cost:g} half cycles a warp, from {source.layout} to {wanted.layout}"
            f"{_kept_text(inference)}",
        )


def _kept_text(inference: Inference | None) -> str:
    """Memory that might lie otherwise for it, and why it does not."""
    asked = [] if inference is None else [a for c in inference.chosen for a in c.component.rows]
    kept = {site.matrix.root: site.matrix.fixed_by for site, *_ in asked if site.matrix.fixed_by}
    told = (f"the rows of {tile_text(root)} stay in order, as {why}" for root, why in kept.items())
    return "".join(f"; {one}" for one in told)
