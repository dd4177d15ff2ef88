"""Products of tiles, dense, sparse and of warpgroups (`fragir.passes.lowering.multiply`)."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering import multiply
from fragir.passes.lowering.lane_builder import Lanes


def mma(lanes: Lanes, op: frag.MmaOp) -> None:
    state = lanes.state
    a, b, c, *scales = (state.tiles[operand] for operand in op.operands)
    state.tiles[op.d] = multiply.mma(state.ar, op, a, b, c, None, [x for (x,) in scales])


def mma_sparse(lanes: Lanes, op: frag.MmaSparseOp) -> None:
    state = lanes.state
    a, b, c, e, *scales = (state.tiles[operand] for operand in op.operands)
    state.tiles[op.d] = multiply.mma(state.ar, op, a, b, c, e, [x for (x,) in scales])


def wgmma(lanes: Lanes, op: frag.WgmmaOp) -> None:
    state = lanes.state
    if op.asynchronous is not None:
        from fragir.passes.lowering.in_flight import pending_behind  # few programs need it

        pending_behind(state, op)  # loops ask, once there is a product
    a = state.tiles.get(op.a)
    state.tiles[op.d] = multiply.wgmma(
        state.ar,
        state.hardware,
        op,
        state.memories[op.a] if a is None else a,
        state.memories[op.b],
        state.tiles[op.c],
        () if op.metadata is None else state.tiles[op.metadata],
        None if op.scale_d is None else state.scalar(op.scale_d),
    )
