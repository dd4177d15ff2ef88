"""What products under way begin with: registers of their own, set or not."""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.state import fragments_of


def undefined(lanes: Lanes, op: frag.UndefinedOp) -> None:
    tile = frag.tile_of(op.tile)
    type_ = ptx.vector_type(tile.element_type, tile.chunk)
    lanes.state.tiles[op.tile] = [
        lanes.insert(ptx.UndefinedOp(type_)).value for _ in range(fragments_of(tile))
    ]


def in_flight(lanes: Lanes, op: frag.InFlightOp) -> None:
    fragments = lanes.state.tiles[op.tile]
    lanes.state.tiles[op.result] = [lanes.insert(ptx.CopyOp(x)).result for x in fragments]
