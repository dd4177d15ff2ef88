"""Products, and what they wait for."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.shorthands import integers, is_vector
from fragir.errors import FragirError
from fragir.passes.writer.text import KernelText, Names
from fragir.ptx.spelling import vector


def sync(w: KernelText, op: ptx.SyncOp) -> None:
    operands = [] if op.number is None else [str(op.number.value.data)]
    if op.instruction.data.startswith("wgmma.fence"):
        _before_fence(w, op)
    w.emit(op.instruction.data, *operands)


def _before_fence(w: KernelText, fence: ptx.SyncOp) -> None:
    """Moves constants to registers where the products after a fence read them as A.

    Registers of A must be written before the fence (PTX ISA 9.2, section 9.7.15.7.1).
    """
    op = fence.next_op
    while op is not None and not isinstance(op, ptx.SyncOp):
        if isinstance(op, ptx.WgmmaOp) and is_vector(op.a.type) and op.a in w.names:
            w.fragments[op] = w.in_registers(op.a)
        op = op.next_op


def mma(w: KernelText, op: ptx.MmaOp) -> None:
    write_mma(w, op, ())


def write_mma(w: KernelText, op: ptx.MmaOp | ptx.MmaSparseOp, more: Names) -> None:
    """Writes a product; `more` are the operands behind C."""
    a, b = w.in_registers(op.a), w.in_registers(op.b)
    c = _addend(w, op.c)
    scales = _scales(w, op)
    over = w.take_over(op.c, op) if op.c.type == op.d.type else None
    if over is not None and op.d not in w.reserved:
        w.own(op.d, over)
    d = w.names[op.d] if op.d in w.names else w.define(op.d)
    operands = (vector(d), vector(a), vector(b), vector(c), *more, *scales)
    w.emit(op.instruction.data, *operands)


def _addend(w: KernelText, c: SSAValue) -> Names:
    """C of a product: ptxas takes literals of 32 and 64 bits there, but none for two halves."""
    return w.names[c] if ptx.bits(c.type) >= 32 else w.in_registers(c)


def _scales(w: KernelText, op: ptx.MmaOp | ptx.MmaSparseOp) -> Names:
    """SFA, its byte and thread, SFB, its byte and thread."""
    if op.scale_selectors is None:
        return ()
    numbers = [str(number) for number in integers(op.scale_selectors)]
    sfa, sfb = (w.register(scale) for scale in op.scales)
    return sfa, vector(numbers[:2]), sfb, vector(numbers[2:])


def wgmma(w: KernelText, op: ptx.WgmmaOp) -> None:
    _tie(w, op, op.c, op.d)
    names = vector(w.names[op.d])
    registers = is_vector(op.a.type)
    a = vector(_fragment(w, op)) if registers else w.register(op.a)
    scale = "1" if op.scale_d is None else w.register(op.scale_d)
    operands = [names, a, w.register(op.b)]
    if op.metadata is not None and op.selector is not None:
        operands += [w.register(op.metadata), str(op.selector.value.data)]
    operands.append(scale)
    element = op.instruction.data.rsplit(".", 1)[1]
    if element not in ("s8", "u8", "popc"):  # floats: imm-scale-a and -b
        operands += ["1" if x is None else "-1" for x in (op.a_negated, op.b_negated)]
    if element in ("f16", "bf16"):
        majors = [op.b_major.data] if registers else [op.a_major.data, op.b_major.data]
        operands += ["1" if major == "mn" else "0" for major in majors]
    w.emit(op.instruction.data, *operands)


def _fragment(w: KernelText, op: ptx.WgmmaOp) -> Names:
    return w.fragments.get(op) or w.in_registers(op.a)


def _tie(w: KernelText, op: Operation, source: SSAValue, result: SSAValue) -> None:
    over = w.take_over(source, op)
    if over is None:
        raise FragirError(
            "the accumulator is read or kept elsewhere while the product is under way, and "
            "copying it then is undefined",
            hint="use the result of ptx.wgmma_wait, and ptx.copy before wgmma.fence",
        )
    w.own(result, over)


def wgmma_wait(w: KernelText, op: ptx.WgmmaWaitOp) -> None:
    for source, result in zip(op.accumulators, op.completed, strict=True):
        _tie(w, op, source, result)
    w.emit("wgmma.wait_group.sync.aligned", str(op.pending.value.data))


def descriptor(w: KernelText, op: ptx.DescriptorOp) -> None:
    (result,) = w.define(op.result)
    part = w.registers.fresh_register(32, "start")
    # bits 4..17 of the address (PTX ISA 9.2, section 9.7.15.5.1.2)
    w.emit("bfe.u32", part, w.one(op.address), "4", "14")
    wide = w.registers.fresh_register(64, "start64")
    w.emit("cvt.u64.u32", wide, part)
    fields = op.fields.value.data & (1 << 64) - 1
    w.emit("or.b64", result, wide, f"0x{fields:X}")


# -- sparse ----------------------------------------------------------------------------------------
# Sparse products.


def mma_sparse(w: KernelText, op: ptx.MmaSparseOp) -> None:
    write_mma(w, op, (w.register(op.metadata), str(op.selector.value.data)))
