"""Copies into shared memory, and waits for them."""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.passes.lowering import copies
from fragir.passes.lowering.lane_builder import Lanes


def copy(lanes: Lanes, op: frag.CopyOp) -> None:
    state = lanes.state
    if op.tma is not None:
        from fragir.passes.lowering import tensor_copies  # few programs need it

        tensor_copies.copy(lanes, op)
        return
    copies.copy(
        state.ar,
        state.hardware,
        state.memories[op.source],
        state.indices(op.all_source_indices()),
        state.memories[op.target],
        state.indices(op.all_target_indices()),
        masked=op.masked is not None,
        is_async=op.is_async is not None,
        target_machine=state.target,
    )


def commit(lanes: Lanes, op: frag.CommitOp) -> None:
    if copies.has_cp_async(lanes.target):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.commit_group"))


def wait(lanes: Lanes, op: frag.WaitOp) -> None:
    if copies.has_cp_async(lanes.target):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.wait_group", op.pending.value.data))
