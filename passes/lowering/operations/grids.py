"""What blocks of a grid know of it and of each other: its size, places in clusters, who is last."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i32

from fragir.dialects import frag, ptx
from fragir.passes.lowering.engine import statement
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.memory import MemoryPlace, address
from fragir.passes.lowering.positions import NOWHERE

# --- the grid -------------------------------------------------------------------------------------


def grid_size(lanes: Lanes, op: frag.GridSizeOp) -> None:
    state = lanes.state
    register = f"nctaid.{op.dimension.data.value}"
    state.values[op.result] = state.hardware.special(register, op.result.name_hint or "blocks")


# --- clusters -------------------------------------------------------------------------------------


def rank(lanes: Lanes, op: frag.ClusterRankOp) -> None:
    state = lanes.state
    alone = state.cluster == (1, 1, 1)
    state.values[op.result] = 0 if alone else state.hardware.special("cluster_ctarank", "rank")


# --- blocks that have come ------------------------------------------------------------------------


def arrive(lanes: Lanes, op: frag.ArriveOp) -> None:
    state, ar = lanes.state, lanes.state.ar
    state.wait_for_all()
    memory, at = lanes.memory(op.memory), state.indices(op.all_indices())
    place = MemoryPlace((NOWHERE,) * len(at), tuple(at))
    pointer, offset = address(ar, memory, place, (0,) * len(at))
    where = f"[$1+{offset}]" if offset else "[$1]"
    one = ar.predicate(ar.compare("eq", state.hardware.thread, 0))
    assert one is not None
    zero = ar.pure(("i32", 0), (), lambda: arith.ConstantOp(IntegerAttr(0, i32)))
    words = f"atom.acq_rel.gpu.global.add.u32 $0, {where}, 1"
    count = ptx.InstructionOp(words, (pointer,), (i32,), before=(zero,), predicate=one)
    (before,) = ar.insert(count).results
    others = ar.value(ar.sub(state.values[op.parts], 1))
    (last,) = statement(state, "setp.eq.u32 $0, $1, $2", (before, others), (i1,)).results
    (mine,) = statement(state, "and.pred $0, $1, $2", (last, one), (i1,)).results
    words = f"st.relaxed.gpu.global.u32 {where.replace('$1', '$0')}, 0"
    statement(state, words, (pointer,), predicate=mine)
    lanes.bind_scalar(op.is_last, state.team.any_of(mine))
