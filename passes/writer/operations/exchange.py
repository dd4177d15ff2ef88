"""What conversions of layouts are made of: shuffles, permutes, barriers of some warps."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import vector


def shuffle(w: KernelText, op: ptx.ShuffleOp) -> None:
    source = w.one(op.source)
    bounds = 31 if op.keeping is None else op.keeping.value.data << 8 | 31  # segment, clamp
    names = w.in_registers(op.value)
    for result, name in zip(w.define(op.result), names, strict=True):
        w.emit("shfl.sync.idx.b32", result, name, source, str(bounds), "-1")


def shuffle_xor(w: KernelText, op: ptx.ShuffleXorOp) -> None:
    mask = str(op.mask.value.data)
    names = w.in_registers(op.value)
    wide = ptx.register_bits(op.value.type) == 64
    for result, name in zip(w.define(op.result), names, strict=True):
        if not wide:
            w.emit("shfl.sync.bfly.b32", result, name, mask, "31", "-1")
            continue
        halves = [w.registers.fresh_register(32), w.registers.fresh_register(32)]
        w.emit("mov.b64", vector(halves), name)
        for half in halves:
            w.emit("shfl.sync.bfly.b32", half, half, mask, "31", "-1")
        w.emit("mov.b64", result, vector(halves))


def nibbles(w: KernelText, op: ptx.NibblesOp) -> None:
    """One by one; nothing where all that it was cast to took the source in that order."""
    if op.result.first_use is None:
        return
    names, picked = w.in_registers(op.source), op.picked
    for i, target in enumerate(w.define(op.result)):
        for place, number in enumerate(picked[8 * i : 8 * i + 8]):
            register, shift = names[number // 8], str(4 * (number % 8))
            if place == 0:
                w.emit("bfe.u32", target, register, shift, "4")
                continue
            nibble = w.registers.fresh_register(32)
            w.emit("shr.u32", nibble, register, shift)
            w.emit("bfi.b32", target, nibble, target, str(4 * place), "4")


def permute(w: KernelText, op: ptx.PermuteOp) -> None:
    selector = w.one(op.selector)
    if not selector.startswith("%"):
        selector = f"0x{int(selector):04X}"
    first, second = w.in_registers(op.lhs), w.in_registers(op.rhs)
    for result, *operands in zip(w.define(op.result), first, second, strict=True):
        w.emit("prmt.b32", result, *operands, selector)


def movmatrix(w: KernelText, op: ptx.MovmatrixOp) -> None:
    names = w.in_registers(op.value)
    for result, name in zip(w.define(op.result), names, strict=True):
        w.emit("movmatrix.sync.aligned.m8n8.trans.b16", result, name)


def barrier(w: KernelText, op: ptx.NamedBarrierOp) -> None:
    w.emit("bar.sync", w.one(op.number), str(op.threads.value.data))
