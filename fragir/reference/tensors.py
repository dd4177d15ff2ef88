"""The meaning of operations on whole tensors: their parts, other shapes, what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from fragir.dialects.slices import mixed
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.element_types import type_name
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run
from fragir.reference.slices import part_of


def extract_slice(run: Run, op: tensor.ExtractSliceOp) -> None:
    x, where = run[op.source], part_of(run, op, _shape(op.result.type))
    run[op.result] = Bounded(x.value[where], x.bound[where])


def insert_slice(run: Run, op: tensor.InsertSliceOp) -> None:
    whole, where = _memory(run, op.dest), part_of(run, op, _shape(op.source.type))
    part = run[op.source]
    held = whole.value[where].shape
    if held != part.value.shape:
        raise FragirError(f"{op.name} puts {part.value.shape} into a part of {held}")
    whole.value[where], whole.bound[where] = part.value, part.bound
    run[op.result] = whole.content


def collapse_shape(run: Run, op: tensor.CollapseShapeOp) -> None:
    groups = [[index.value.data for index in group] for group in op.reassociation]
    shape = run[op.src].value.shape
    run[op.result] = _reshaped(run, op.src, [prod(shape[d] for d in group) for group in groups])


def expand_shape(run: Run, op: tensor.ExpandShapeOp) -> None:
    sizes = run.numbers(mixed(op.static_output_shape, op.dynamic_output_shape))
    run[op.result] = _reshaped(run, op.src, sizes)


def extract(run: Run, op: tensor.ExtractOp) -> None:
    memory = _memory(run, op.tensor)
    if any(run[index].value.ndim for index in op.indices):  # for all elements of a region at once
        run[op.result] = memory.gathered([run[index] for index in op.indices])
    else:
        run[op.result] = memory.at(run.numbers(op.indices)).content


def insert(run: Run, op: tensor.InsertOp) -> None:
    memory, x = _memory(run, op.dest), run[op.scalar]
    where = tuple(run.numbers(op.indices))
    memory.at(where)  # is there such an element?
    memory.value[where], memory.bound[where] = x.value, x.bound
    run[op.result] = memory.content


def splat(run: Run, op: tensor.SplatOp) -> None:
    x = run[op.input]
    assert isinstance(op.result.type, TensorType)
    shape = run.shape(op.result.type, op.dynamicSizes)
    run[op.result] = Bounded(np.full(shape, x.value), np.full(shape, x.bound))


def from_elements(run: Run, op: tensor.FromElementsOp) -> None:
    elements, shape = [run[x] for x in op.elements], _shape(op.result.type)
    values, bounds = ([getattr(x, name) for x in elements] for name in ("value", "bound"))
    run[op.result] = Bounded(np.reshape(values, shape), np.reshape(bounds, shape))


def concat(run: Run, op: tensor.ConcatOp) -> None:
    parts, dim = [run[x] for x in op.inputs], op.dim.value.data
    values, bounds = ([getattr(x, name) for x in parts] for name in ("value", "bound"))
    run[op.result] = Bounded(np.concatenate(values, dim), np.concatenate(bounds, dim))


def pad(run: Run, op: tensor.PadOp) -> None:
    """What is around a tensor is what the region gives at its place."""
    x = run[op.source]
    low = run.numbers(mixed(op.static_low, op.low))
    high = run.numbers(mixed(op.static_high, op.high))
    if min((*low, *high), default=0) < 0:
        raise FragirError(f"{op.name} takes {min(*low, *high)} elements more; it adds them only")
    shape = [a + n + b for a, n, b in zip(low, x.value.shape, high, strict=True)]
    places = [Bounded(at, np.zeros(at.shape)) for at in np.ogrid[tuple(map(slice, shape))]]
    (around,) = run.region(op.region.block, places, shape)
    value, bound = around.value.copy(), around.bound.copy()
    inside = tuple(slice(a, a + n) for a, n in zip(low, x.value.shape, strict=True))
    value[inside], bound[inside] = x.value, x.bound
    run[op.result] = Bounded(value, bound)


def _memory(run: Run, value: SSAValue) -> BoundedMemory:
    """A tensor as memory that may be written: a copy."""
    x = run[value]
    return BoundedMemory(x.value.copy(), x.bound.copy(), type_name(value.type))


def _reshaped(run: Run, value: SSAValue, shape: Sequence[int]) -> Bounded:
    memory = _memory(run, value).reshaped(shape)
    return Bounded(memory.value, memory.bound)


def _shape(type_: Attribute) -> tuple[int, ...]:
    assert isinstance(type_, TensorType)
    return type_.get_shape()
