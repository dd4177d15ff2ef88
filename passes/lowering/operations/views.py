"""Views of global memory with other sizes, strides and beginnings."""

from __future__ import annotations

from math import gcd

from xdsl.dialects import memref

from fragir.dialects.narrow import memref_type
from fragir.dialects.slices import kept_dims, mixed
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Value
from fragir.passes.lowering.distances import Stride, times
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.strides import divisor


def subview(lanes: Lanes, op: memref.SubviewOp) -> None:
    """A part of memory: a pointer to its first element, its sizes, strides times its steps."""
    memory, values = lanes.memory(op.source), lanes.state.values
    offsets, sizes, steps = (
        [entry if isinstance(entry, int) else values[entry] for entry in mixed(static, given)]
        for static, given in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    )
    declared = mixed(op.static_sizes, op.sizes)
    kept = kept_dims(declared, memref_type(op.result.type).get_shape(), op.name)
    begun = _moved(lanes, memory, list(zip(offsets, memory.strides, strict=True)))
    strides = [times(x, y) for x, y in zip(memory.strides, steps, strict=True)]
    lanes.state.memories[op.result] = begun._replace(
        shape=tuple(sizes[dim] for dim in kept), strides=tuple(strides[dim] for dim in kept)
    )


def reinterpret(lanes: Lanes, op: memref.ReinterpretCastOp) -> None:
    """The same memory with sizes and strides of its own, from an element on."""
    memory, values = lanes.memory(op.source), lanes.state.values
    offsets, sizes, strides = (
        tuple(entry if isinstance(entry, int) else values[entry] for entry in mixed(static, given))
        for static, given in (
            (op.static_offsets, op.offsets),
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        )
    )
    begun = _moved(lanes, memory, [(offset, 1) for offset in offsets])
    lanes.state.memories[op.result] = begun._replace(shape=sizes, strides=strides)


def cast(lanes: Lanes, op: memref.CastOp) -> None:
    """The same memory; sizes and strides that the new type states are known from here on."""
    memory, type_ = lanes.memory(op.source), memref_type(op.dest.type)
    shape = type_.get_shape()
    if len(shape) != len(memory.shape):
        raise FragirError(f"{op.name} of {op.source.type} to {type_} changes the rank")
    known = [n if n >= 0 else old for n, old in zip(shape, memory.shape, strict=True)]
    lanes.state.memories[op.dest] = memory._replace(shape=tuple(known))


def _moved(lanes: Lanes, memory: LaneMemory, steps: list[tuple[Value, Stride]]) -> LaneMemory:
    """Memory that begins later, by steps of some strides, in elements."""
    ar = lanes.state.ar
    if memory.layout is not None or memory.bits < 8:
        what = "shared memory" if memory.layout is not None else "elements of less than a byte"
        raise FragirError(f"no part of {what} is taken as a view", hint="load a tile of it")
    pointer, aligned, more = memory.pointer, memory.aligned, 0
    for index, stride in steps:
        pointer, known = ar.offset(pointer, index, memory.size, stride)
        more += known
        aligned = gcd(aligned, ar.divisor(index) * divisor(ar, stride) * memory.size)
    return memory._replace(pointer=ar.moved(pointer, more), aligned=aligned)
