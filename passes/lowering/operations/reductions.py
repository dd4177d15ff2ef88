"""Tiles that lose a dimension, and tiles that gain one."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.dialects.frag.reduction import reduced_layout
from fragir.dialects.frag.types import tile_of
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.reduction import Reduction


@LOWERINGS.attach(frag.ReduceOp)
def reduce(lanes: Lanes, op: frag.ReduceOp) -> None:
    values = Reduction(lanes, op).run()
    if not isinstance(op.result.type, frag.TileType):
        lanes.bind_scalar(op.result, values[0])
        return
    tile = tile_of(op.source)
    layout = reduced_layout(tile.layout, tile.shape, op.along)
    found = op.result.type.with_layout(layout)
    lanes.bind(op.result, lanes.convert(found, op.result.type, values))


@LOWERINGS.attach(frag.BroadcastOp)
def broadcast(lanes: Lanes, op: frag.BroadcastOp) -> None:
    """Every element is one that the lane has already, in another register or the same one."""
    source, result = tile_of(op.source), op.result.type
    layout = reduced_layout(result.layout, result.shape, op.dim)
    wanted = source.with_layout(layout)
    elements = lanes.convert(source, wanted, lanes.elements(op.source))
    held = dict(zip(lanes.points_of(wanted), elements, strict=True))
    places = (point[: op.dim] + point[op.dim + 1 :] for point in lanes.points(op.result))
    lanes.bind(op.result, [held[place] for place in places])
