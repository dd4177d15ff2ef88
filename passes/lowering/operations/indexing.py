"""Tiles of places."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes


def iota(lanes: Lanes, op: frag.IotaOp) -> None:
    lanes.bind(op.tile, lanes.places(op.tile.type, op.along))
