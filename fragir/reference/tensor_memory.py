"""The meaning of frag.tcgen05_mma and frag.tcgen05_load: sums in tensor memory."""

from __future__ import annotations

import numpy as np

from fragir.dialects import frag
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import INTEGERS
from fragir.reference.run import Run
from fragir.reference.tensor_cores import chain_in_tensor_memory, dot


def mma(run: Run, op: frag.TensorMmaOp) -> None:
    """d = a b + d; without what was there where its condition does not hold."""
    a, b, memory = run[op.a], run[op.b], run.memory(op.d)
    c = memory.content
    if op.later is not None and not run.number(op.later):
        c = exactly(np.zeros_like(c.value))
    a = a if op.a_transposed is None else _turned(a)
    b = b if op.b_transposed is None else _turned(b)
    types = op.elements()
    ways = () if types[2] in INTEGERS else (chain_in_tensor_memory(types[0]),)
    memory.write(dot(a, b, c, types, ways, types[2]))


def _turned(x: Bounded) -> Bounded:
    return Bounded(x.value.T, x.bound.T)


def load(run: Run, op: frag.TensorLoadOp) -> None:
    x, columns = run[op.memory], slice(op.first, op.first + op.tile.type.shape[1])
    run[op.tile] = Bounded(x.value[:, columns], x.bound[:, columns])
