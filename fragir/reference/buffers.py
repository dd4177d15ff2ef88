"""The meaning of memref and tensor operations, and of what a function returns."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import func, memref, tensor
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import BlockArgument, SSAValue

from fragir.dialects.linalg.destinations import homes_of
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.reference.bounded import exactly
from fragir.reference.element_types import type_name
from fragir.reference.memory import unwritten
from fragir.reference.run import Run
from fragir.reference.slices import part_of


def dim(run: Run, op: memref.DimOp | tensor.DimOp) -> None:
    shape = run[op.source].value.shape
    index = run.number(op.index)
    if not 0 <= index < len(shape):
        raise FragirError(f"{op.name}: there is no dimension {index}")
    run[op.result] = exactly(np.int64(shape[index]))


def alloc(run: Run, op: memref.AllocOp | memref.AllocaOp) -> None:
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    shape = run.shape(type_, op.dynamic_sizes)
    run[op.memref] = unwritten(shape, type_name(type_))


def empty(run: Run, op: tensor.EmptyOp) -> None:
    type_ = op.tensor.type
    assert isinstance(type_, TensorType)
    shape = run.shape(type_, op.dynamic_sizes)
    run[op.tensor] = unwritten(shape, type_name(type_)).content


def expand(run: Run, op: memref.ExpandShapeOp) -> None:
    sizes = iter(run.numbers(op.output_shape))
    shape = [next(sizes) if s < 0 else s for s in op.static_output_shape.iter_values()]
    run[op.result] = run.memory(op.src).reshaped(shape)


def collapse(run: Run, op: memref.CollapseShapeOp) -> None:
    memory = run.memory(op.src)
    groups = [[index.value.data for index in group] for group in op.reassociation]
    shape = [prod(memory.value.shape[dim] for dim in group) for group in groups]
    run[op.result] = memory.reshaped(shape)


def subview(run: Run, op: memref.SubviewOp) -> None:
    shape = memref_type(op.result.type).get_shape()
    run[op.result] = run.memory(op.source).part(part_of(run, op, shape))


def load(run: Run, op: memref.LoadOp) -> None:
    memory = run.memory(op.memref)
    if any(run[index].value.ndim for index in op.indices):  # for all elements of a region at once
        run[op.res] = memory.gathered([run[index] for index in op.indices])
    else:
        run[op.res] = memory.at(run.numbers(op.indices)).content


def store(run: Run, op: memref.StoreOp) -> None:
    indices = run.numbers(op.indices)
    memory = run.memory(op.memref)
    memory.at(indices)
    x = run[op.value]
    memory.value[tuple(indices)], memory.bound[tuple(indices)] = x.value, x.bound


def copy(run: Run, op: memref.CopyOp) -> None:
    run.memory(op.destination).write(run[op.source])


def places_of(values: Sequence[SSAValue]) -> list[BlockArgument | None]:
    """For each value that is returned the argument that holds it; None of what needs one more."""
    return [
        (value if isinstance(value, BlockArgument) else None)
        if isinstance(value.type, MemRefType)
        else home
        for value, home in zip(values, homes_of(values), strict=True)
    ]


def returned(run: Run, op: func.ReturnOp) -> None:
    """A returned tensor is written to the argument it was made from (outs), else to a result."""
    results = iter(run.results)
    for value, argument in zip(op.arguments, places_of(op.arguments), strict=True):
        if isinstance(value.type, MemRefType) and argument is not None:
            continue  # memory is where it is
        home = next(results, None) if argument is None else run.homes[argument]
        if home is None:
            raise FragirError(
                "a returned tensor has no argument that it could be written to",
                hint="give one more array, for the result",
            )
        result = run[value]
        if result.value.shape != home.value.shape:
            shapes = ["x".join(map(str, s)) for s in (result.value.shape, home.value.shape)]
            raise FragirError(f"the result is {shapes[0]}, its memory {shapes[1]}")
        home.write(result)


def same(run: Run, op: memref.CastOp | tensor.CastOp) -> None:
    run.values[op.results[0]] = run.values[op.operands[0]]


def nothing(run: Run, op: memref.DeallocOp) -> None:
    """Memory that is given back is not looked at."""
