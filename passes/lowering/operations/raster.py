"""The size of the grid."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes


def grid_size(lanes: Lanes, op: frag.GridSizeOp) -> None:
    state = lanes.state
    register = f"nctaid.{op.dimension.data.value}"
    state.values[op.result] = state.hardware.special(register, op.result.name_hint or "blocks")
