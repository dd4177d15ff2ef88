"""Products of tiles (`fragir.passes.lowering.multiply`)."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering import multiply
from fragir.passes.lowering.lane_builder import Lanes


def mma(lanes: Lanes, op: frag.MmaOp) -> None:
    state = lanes.state
    a, b, c, *scales = (state.tiles[operand] for operand in op.operands)
    state.tiles[op.d] = multiply.mma(state.ar, op, a, b, c, None, [x for (x,) in scales])
