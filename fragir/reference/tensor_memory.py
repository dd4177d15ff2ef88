"""The meaning of what multiplies in tensor memory, copies there and loads from there."""

from __future__ import annotations

import numpy as np

from fragir.dialects import frag
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import INTEGERS
from fragir.reference.products import in_rows, with_scales
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
    name, block = op.scaling()
    scales = None
    if name:
        of_a, of_b = (run[value] for value in op.scales)
        a, b, scales = with_scales(a, b, of_a, _turned(of_b), block)
    ways = () if types[2] in INTEGERS else (chain_in_tensor_memory(types[0], types[2], name),)
    memory.write(dot(a, b, c, types, ways, types[2], scales))


def copy(run: Run, op: frag.TensorCopyOp) -> None:
    """Scales by rows and blocks, from the order of chunks."""
    found, target = run[op.source], run.memory(op.target)
    rows, blocks = target.value.shape
    if op.transposed is not None:
        found = _turned(found)
    value, bound = (in_rows(part) for part in (found.value, found.bound))
    target.write(Bounded(value[:rows, :blocks], bound[:rows, :blocks]))


def _turned(x: Bounded) -> Bounded:
    return Bounded(x.value.T, x.bound.T)


def load(run: Run, op: frag.TensorLoadOp) -> None:
    x, columns = run[op.memory], slice(op.first, op.first + op.tile.type.shape[1])
    run[op.tile] = Bounded(x.value[:, columns], x.bound[:, columns])


def store(run: Run, op: frag.TensorStoreOp) -> None:
    """Some columns are those of a tile."""
    memory, tile = run.memory(op.memory), run[op.tile]
    value, bound = memory.content.value.copy(), memory.content.bound.copy()
    columns = slice(op.first, op.first + tile.value.shape[1])
    value[:, columns], bound[:, columns] = tile.value, tile.bound
    memory.write(Bounded(value, bound))
