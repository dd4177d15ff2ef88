"""Atomic operations on memory."""

from __future__ import annotations

from fragir.dialects import ptx
from fragir.passes.writer.literals import braced, move_opcode
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import address

#: What there is no `red` of.
EXCHANGES = ("exch", "cas")


def atomic(w: KernelText, op: ptx.AtomicOp) -> None:
    pointer, words = op.pointer.type, op.instruction.data
    assert isinstance(pointer, ptx.PointerType)
    where = address(w.one(op.pointer), op.offset.value.data)
    operands = [braced(w.in_registers(op.value))]
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
        where = braced(names)
    elif returns:
        operands.insert(0, where)
        where = "_"
    kind = "atom" if returns else "red"
    w.emit(f"{kind}.{pointer.space.data.value}.{words}", where, *operands, guard=guard)
