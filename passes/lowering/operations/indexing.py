"""Tiles of places."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering.lane_builder import Lanes


@LOWERINGS.attach(frag.IotaOp)
def iota(lanes: Lanes, op: frag.IotaOp) -> None:
    lanes.bind(op.tile, lanes.places(op.tile.type, op.along))
