"""Waiting for what is under way, by what it is."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes


def await_(lanes: Lanes, op: frag.AwaitOp) -> None:
    if frag.held_tile(op.source.type) is not None:
        from fragir.passes.lowering.in_flight import wait_for_tile

        wait_for_tile(lanes, op)
    else:
        from fragir.passes.lowering.operations.rings import await_slot

        await_slot(lanes, op)
