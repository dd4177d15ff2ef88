"""The meaning of memref and tensor operations.

Buffers, whole tensors, their parts and packed forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import func, memref, tensor
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from fragir.dialects.linalg.destinations import homes_of
from fragir.dialects.memory_types import kept_dims, mixed_numbers
from fragir.dialects.shorthands import memref_type
from fragir.dialects.tensors.packing import (
    GenerateOp,
    Packing,
    PacksInTiles,
    TensorReshapeOp,
    UnpacksTiles,
)
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import Array, type_name
from fragir.reference.memory import BoundedMemory, Where, unwritten_memory
from fragir.reference.run import Run

# -- slices ----------------------------------------------------------------------------------------
# Places of parts that are said by offsets, sizes and strides.


def part_of(
    run: Run,
    op: memref.SubviewOp | tensor.ExtractSliceOp | tensor.InsertSliceOp,
    shape: Sequence[int],
) -> Where:
    """Where the elements of a part lie, whose type has a shape: an index for each dimension that
    the type leaves out. FragirError where some lie outside.
    """
    declared = mixed_numbers(op.static_sizes, op.sizes)
    kept = kept_dims(declared, shape, op.name)
    offsets = run.numbers(mixed_numbers(op.static_offsets, op.offsets))
    sizes, strides = (
        run.numbers(declared),
        run.numbers(mixed_numbers(op.static_strides, op.strides)),
    )
    whole = _shape(run, op.dest if isinstance(op, tensor.InsertSliceOp) else op.source)
    where: list[int | slice] = []
    for dim, (offset, size, stride, extent) in enumerate(
        zip(offsets, sizes, strides, whole, strict=True)
    ):
        last = offset + (size - 1) * stride
        if size < 0 or (size and not (0 <= offset < extent and 0 <= last < extent)):
            raise FragirError(
                f"{op.name} takes {size} elements from {offset} by {stride} of {extent}"
            )
        places = slice(offset, last + 1, max(1, stride)) if size else slice(0, 0)
        where.append(places if dim in kept else offset)
    return tuple(where)


def _shape(run: Run, value: SSAValue) -> tuple[int, ...]:
    return run[value].value.shape


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
    run[op.memref] = unwritten_memory(shape, type_name(type_))


def empty(run: Run, op: tensor.EmptyOp) -> None:
    type_ = op.tensor.type
    assert isinstance(type_, TensorType)
    shape = run.shape(type_, op.dynamic_sizes)
    run[op.tensor] = unwritten_memory(shape, type_name(type_)).content


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


def cast(run: Run, op: memref.CastOp | tensor.CastOp) -> None:
    run.values[op.results[0]] = run.values[op.operands[0]]


def nothing(run: Run, op: memref.DeallocOp) -> None:
    """Memory that is given back is not looked at."""


# -- tensors ---------------------------------------------------------------------------------------
# The meaning of operations on whole tensors: their parts, other shapes, what they are made of.


def extract_slice(run: Run, op: tensor.ExtractSliceOp) -> None:
    x, where = run[op.source], part_of(run, op, _shape_of_type(op.result.type))
    run[op.result] = Bounded(x.value[where], x.bound[where])


def insert_slice(run: Run, op: tensor.InsertSliceOp) -> None:
    whole, where = _memory(run, op.dest), part_of(run, op, _shape_of_type(op.source.type))
    part = run[op.source]
    held = whole.value[where].shape
    if held != part.value.shape:
        raise FragirError(f"{op.name} puts {part.value.shape} into a part of {held}")
    whole.value[where], whole.bound[where] = part.value, part.bound
    run[op.result] = whole.content


def collapse_shape(run: Run, op: tensor.CollapseShapeOp) -> None:
    groups = [[index.value.data for index in group] for group in op.reassociation]
    shape = run[op.src].value.shape
    run[op.result] = _reshape(run, op.src, [prod(shape[d] for d in group) for group in groups])


def expand_shape(run: Run, op: tensor.ExpandShapeOp) -> None:
    sizes = run.numbers(mixed_numbers(op.static_output_shape, op.dynamic_output_shape))
    run[op.result] = _reshape(run, op.src, sizes)


def reshape(run: Run, op: TensorReshapeOp) -> None:
    shape = [int(size) for size in run[op.shape].value]
    run[op.result] = _reshape(run, op.source, shape)


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
    elements, shape = [run[x] for x in op.elements], _shape_of_type(op.result.type)
    values, bounds = ([getattr(x, name) for x in elements] for name in ("value", "bound"))
    run[op.result] = Bounded(np.reshape(values, shape), np.reshape(bounds, shape))


def concat(run: Run, op: tensor.ConcatOp) -> None:
    parts, dim = [run[x] for x in op.inputs], op.dim.value.data
    values, bounds = ([getattr(x, name) for x in parts] for name in ("value", "bound"))
    run[op.result] = Bounded(np.concatenate(values, dim), np.concatenate(bounds, dim))


def pad(run: Run, op: tensor.PadOp) -> None:
    """What is around a tensor is what the region gives at its place."""
    x = run[op.source]
    low = run.numbers(mixed_numbers(op.static_low, op.low))
    high = run.numbers(mixed_numbers(op.static_high, op.high))
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


def _reshape(run: Run, value: SSAValue, shape: Sequence[int]) -> Bounded:
    memory = _memory(run, value).reshaped(shape)
    return Bounded(memory.value, memory.bound)


def _shape_of_type(type_: Attribute) -> tuple[int, ...]:
    assert isinstance(type_, TensorType)
    return type_.get_shape()


# -- packing ---------------------------------------------------------------------------------------
# The meaning of tensors in tiles, and of such as a region gives.


def generate(run: Run, op: GenerateOp) -> None:
    assert isinstance(op.result.type, TensorType)
    shape = run.shape(op.result.type, op.sizes)
    places = [Bounded(at, np.zeros(at.shape)) for at in np.ogrid[tuple(map(slice, shape))]]
    (found,) = run.region(op.body.block, places, shape)
    run[op.result] = Bounded(found.value.copy(), found.bound.copy())


def pack(run: Run, op: PacksInTiles) -> None:
    """Padded to whole tiles, split, and turned."""
    x = run[op.source]
    more = [(0, -size % (op.tile_of(dim) or 1)) for dim, size in enumerate(x.value.shape)]
    value, bound = x.value, x.bound
    if any(behind for _, behind in more):
        if op.padding_value is None:
            raise FragirError(f"{op.name}: the last tiles are not full, and nothing pads them")
        padding = run[op.padding_value]
        value = np.pad(value, more, constant_values=padding.value.item())
        bound = np.pad(bound, more, constant_values=padding.bound.item())
    _give(run, op, Bounded(_tile(op, value), _tile(op, bound)))


def unpack(run: Run, op: UnpacksTiles) -> None:
    x, shape = run[op.source], run[op.dest].value.shape
    _give(run, op, Bounded(_tile_places(op, x.value, shape), _tile_places(op, x.bound, shape)))


def _give(run: Run, op: Packing, found: Bounded) -> None:
    """To the result, or the memory that is written."""
    if op.result:
        run[op.result[0]] = found
        return
    home = run.memory(op.into)
    if home.value.shape != found.value.shape:
        shapes = ["x".join(map(str, x.value.shape)) for x in (found, home)]
        raise FragirError(f"{op.name} gives {shapes[0]}, its memory is {shapes[1]}")
    home.write(found)


def _tile(op: Packing, x: Array) -> Array:
    counts = [size // (op.tile_of(dim) or 1) for dim, size in enumerate(x.shape)]
    split = [n for dim, count in enumerate(counts) for n in (count, op.tile_of(dim) or 1)]
    order = [*(2 * dim for dim in op.order), *(2 * dim + 1 for dim in op.positions)]
    rest = [2 * dim + 1 for dim in range(x.ndim) if op.tile_of(dim) is None]
    return x.reshape(split).transpose([*order, *rest]).reshape([*(split[at] for at in order)])


def _tile_places(op: Packing, x: Array, shape: tuple[int, ...]) -> Array:
    """Places of all elements in the tiles."""
    places = np.ogrid[tuple(map(slice, shape))]
    outer = [places[dim] // (op.tile_of(dim) or 1) for dim in op.order]
    inner = [places[dim] % (op.tile_of(dim) or 1) for dim in op.positions]
    return x[tuple(np.broadcast_arrays(*outer, *inner))]
