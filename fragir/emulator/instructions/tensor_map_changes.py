"""tensormap.replace and tensormap.cp_fenceproxy (PTX ISA 9.2, sections 9.7.9.28 and 9.7.13.15)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.bulk import shared_address
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.memory import AccessFault, Arena
from fragir.emulator.machine.tensor_map import ELEMENTS, SIZE, MapFields

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

#: Word of the opcode -> (field, type of the value).
_SINGLE = {"global_address": ("address", "b64"), "rank": ("rank", "b32")}
_ORDERED = {
    "box_dim": ("box", "b32", 5),
    "global_dim": ("sizes", "b32", 5),
    "global_stride": ("strides", "b64", 4),
    "element_stride": ("steps", "b32", 5),
}
#: Word of the opcode -> (field, how many values there are); the value must be a constant.
_ENUMERATED = {
    "elemtype": ("element", len(ELEMENTS)),
    "interleave_layout": ("interleave", 3),
    "swizzle_mode": ("swizzle", 5),
    "swizzle_atomicity": ("atom", 4),
    "fill_mode": ("fill", 2),
}
_ALIGNMENT = 64
#: What a map of zeros is taken as: kernels that make maps replace every field of one.
EMPTY = MapFields(0, 0, 1, (1,) * 5, (0,) * 4, (1,) * 5, (1,) * 5)


def change(d: Decoder, ins: Instruction) -> Step:
    """tensormap.replace, tensormap.cp_fenceproxy."""
    if ins.opcode[1:2] == ("cp_fenceproxy",):
        return _copy(d, ins)
    if ins.opcode[1:3] != ("replace", "tile") or "b1024" not in ins.opcode:
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    word, kind = ins.opcode[3], ins.opcode[-1]
    place = d.place(ins, 0, d.space(ins))
    order: int | None = None
    if word in _SINGLE:
        field, wanted = _SINGLE[word]
        count = 2
    elif word in _ORDERED:
        field, wanted, length = _ORDERED[word]
        count, order = 3, d.literal(ins, 1)
        if order is None or not 0 <= order < length:
            raise d.error(ins, f"{ins.mnemonic} needs the number of a dimension")
    elif word in _ENUMERATED:
        (field, length), wanted, count = _ENUMERATED[word], "b32", 2
        value = d.literal(ins, 1)
        if value is None or not 0 <= value < length:
            raise d.error(ins, f"{ins.mnemonic} takes a constant from 0 to {length - 1}")
    else:
        raise d.error(ins, f"a tensor map has no field {word}")
    if kind != wanted or d.count(ins) != count:
        raise d.error(ins, f"{ins.mnemonic} takes {count} operands, the new value as .{wanted}")
    row, machine = d.source(ins, count - 1, kind), d.machine

    def run(sel: Select, mask: Mask) -> None:
        values = get(row, sel, mask).ravel()
        for index, (arena, at, address) in enumerate(_maps(machine, place, sel, mask)):
            data = arena.bytes[at : at + SIZE].tobytes()
            fields = EMPTY if not any(data) else MapFields.unpack(data)
            if fields is None:
                raise AccessFault("there is no tensor map at this address", address, index)
            value = int(values[index])
            if field == "rank":
                if value > 4:
                    raise AccessFault(
                        f"the rank of a tensor map minus one is {value}", address, index
                    )
                fields = replace(fields, rank=value + 1)
            elif order is None:
                fields = replace(fields, **{field: value})
            else:
                before: tuple[int, ...] = getattr(fields, field)
                after = (*before[:order], value, *before[order + 1 :])
                fields = replace(fields, **{field: after})
            arena.bytes[at : at + SIZE] = np.frombuffer(_pack(fields, address, index), np.uint8)
        machine.progress = True

    return run


def _pack(fields: MapFields, address: int, index: int) -> bytes:
    import struct

    try:
        return fields.pack()
    except struct.error as problem:
        raise AccessFault("the new value does not fit a tensor map", address, index) from problem


def _maps(
    machine: Machine, place: MemoryOperand, sel: Select, mask: Mask
) -> list[tuple[Arena, int, int]]:
    """(arena, position, address) of the map of every active lane."""
    address = place.at(sel, mask)
    flat = address.ravel()
    found: list[tuple[Arena, int, int] | None] = [None] * flat.size
    for arena, at, which in machine.memory.spaces(place.space, address, sel, mask, _ALIGNMENT):
        chosen = np.ones(flat.size, np.bool_) if which is None else which.ravel()
        places: list[int] = np.flatnonzero(chosen).tolist()
        for index, position in zip(places, at.ravel(), strict=True):
            found[index] = arena, int(position), int(flat[index])
    for arena, position, there in (f for f in found if f is not None):
        if arena is machine.memory.globals:
            last = np.array([there + SIZE - 1], np.uint64)
            machine.memory.locate_global(last, 1)
        elif position % max(machine.memory.shared_stride, 1) + SIZE > machine.memory.shared_size:
            raise AccessFault(f"a tensor map has {SIZE} bytes", there, 0, "out-of-bounds")
    return [f for f in found if f is not None]


def _copy(d: Decoder, ins: Instruction) -> Step:
    """A map from shared to global memory, with the fence that lets the next copy see it."""
    words = ins.opcode
    if d.count(ins) != 3 or d.literal(ins, 2) != SIZE or "tensormap::generic" not in words:
        raise d.error(ins, f"{ins.mnemonic} takes two addresses and the constant {SIZE}")
    into, source = d.place(ins, 0, "global"), d.place(ins, 1, "shared")
    machine = d.machine
    memory = machine.memory

    def run(sel: Select, mask: Mask) -> None:
        to = into.at(sel, mask).ravel()
        out_of = shared_address(source.at(sel, mask)).ravel()
        homes = get(memory.shared_home, sel, mask).ravel()
        units = np.arange(0, SIZE, 16)
        for index in range(len(to)):
            start = int(memory.locate_global(to[index] + units.astype(np.uint64), 16)[0])
            every = out_of[index] + units.astype(out_of.dtype)
            begin = int(memory.locate_shared(every, np.repeat(homes[index], len(units)), 16)[0])
            memory.globals.bytes[start : start + SIZE] = memory.shared.bytes[begin : begin + SIZE]
        machine.progress = True

    return run


STEPS: dict[str, Decode] = {
    "change tensor map": change,
    "copy tensor map": _copy,
}
