"""Cache hints: no effect on any result, but their operands are checked (PTX ISA 9.2, 9.7.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.emulator.instructions.alu import Decode, nothing
from fragir.emulator.machine.lanes import Mask, Step, store

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

LINE = 128  # bytes that discard and applypriority act on


def prefetch(d: Decoder, ins: Instruction) -> Step:
    """prefetch, prefetchu: any address will do, also one of no memory."""
    if d.count(ins) != 1:
        raise d.error(ins, f"{ins.mnemonic} takes an address")
    d.place(ins, 0, d.space(ins))
    return nothing


def line(d: Decoder, ins: Instruction) -> Step:
    """discard, applypriority: a line of global memory. What discard may destroy stays here."""
    if d.count(ins) != 2 or d.literal(ins, 1) != LINE:
        raise d.error(ins, f"{ins.mnemonic} takes an address and the constant {LINE}")
    place, memory = d.place(ins, 0, d.space(ins)), d.machine.memory

    def run(sel: Any, mask: Mask) -> None:
        memory.spaces(place.space, place.at(sel, mask), sel, mask, LINE)

    return run


def policy(d: Decoder, ins: Instruction) -> Step:
    """createpolicy: an opaque number, 0 here."""
    way = ins.opcode[1]
    counts = {"fractional": (1, 2), "range": (4,), "cvt": (2,)}[way]
    if d.count(ins) not in counts:
        raise d.error(ins, f"{ins.mnemonic} takes {counts[-1]} operands, not {d.count(ins)}")
    if way == "fractional" and d.count(ins) == 2:
        d.source(ins, 1, "f32")
    elif way == "range":
        d.place(ins, 1, d.space(ins))
        d.source(ins, 2, "u32")
        d.source(ins, 3, "u32")
    elif way == "cvt":
        d.source(ins, 1, "b64")
    out = d.target(ins, 0, "u64")

    def run(sel: Any, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, 0)

    return run


STEPS: dict[str, Decode] = {
    "prefetch": prefetch,
    "cache line": line,
    "cache policy": policy,
}
