"""Shared memory, addresses, loads and stores."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.remarks import allocate
from fragir.passes.writer.elementwise import write_with_mask
from fragir.passes.writer.literals import access, brace, move_opcode
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
    w.emit(access("ld", pointer.type, value.type), brace(names), where, guard=guard)


def store(w: KernelText, op: ptx.StoreOp) -> None:
    value, pointer, *predicates = op.operands
    where = address(w.one(pointer), op.offset.value.data)
    names = w.in_registers(value)
    guard = w.register(predicates[0]) if predicates else None
    w.emit(access("st", pointer.type, value.type), where, brace(names), guard=guard)


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
        spare = w.registers.fresh_register(32, "bytes")
        w.emit("selp.b32", spare, str(size), "0", w.register(op.predicate))
        operands.append(spare)
    # .cg, which passes by L1, exists for 16 bytes only
    kind = "cg" if size == 16 else "ca"
    w.emit(f"cp.async.{kind}.shared.global", *operands)


# -- atomics ---------------------------------------------------------------------------------------
# Atomic operations on memory.

#: What there is no `red` of.
EXCHANGES = ("exch", "cas")


def atomic(w: KernelText, op: ptx.AtomicOp) -> None:
    pointer, words = op.pointer.type, op.instruction.data
    assert isinstance(pointer, ptx.PointerType)
    where = address(w.one(op.pointer), op.offset.value.data)
    operands = [brace(w.in_registers(op.value))]
    if op.expected is not None:
        operands.insert(0, w.register(op.expected))
    guard = None if op.predicate is None else w.register(op.predicate)
    returns = op.old is not None or words.startswith(EXCHANGES)
    if op.old is not None:
        names = w.define(op.old)
        if guard is not None:
            for name in names:
                w.emit(move_opcode(ptx.register_bits(op.old.type)), name, "0")
        operands.insert(0, where)
        where = brace(names)
    elif returns:
        operands.insert(0, where)
        where = "_"
    kind = "atom" if returns else "red"
    w.emit(f"{kind}.{pointer.space.data.value}.{words}", where, *operands, guard=guard)


# -- distances -------------------------------------------------------------------------------------
# Addresses in global memory at distances of 64 bits.


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
