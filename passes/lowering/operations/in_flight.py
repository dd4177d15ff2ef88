"""What is under way: what products begin with, and waiting."""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.state import fragments_of

# --- products under way ---------------------------------------------------------------------------


def undefined(lanes: Lanes, op: frag.UndefinedOp) -> None:
    tile = frag.tile_of(op.tile)
    type_ = ptx.vector_type(tile.element_type, tile.chunk)
    lanes.state.tiles[op.tile] = [
        lanes.insert(ptx.UndefinedOp(type_)).value for _ in range(fragments_of(tile))
    ]


def in_flight(lanes: Lanes, op: frag.InFlightOp) -> None:
    fragments = lanes.state.tiles[op.tile]
    lanes.state.tiles[op.result] = [lanes.insert(ptx.CopyOp(x)).result for x in fragments]


# --- waiting --------------------------------------------------------------------------------------


def await_(lanes: Lanes, op: frag.AwaitOp) -> None:
    if frag.held_tile(op.source.type) is not None:
        from fragir.passes.lowering.in_flight import wait_for_tile

        wait_for_tile(lanes, op)
    else:
        from fragir.passes.lowering.operations.rings import await_slot

        await_slot(lanes, op)
