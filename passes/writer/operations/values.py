"""Values without memory: constants, special registers, copies, the end."""

from __future__ import annotations

from xdsl.dialects import arith, func

from fragir.dialects import ptx
from fragir.passes.writer.literals import (
    constant_names,
    zero_literal,
)
from fragir.passes.writer.text import KernelText


def end(w: KernelText, op: func.ReturnOp) -> None:
    w.emit("ret")


def constant(w: KernelText, op: arith.ConstantOp) -> None:
    w.alias(op.result, constant_names(op.value, op.result.type))


def zero(w: KernelText, op: ptx.ZeroOp) -> None:
    type_ = op.value.type
    w.alias(op.value, [zero_literal(type_)] * ptx.registers(type_))


def special(w: KernelText, op: ptx.SpecialOp) -> None:
    (register,) = w.define(op.value)
    w.emit("mov.u32", register, f"%{op.register.data}")


def copy(w: KernelText, op: ptx.CopyOp) -> None:
    over = w.take_over(op.source, op)
    if over is not None and op.result not in w.reserved:
        w.own(op.result, over)
        return
    w.move(w.define(op.result), w.names[op.source], op.result.type)
