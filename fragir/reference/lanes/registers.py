"""The meaning of operations of `ptx` on a lane's own registers, in regions of lane-level code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.dialects.shorthands import is_vector
from fragir.passes.lowering.operations.scalars import require_position
from fragir.reference import elementwise, integers
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    PER_BYTE,
    PREDICATE,
    Array,
    decode,
    encode,
    storage,
    type_name,
)
from fragir.reference.lanes.threads import BlockThreads
from fragir.reference.scalars import cast, cast_as, scalar

# -- bits ------------------------------------------------------------------------------------------
# Values of lanes as bytes, and whether each byte is known for certain.
#
# What looks at bits instead of numbers (`prmt`, `lop3`, other types for the same registers) is
# exact where its operands are, and unknown elsewhere.


class Bytes(NamedTuple):
    """[threads, bytes] of a value, lowest first, and where they are certain."""

    value: Array
    known: Array


def bytes_of(x: Bounded, name: str) -> Bytes:
    """The bytes of a value of each thread; the bits of a NaN are not known."""
    value, bound = (a.reshape(len(a), -1) for a in (x.value, x.bound))
    sure = (bound == 0) & ~np.isnan(value.astype(np.float64))
    per = PER_BYTE.get(name)
    if per is not None:
        sure = sure.reshape(len(sure), -1, per).all(axis=-1)
    stored = np.ascontiguousarray(encode(value, name))
    raw = stored.view(np.uint8).reshape(len(value), -1)
    return Bytes(raw, np.repeat(sure, raw.shape[1] // sure.shape[1], axis=1))


def value_of(x: Bytes, name: str, shape: tuple[int, ...]) -> Bounded:
    """Bytes read as numbers of a type; unknown where any byte of one is."""
    raw = np.ascontiguousarray(x.value.astype(np.uint8))
    value = decode(raw.view(storage(name)), name).reshape(shape)
    each = np.asarray(x.known).reshape(len(raw), -1, storage(name).itemsize).all(axis=-1)
    if name in PER_BYTE:
        each = np.repeat(each, PER_BYTE[name], axis=1)
    return Bounded(value, np.where(each.reshape(shape), 0.0, np.inf))


def words_of(x: Bounded, name: str) -> tuple[Array, Array]:
    """The same as 32-bit numbers without a sign: [threads, registers], and which are certain."""
    raw, known = bytes_of(x, name)
    missing = -raw.shape[1] % 4
    raw = np.pad(raw, ((0, 0), (0, missing)))
    known = np.pad(known, ((0, 0), (0, missing)), constant_values=not missing)
    words = np.ascontiguousarray(raw).view(np.uint32).astype(np.int64)
    return words, np.asarray(known.reshape(len(raw), -1, 4).all(axis=-1))


def from_words(words: Array, known: Array, name: str, shape: tuple[int, ...]) -> Bounded:
    """32-bit numbers read as a type."""
    raw = np.ascontiguousarray(words.astype(np.uint32)).view(np.uint8)
    size = int(np.prod(shape[1:], dtype=np.int64)) * storage(name).itemsize // PER_BYTE.get(name, 1)
    sure = np.repeat(known, 4, axis=1)
    return value_of(Bytes(raw[:, :size], sure[:, :size]), name, shape)


def special(threads: BlockThreads, op: ptx.SpecialOp) -> None:
    register = op.register.data
    if register.startswith("ctaid"):
        number = threads.run.block_id["xyz".index(register[-1])]
        threads[op.value] = exactly(np.full(threads.count, number))
    elif register.startswith("nctaid"):
        number = threads.run.grid["xyz".index(register[-1])]
        threads[op.value] = exactly(np.full(threads.count, number))
    else:
        known = {"laneid": threads.lane, "tid.x": threads.number}
        threads[op.value] = exactly(known.get(register, np.zeros(threads.count, np.int64)))


def zero(threads: BlockThreads, op: ptx.ZeroOp) -> None:
    name = type_name(op.value.type)
    kind = np.float64 if name in FLOATS else bool if name == PREDICATE else np.int64
    threads[op.value] = exactly(np.zeros(threads.shape(op.value.type), kind))


def copy(threads: BlockThreads, op: ptx.CopyOp) -> None:
    threads[op.result] = threads[op.source]


def columns(x: Bounded) -> Bounded:
    """[threads, elements], also of a scalar."""
    count = len(x.value)
    return Bounded(x.value.reshape(count, -1), x.bound.reshape(count, -1))


def together(threads: BlockThreads, op: ptx.ConcatOp | ptx.PackOp) -> None:
    parts = [columns(threads[value]) for value in op.operands]
    threads[op.result] = Bounded(
        np.concatenate([x.value for x in parts], axis=1),
        np.concatenate([x.bound for x in parts], axis=1),
    )


def unpack(threads: BlockThreads, op: ptx.UnpackOp) -> None:
    x = threads[op.source]
    for number, scalar_ in enumerate(op.scalars):
        threads[scalar_] = Bounded(x.value[:, number], x.bound[:, number])


def slice_(threads: BlockThreads, op: ptx.SliceOp) -> None:
    x, first = threads[op.source], op.first.value.data
    part = slice(first, first + ptx.length(op.result.type))
    shape = threads.shape(op.result.type)
    threads[op.result] = Bounded(x.value[:, part].reshape(shape), x.bound[:, part].reshape(shape))


def splat(threads: BlockThreads, op: ptx.SplatOp) -> None:
    repeat(threads, op.scalar, op.result)


def repeat(threads: BlockThreads, scalar_: SSAValue, result: SSAValue) -> None:
    """A scalar, or the one element of a vector, as every element of the result."""
    x, shape = columns(threads[scalar_]), threads.shape(result.type)
    threads[result] = Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))


def bitcast(threads: BlockThreads, op: ptx.BitcastOp) -> None:
    """The same bits; of NaN only that it is one is known."""
    names = type_name(op.source.type), type_name(op.result.type)
    if names[0] == names[1]:
        threads[op.result] = threads[op.source]
        return
    raw = bytes_of(threads[op.source], names[0])
    threads[op.result] = value_of(raw, names[1], threads.shape(op.result.type))


def cvt(threads: BlockThreads, op: ptx.CvtOp) -> None:
    names = type_name(op.source.type), type_name(op.result.type)
    if op.cast is None:
        threads[op.result] = cast(threads[op.source], *names)
    else:
        threads[op.result] = cast_as(op.cast, threads[op.source], *names)


def compare(threads: BlockThreads, op: ptx.CompareOp) -> None:
    x, y, name = threads[op.lhs], threads[op.rhs], type_name(op.lhs.type)
    if name in FLOATS:
        threads[op.result] = elementwise.compare(op.number, x, y)
    else:
        threads[op.result] = integers.compare(op.number, x, y, INTEGERS[name])


def select(threads: BlockThreads, op: ptx.SelectOp) -> None:
    threads[op.result] = elementwise.select(*(threads[value] for value in op.operands))


def select_one(threads: BlockThreads, op: arith.SelectOp) -> None:
    """One condition for a whole vector is spread over it."""
    if not is_vector(op.result.type):
        scalar(threads.run, op)
        return
    condition, x, y = (threads[value] for value in op.operands)
    shape = x.value.shape
    wide = columns(condition)
    spread = Bounded(np.broadcast_to(wide.value, shape), np.broadcast_to(wide.bound, shape))
    threads[op.result] = elementwise.select(spread, x, y)


# -- vectors ---------------------------------------------------------------------------------------
# The meaning of xDSL's `vector` dialect in regions of lane-level code.


def extract(threads: BlockThreads, op: vector.ExtractOp) -> None:
    x = threads[op.vector]
    number = require_position(op, x.value.shape[1])
    threads[op.result] = Bounded(x.value[:, number], x.bound[:, number])


def insert(threads: BlockThreads, op: vector.InsertOp) -> None:
    x, one = threads[op.dest], threads[op.source]
    value, bound = np.array(x.value), np.array(x.bound)
    number = require_position(op, value.shape[1])
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
