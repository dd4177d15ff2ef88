"""f32 as floats of eight bits and fewer, two at a time (PTX ISA 9.2, section 9.7.9.22)."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fragir.errors import FragirError
from fragir.isa.elements import FLOAT8
from fragir.isa.versions import requirement
from fragir.passes.writer.packing import four_bytes, padded
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import vector


def write(w: KernelText, result: SSAValue, names: list[str], second: str) -> None:
    """A value from one f32 register or literal an element; FragirError on other targets."""
    opcode = f"cvt.rn.satfinite.{second.removesuffix('x2')}x2.f32"
    if not w.has(opcode):
        lowest = requirement(opcode).lowest_target
        raise FragirError(f"f32 is converted to {second} from {lowest} on, not on {w.target}")
    per = 8 if second == "e2m1x2" else 4
    for i, target in enumerate(w.define(result)):
        part = padded(names[per * i : per * (i + 1)], per)
        pairs = list(zip(part[::2], part[1::2], strict=True))
        if second in FLOAT8:
            both = [w.registers.fresh(16) for _ in pairs]
            for pair, (low, high) in zip(both, pairs, strict=True):
                w.emit(opcode, pair, high, low)
            w.emit("mov.b32", target, vector(both))
            continue
        words = [_word(w, opcode, low, high) for low, high in pairs]
        if per == 8:
            four_bytes(w, target, words)
            continue
        if second == "e2m1":
            words = [_spread(w, word) for word in words]
        w.emit("prmt.b32", target, *words, "0x5410")


def _word(w: KernelText, opcode: str, low: str, high: str) -> str:
    """Two floats as the lowest bits of a register: a byte each, or two nibbles of one byte."""
    word = w.registers.fresh(32)
    if ".e2m1x2" not in opcode:
        pair = w.registers.fresh(16)
        w.emit(opcode, pair, high, low)
        w.emit("cvt.u32.u16", word, pair)
        return word
    # the byte register exists inside of braces only
    w.lines.append("    { .reg .b8 %b;")
    w.emit(opcode, "%b", high, low)
    w.emit("cvt.u32.u8", word, "%b")
    w.lines.append("    }")
    return word


def _spread(w: KernelText, word: str) -> str:
    """Two nibbles of a byte as two bytes."""
    spread = w.registers.fresh(32)
    w.emit("shl.b32", spread, word, "4")
    w.emit("and.b32", spread, spread, "0x0F00")
    w.emit("lop3.b32", word, word, "0x0F", spread, "0xEA")
    return word
