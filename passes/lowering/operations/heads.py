"""The first rows of a memory: the same pointer and strides, another size."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes


def head(lanes: Lanes, op: frag.HeadOp) -> None:
    state, memory = lanes.state, lanes.memory(op.memory)
    state.memories[op.result] = memory._replace(shape=(state.values[op.end], *memory.shape[1:]))
