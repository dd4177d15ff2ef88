"""What is arranged for a function before it is lowered: its cluster, and waits for its copies."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fragir.dialects import frag
from fragir.dialects.frag.kernels import cluster_of
from fragir.dialects.interfaces import accesses_of
from fragir.dialects.ptx.tensor_maps import CLUSTER, WHOLE_CLUSTERS
from fragir.passes.lowering import bulk_groups
from fragir.passes.lowering.lane_builder import Lanes


def begin(lanes: Lanes, function: FuncOp) -> None:
    """Takes down the cluster of a function, and plans what waits for its copies by TMA."""
    state = lanes.state
    state.cluster = cluster_of(function)
    if state.cluster != (1, 1, 1):
        state.attributes[CLUSTER] = DenseArrayBase.from_list(i64, state.cluster)
        if all(_is_masked(op) for op in function.walk()):
            state.attributes[WHOLE_CLUSTERS] = UnitAttr()
    bulk_groups.plan(lanes, function)


def _is_masked(op: Operation) -> bool:
    """Whether an operation touches nothing outside of global memory wherever its block stands."""
    accesses = accesses_of(op)
    if accesses is None or "masked" in op.properties or "tma" in op.properties:
        return op.name not in ("frag.lanes", "frag.pointer")
    return all(frag.is_shared(memory.type) for memory in (*accesses.reads(), *accesses.writes()))
