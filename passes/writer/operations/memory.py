"""Shared memory, addresses, loads and stores."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.limits import allocate
from fragir.passes.writer.literals import (
    access,
    braced,
)
from fragir.passes.writer.masks import write_with_mask
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import address, vector


def shared(w: KernelText, op: ptx.SharedOp) -> None:
    (register,) = w.define(op.pointer)
    offset = f"+{w.shared}" if w.shared else ""
    w.emit("mov.u32", register, f"{w.memory}{offset}")
    w.shared = allocate(op, w.shared, w.target)


def offset(w: KernelText, op: ptx.OffsetOp) -> None:
    (result,) = w.define(op.result)
    pointer, index = w.one(op.pointer), w.one(op.index)
    factor = str(op.scale.value.data) if op.stride is None else w.one(op.stride)
    type_ = op.pointer.type
    assert isinstance(type_, ptx.PointerType)
    if not type_.is_shared:
        w.emit("mad.wide.s32", result, index, factor, pointer)
    elif factor == "1":
        w.emit("add.s32", result, pointer, index)
    else:
        w.emit("mad.lo.s32", result, index, factor, pointer)


def flip(w: KernelText, op: ptx.FlipOp) -> None:
    if not write_with_mask(w, op):
        (result,) = w.define(op.result)
        w.emit("xor.b32", result, w.one(op.pointer), w.one(op.index))


def load(w: KernelText, op: ptx.LoadOp) -> None:
    value, (pointer, *guarded) = op.results[0], op.operands
    where = address(w.one(pointer), op.offset.value.data)
    names = w.define(value)
    guard: str | None = None
    if guarded:
        predicate, otherwise = guarded
        w.move(names, w.names[otherwise], value.type)
        guard = w.register(predicate)
    w.emit(access("ld", pointer.type, value.type), braced(names), where, guard=guard)


def store(w: KernelText, op: ptx.StoreOp) -> None:
    value, pointer, *predicates = op.operands
    where = address(w.one(pointer), op.offset.value.data)
    names = w.in_registers(value)
    guard = w.register(predicates[0]) if predicates else None
    w.emit(access("st", pointer.type, value.type), where, braced(names), guard=guard)


def ldmatrix(w: KernelText, op: ptx.LdmatrixOp) -> None:
    names = w.define(op.value)
    trans = ".trans" if op.transposed is not None else ""
    opcode = f"ldmatrix.sync.aligned.m8n8.x{len(names)}{trans}.shared.b16"
    w.emit(opcode, vector(names), address(w.one(op.pointer), op.offset.value.data))


def stmatrix(w: KernelText, op: ptx.StmatrixOp) -> None:
    names = w.in_registers(op.value)
    trans = ".trans" if op.transposed is not None else ""
    opcode = f"stmatrix.sync.aligned.m8n8.x{len(names)}{trans}.shared.b16"
    w.emit(opcode, address(w.one(op.pointer), op.offset.value.data), vector(names))


def cp_async(w: KernelText, op: ptx.CpAsyncOp) -> None:
    size = op.bytes.value.data
    operands = [
        address(w.one(op.target), op.target_offset.value.data),
        address(w.one(op.source), op.source_offset.value.data),
        str(size),
    ]
    if op.predicate is not None:
        spare = w.registers.fresh(32, "bytes")
        w.emit("selp.b32", spare, str(size), "0", w.register(op.predicate))
        operands.append(spare)
    # .cg, which passes by L1, exists for 16 bytes only
    kind = "cg" if size == 16 else "ca"
    w.emit(f"cp.async.{kind}.shared.global", *operands)
