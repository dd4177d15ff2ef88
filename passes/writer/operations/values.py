"""Values without memory: constants, special registers, copies, the end."""

from __future__ import annotations

from xdsl.dialects import arith, func

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.writer.literals import (
    constant_names,
    default_hint,
    literal_bits,
    replicate,
    zero_literal,
)
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import vector


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


# -- naming ----------------------------------------------------------------------------------------
# Names for registers, and elements in and out of packed ones.


def slice_(w: KernelText, op: ptx.SliceOp) -> None:
    per = max(1, 32 // ptx.bits(op.source.type)) if ptx.bits(op.source.type) < 32 else 1
    first = op.first.value.data // per
    count = ptx.registers(op.result.type)
    w.alias(op.result, w.names[op.source][first : first + count])


def concat(w: KernelText, op: ptx.ConcatOp) -> None:
    w.alias(op.result, [name for part in op.parts for name in w.names[part]])


def bitcast(w: KernelText, op: ptx.BitcastOp) -> None:
    names = w.in_registers(op.source)
    widths = ptx.register_bits(op.source.type), ptx.register_bits(op.result.type)
    if widths == (64, 32):
        halves = w.define(op.result)
        for i, name in enumerate(names):
            w.emit("mov.b64", vector(halves[2 * i : 2 * i + 2]), name)
    elif widths == (32, 64):
        for i, whole in enumerate(w.define(op.result)):
            w.emit("mov.b64", whole, vector(names[2 * i : 2 * i + 2]))
    elif widths[0] == widths[1]:
        w.alias(op.result, names)
    else:
        raise FragirError(f"no free bitcast from {op.source.type} to {op.result.type}")


def splat(w: KernelText, op: ptx.SplatOp) -> None:
    name, bits = w.one(op.scalar), ptx.bits(op.scalar.type)
    if 1 < bits < 32:
        if not name.startswith("%"):
            name = replicate(int(literal_bits(name), 0), bits)
        elif bits < 8:
            raise FragirError(f"{op.scalar.type} is repeated as a constant only")
        else:
            packed = w.registers.fresh_register(32, default_hint(op.result.type))
            _replicate(w, packed, name, bits)
            name = packed
    w.alias(op.result, [name] * ptx.registers(op.result.type))


def _replicate(w: KernelText, target: str, name: str, bits: int) -> None:
    if bits == 16:
        w.emit("mov.b32", target, vector([name, name]))
    else:
        w.emit("prmt.b32", target, name, "0", "0x0000")


def pack(w: KernelText, op: ptx.PackOp) -> None:
    bits = ptx.bits(op.result.type)
    if bits >= 32 or bits == 1:
        w.alias(op.result, [w.one(scalar) for scalar in op.scalars])
        return
    scalars = [w.register(scalar) for scalar in op.scalars]
    per = 32 // bits
    for i, target in enumerate(w.define(op.result)):
        part = scalars[i * per : (i + 1) * per]
        # the last register may not be full: what is beyond holds copies
        _pack(w, target, [*part, *part[-1:] * (per - len(part))])


def _pack(w: KernelText, target: str, scalars: list[str]) -> None:
    if len(scalars) == 2:
        w.emit("mov.b32", target, vector(scalars))
        return
    low, high = w.registers.fresh_register(32), w.registers.fresh_register(32)
    w.emit("prmt.b32", low, scalars[0], scalars[1], "0x0040")
    w.emit("prmt.b32", high, scalars[2], scalars[3], "0x0040")
    w.emit("prmt.b32", target, low, high, "0x5410")


def unpack(w: KernelText, op: ptx.UnpackOp) -> None:
    bits, names = ptx.bits(op.source.type), w.names[op.source]
    if bits >= 32 or bits == 1:
        for scalar, name in zip(op.scalars, names, strict=True):
            w.alias(scalar, [name])
        return
    names = w.in_registers(op.source)
    per = 32 // bits
    for i, name in enumerate(names):
        scalars = [w.define(s)[0] for s in op.scalars[i * per : (i + 1) * per]]
        if bits == 16:
            w.emit("mov.b32", vector([*scalars, "_"][:2]), name)
            continue
        for j, scalar in enumerate(scalars):
            w.emit("bfe.u32", scalar, name, str(8 * j), "8")
