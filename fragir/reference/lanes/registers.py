"""The meaning of operations of `ptx` on a lane's own registers, in regions of lane-level code."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.dialects.narrow import is_vector
from fragir.reference import elementwise, integers
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.element_types import PREDICATE, type_name
from fragir.reference.formats import FLOATS, INTEGERS
from fragir.reference.lanes.bits import bytes_of, value_of
from fragir.reference.lanes.threads import BlockThreads
from fragir.reference.scalars import cast, cast_as, scalar


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


def together(threads: BlockThreads, op: Any) -> None:
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
