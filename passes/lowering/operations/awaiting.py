"""Waiting for what is under way, by what it is."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.operations.rings import await_slot


@LOWERINGS.attach(frag.AwaitOp)
def await_(lanes: Lanes, op: frag.AwaitOp) -> None:
    await_slot(lanes, op)
