"""The meaning of pointers in regions of lane-level code, and of what goes through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import NoneAttr
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.formats import INTEGERS, Array, type_name
from fragir.reference.indexed import add_floats, change_integers, write_one
from fragir.reference.lanes.registers import columns
from fragir.reference.lanes.threads import BlockThreads, Pointer, UncertainError
from fragir.reference.memory import BoundedMemory


def _flat_index(
    threads: BlockThreads, memory: BoundedMemory, indices: Sequence[SSAValue], in_order: bool
) -> Array:
    """The number of each thread's element in order of rows."""
    flat = np.zeros(threads.count, np.int64)
    for index, size in zip(indices, memory.value.shape, strict=True):
        at = threads.require_certain(index, "an index")
        outside = threads.active & ((at < 0) | (at >= size))
        if not in_order and outside.any():
            raise FragirError(f"index {at[outside][0]} lies outside of a dimension of {size}")
        flat = flat * size + at
    return flat


def pointer(threads: BlockThreads, op: frag.PointerOp) -> None:
    memory, type_ = threads.run.memory(op.memory), memref_type(op.memory.type)
    plain = isinstance(type_.layout, NoneAttr)
    space = type_.memory_space
    in_order = plain and (not isinstance(space, frag.SharedAttr) or space == frag.SharedAttr(0))
    zeros = np.zeros(threads.count, np.int64)
    try:
        flat, known = _flat_index(threads, memory, op.indices, in_order), True
    except (UncertainError, KeyError):  # an index of a region that is not run has no value
        if not threads.guesses:
            raise
        flat, known = zeros, False
    threads.pointers[op.pointer] = Pointer(memory, flat, zeros, in_order, known)


def shared(threads: BlockThreads, op: ptx.SharedOp) -> None:
    """Bytes of the block, of which nothing is known."""
    zeros = np.zeros(threads.count, np.int64)
    threads.pointers[op.pointer] = Pointer(None, zeros, zeros, False)


def mul_wide(threads: BlockThreads, op: ptx.MulWideOp) -> None:
    x, y = (threads.require_certain(factor, "a factor").astype(np.int64) for factor in op.operands)
    threads[op.result] = Bounded(x * y, np.zeros(x.shape))


def offset(threads: BlockThreads, op: ptx.OffsetOp | ptx.OffsetWideOp) -> None:
    at = threads.pointer(op.pointer)
    moved = threads.require_certain(op.index, "an offset") * op.scale.value.data
    if op.stride is not None:
        moved = moved * threads.require_certain(op.stride, "a stride")
    threads.pointers[op.result] = at._replace(moved=at.moved + moved)


def _places(
    threads: BlockThreads, op: Any, type_: Attribute
) -> tuple[BoundedMemory, Array, Array] | None:
    """The memory, the elements [threads, elements] and which threads access them.

    None where it is not known what memory it is, or it holds something else.
    """
    at = threads.pointer(op.pointer)
    memory, count = at.memory, ptx.length(type_)
    if memory is None or not at.known or memory.element != type_name(type_):
        return None
    size = ptx.bits(type_) // 8
    moved = at.moved + op.offset.value.data
    acts = np.array(threads.active)
    if op.predicate is not None:
        acts &= threads.require_certain(op.predicate, "a predicate").astype(bool)
    if ((moved % size != 0) & acts).any():
        return None
    if not at.in_order and (count > 1 or (moved[acts] != 0).any()):
        return None
    flat = (at.at + moved // size)[:, None] + np.arange(count)
    outside = acts[:, None] & ((flat < 0) | (flat >= memory.value.size))
    if outside.any():
        thread = int(np.argwhere(outside)[0][0])
        raise FragirError(
            f"thread {thread} accesses element {int(flat[outside][0])} of a memory of "
            f"{memory.value.size}"
        )
    return memory, np.where(acts[:, None], flat, 0), acts


def load(threads: BlockThreads, op: ptx.LoadOp) -> None:
    type_ = op.value.type
    found = _places(threads, op, type_)
    if found is None:
        threads.make_unknown(op)
        return
    memory, flat, acts = found
    if not memory.value.size:
        threads[op.value] = threads.anything(type_)
        return
    shape = threads.shape(type_)
    value = memory.value.reshape(-1)[flat].reshape(shape)
    bound = memory.bound.reshape(-1)[flat].reshape(shape)
    other = threads.anything(type_) if op.otherwise is None else threads[op.otherwise]
    threads[op.value] = threads.select(acts, Bounded(value, bound), other)


def store(threads: BlockThreads, op: ptx.StoreOp) -> None:
    found = _places(threads, op, op.value.type)
    if found is None:
        threads.make_unknown(op)
        return
    memory, flat, acts = found
    x = columns(threads[op.value])
    write_one(memory, flat[acts].reshape(-1), _flatten(x, acts))


def _flatten(x: Bounded, acts: Array) -> Bounded:
    return Bounded(x.value[acts].reshape(-1), x.bound[acts].reshape(-1))


def atomic(threads: BlockThreads, op: ptx.AtomicOp) -> None:
    found, word = _places(threads, op, op.value.type), op.instruction.data
    kind = word.partition(".")[0]
    if found is None or kind in ("exch", "cas"):
        threads.make_unknown(op)
        return
    memory, flat, acts = found
    at, x = flat[acts].reshape(-1), _flatten(columns(threads[op.value]), acts)
    if memory.element in INTEGERS:
        sign = {"s32": "s32", "u32": "u32"}.get(word.rpartition(".")[2], memory.element)
        change_integers(memory, at, x, kind, sign)
    else:
        shared = op.pointer.type == ptx.SHARED
        add_floats(threads.run, memory, at, x, flushes=not shared)
    if op.old is not None:  # others may have come before
        threads[op.old] = threads.anything(op.old.type)


def load_number(threads: BlockThreads, op: memref.LoadOp) -> None:
    memory = threads.run.memory(op.memref)
    flat = _flat_index(threads, memory, op.indices, in_order=False)
    where = np.where(threads.active, flat, 0)
    value, bound = memory.value.reshape(-1)[where], memory.bound.reshape(-1)[where]
    threads[op.res] = Bounded(value, bound)
