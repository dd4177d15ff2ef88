"""Addresses: conversions, tests, other blocks of the cluster (PTX ISA 9.2, section 9.7.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.alu import Decode, copy, elementwise, of1
from fragir.emulator.instructions.call_frames import check_stack
from fragir.emulator.instructions.straight_rows import Encode, StraightDecoder, elements
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, store
from fragir.emulator.machine.memory import (
    CLUSTER_SHIFT,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.numbers.types import Array, kind_of
from fragir.emulator.values.c import ADDRESSES, widen

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction


_WINDOWS = {
    **dict.fromkeys(("shared", "shared::cta", "shared::cluster"), SHARED_WINDOW),
    "local": LOCAL_WINDOW,
    **dict.fromkeys(("const", "param", "param::entry"), GLOBAL_BASE),
}


def window_of(ins: Instruction) -> int:
    """Where the space that an opcode names begins among generic addresses."""
    return next((w for space, w in _WINDOWS.items() if space in ins.opcode), 0)


def convert(d: Decoder, ins: Instruction) -> Step:
    """cvta: between a space's addresses and generic ones."""
    kind = kind_of(ins.opcode)
    window = window_of(ins)
    source, out = d.source(ins, 1, kind), d.target(ins, 0, kind)
    if window == 0:
        return copy(out, source)
    if kind != "u64":
        raise d.error(ins, "generic addresses have 64 bits here")
    shift = np.uint64((1 << 64) - window if "to" in ins.opcode else window)
    return elementwise(of1(lambda a: a + shift), out, [source])


def straight_convert(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    """cvta."""
    kind = kind_of(ins.opcode)
    row, out = d.destination_at(ins, 1, kind), d.out(ins, 0, kind)
    window = window_of(ins)
    if window == 0:
        return elements(widen(int(kind[1:]), kind).text, out, [row])
    shift = (1 << 64) - window if "to" in ins.opcode else window
    constant = np.broadcast_to(np.uint64(shift), (d.machine.warps, 1))
    return elements(ADDRESSES.text, out, [row, d.read(constant)])


def is_space(d: Decoder, ins: Instruction) -> Step:
    """isspacep: where a generic address lies."""
    source, out = d.source(ins, 1, "u64"), d.target(ins, 0, "pred")
    name = next(w for w in ins.opcode[1:] if w)
    if name in ("shared", "shared::cta"):
        return _own_shared_address(d, source, out)
    if d.space(ins) in ("shared", "local"):
        base = SHARED_WINDOW if d.space(ins) == "shared" else LOCAL_WINDOW
        return elementwise(of1(lambda a: (a >= base) & (a < base + WINDOW)), out, [source])
    memory = d.machine.memory
    ranges: dict[str, list[tuple[np.uint64, np.uint64]]] = {"const": [], "param": []}
    for symbol in d.program.symbols:
        if symbol.space in ranges:
            start = GLOBAL_BASE + symbol.offset
            ranges[symbol.space].append((np.uint64(start), np.uint64(start + max(symbol.size, 1))))

    def inside(address: Array, kind: str) -> Array:
        found = np.zeros(address.shape, np.bool_)
        for low, high in ranges[kind]:
            found |= (address >= low) & (address < high)
        return found

    def function(address: Array) -> Array:
        if name == "const":
            return inside(address, "const")
        if name.startswith("param"):
            return inside(address, "param")
        end = np.uint64(GLOBAL_BASE + memory.globals.bytes.size)
        there = (address >= np.uint64(GLOBAL_BASE)) & (address < end)
        return there & ~inside(address, "const") & ~inside(address, "param")

    return elementwise(function, out, [source])


def _own_shared_address(d: Decoder, source: Array, out: Row | None) -> Step:
    machine = d.machine

    def run(sel: Select, mask: Mask) -> None:
        address = source[sel]
        window = machine.special("shared_window")
        assert isinstance(window, np.ndarray)
        start = window[sel].astype(np.uint64) + np.uint64(SHARED_WINDOW)
        if out is not None:
            inside = (address >= start) & (address - start < np.uint64(1 << CLUSTER_SHIFT))
            store(out, sel, mask, inside)

    return run


def in_block(d: Decoder, ins: Instruction) -> Step:
    """mapa: the same variable in another block of the cluster (9.7.9.24)."""
    kind = kind_of(ins.opcode)
    a, rank = d.source(ins, 1, kind), d.source(ins, 2, "u32")
    low = (1 << CLUSTER_SHIFT) - 1
    high = 0 if d.space(ins) == "shared" else SHARED_WINDOW

    def function(address: Array, rank: Array) -> Array:
        of = address.dtype.type
        return (address & of(low)) + (rank.astype(address.dtype) << of(CLUSTER_SHIFT)) + of(high)

    return elementwise(function, d.target(ins, 0, kind), [a, rank])


def rank(d: Decoder, ins: Instruction) -> Step:
    """getctarank: which block of the cluster an address lies in."""
    kind = kind_of(ins.opcode)

    def function(address: Array) -> Array:
        return ((address >> address.dtype.type(CLUSTER_SHIFT)) & address.dtype.type(0xFF)).astype(
            np.uint32
        )

    return elementwise(function, d.target(ins, 0, "u32"), [d.source(ins, 1, kind)])


def allocate(d: Decoder, ins: Instruction) -> Step:
    """alloca: bytes of the lane's stack, which grows upwards here."""
    kind = kind_of(ins.opcode)
    align = d.literal(ins, 2) if d.count(ins) == 3 else 8
    if d.count(ins) not in (2, 3) or align is None or align < 1 or align & (align - 1):
        raise d.error(ins, f"{ins.mnemonic} takes a size and an alignment, a power of two")
    out, size = d.target(ins, 0, kind), d.source(ins, 1, kind)
    machine, mask_of = d.machine, np.uint64(max(align, 8) - 1)

    def run(sel: Select, mask: Mask) -> None:
        start = (machine.stack_top[sel] + mask_of) & ~mask_of
        top = start + size[sel].astype(np.uint64)
        check_stack(machine, top, mask)
        store(machine.stack_top, sel, mask, top)
        if out is not None:
            store(out, sel, mask, start.astype(out.dtype))

    return run


def save_stack(d: Decoder, ins: Instruction) -> Step:
    """stacksave: where the stack ends."""
    out, top = d.target(ins, 0, kind_of(ins.opcode)), d.machine.stack_top

    def run(sel: Select, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, top[sel].astype(out.dtype))

    return run


def restore_stack(d: Decoder, ins: Instruction) -> Step:
    """stackrestore: gives back what alloca has taken since."""
    source, machine = d.source(ins, 0, kind_of(ins.opcode)), d.machine

    def run(sel: Select, mask: Mask) -> None:
        top = source[sel].astype(np.uint64)
        check_stack(machine, top, mask)
        store(machine.stack_top, sel, mask, top)

    return run


STEPS: dict[str, Decode] = {
    "allocate": allocate,
    "save stack": save_stack,
    "restore stack": restore_stack,
    "is space": is_space,
    "address in block": in_block,
    "block of address": rank,
    "convert address": convert,
}
RUNS: dict[str, Encode] = {
    "convert address": straight_convert,
}
