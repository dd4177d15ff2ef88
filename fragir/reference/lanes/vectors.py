"""The meaning of xDSL's `vector` dialect in regions of lane-level code."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import vector

from fragir.passes.lowering.operations.scalars import position
from fragir.reference.bounded import Bounded
from fragir.reference.lanes.registers import repeat
from fragir.reference.lanes.threads import BlockThreads


def extract(threads: BlockThreads, op: vector.ExtractOp) -> None:
    x = threads[op.vector]
    number = position(op, x.value.shape[1])
    threads[op.result] = Bounded(x.value[:, number], x.bound[:, number])


def insert(threads: BlockThreads, op: vector.InsertOp) -> None:
    x, one = threads[op.dest], threads[op.source]
    value, bound = np.array(x.value), np.array(x.bound)
    number = position(op, value.shape[1])
    value[:, number], bound[:, number] = one.value, one.bound
    threads[op.result] = Bounded(value, bound)


def broadcast(threads: BlockThreads, op: vector.BroadcastOp) -> None:
    repeat(threads, op.source, op.vector)


def shuffle(threads: BlockThreads, op: vector.ShuffleOp) -> None:
    x, y, mask = threads[op.v1], threads[op.v2], list(op.mask.get_values())
    threads[op.result] = Bounded(
        np.concatenate([x.value, y.value], axis=1)[:, mask],
        np.concatenate([x.bound, y.bound], axis=1)[:, mask],
    )
