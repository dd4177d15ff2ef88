"""Tiles that lose a dimension as a region says."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.combining import RegionCombining
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.operations.reductions import bind_reduced
from fragir.passes.lowering.reduction import Reduction


def reduce_by(lanes: Lanes, op: frag.ReduceByOp) -> None:
    combining = RegionCombining(lanes, op.body.block)
    found = Reduction(lanes, op.tiles, op.along, combining).run()
    for tile, result, values in zip(op.tiles, op.reduced, found, strict=True):
        bind_reduced(lanes, tile, op.along, result, values)
