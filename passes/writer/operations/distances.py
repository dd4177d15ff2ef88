"""Addresses in global memory at distances of 64 bits."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.writer.text import KernelText


def mul_wide(w: KernelText, op: ptx.MulWideOp) -> None:
    (result,) = w.define(op.result)
    w.emit("mul.wide.s32", result, w.register(op.lhs), w.one(op.rhs))


def offset_wide(w: KernelText, op: ptx.OffsetWideOp) -> None:
    (result,) = w.define(op.result)
    pointer, index = w.one(op.pointer), w.one(op.index)
    factor = str(op.scale.value.data) if op.stride is None else w.one(op.stride)
    if factor == "1":
        w.emit("add.s64", result, pointer, index)
    else:
        w.emit("mad.lo.s64", result, index, factor, pointer)
