"""Products of tiles, dense, sparse and of warpgroups (`fragir.passes.lowering.multiply`)."""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.passes.lowering import multiply
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.state import fragments_of


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
        from fragir.passes.lowering.multiply import pending_behind  # few programs need it

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


# -- in flight -------------------------------------------------------------------------------------
# What is under way: what products begin with, and waiting.

# --- products under way ---------------------------------------------------------------------------


def undefined(lanes: Lanes, op: frag.UndefinedOp) -> None:
    tile = frag.tile_of(op.tile)
    type_ = ptx.vector_type(tile.element_type, tile.chunk)
    lanes.state.tiles[op.tile] = [
        lanes.insert(ptx.UndefinedOp(type_)).value for _ in range(fragments_of(tile))
    ]


def in_flight(lanes: Lanes, op: frag.InFlightOp) -> None:
    fragments = lanes.state.tiles[op.tile]
    lanes.state.tiles[op.result] = [lanes.insert(ptx.CopyOp(x)).result for x in fragments]


# --- waiting --------------------------------------------------------------------------------------


def await_(lanes: Lanes, op: frag.AwaitOp) -> None:
    if frag.held_tile(op.source.type) is not None:
        from fragir.passes.lowering.multiply import wait_for_tile

        wait_for_tile(lanes, op)
    else:
        from fragir.passes.lowering.operations.rings import await_slot

        await_slot(lanes, op)
