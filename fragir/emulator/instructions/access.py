"""Loads, stores and cache hints (PTX ISA 9.2, section 9.7.9). Hints have no effect here."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.alu import Decode, nothing
from fragir.emulator.instructions.operands import Decoder, MemoryOperand
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    destination_or_none,
)
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, is_slice, number_of, store
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import LOAD, MOST, SPACES, STORE, RowOperand
from fragir.emulator.numbers.types import UINT, Array, count_of, kind_of, width_of
from fragir.emulator.program.entities import Symbol, constant_or_none
from fragir.ptx.tree import Address, Name, Sink

if TYPE_CHECKING:
    from fragir.ptx.tree import Instruction, Operand


def put(row: Row, sel: Select, mask: Mask, value: npt.ArrayLike) -> None:
    """Write values of the active lanes: [warps, 32], or one per active lane where masked."""
    if mask is None:
        row[sel] = value
    elif is_slice(sel):
        row[sel][mask] = value
    else:
        part = row[sel]
        part[mask] = value
        row[sel] = part


def get(row: Row, sel: Select, mask: Mask) -> Array:
    """Values of the active lanes, in the shape that `put` takes."""
    return row[sel] if mask is None else row[sel][mask]


def shape_of(d: Decoder, ins: Instruction) -> tuple[str, int, int]:
    """(type, bytes of an element, elements) of a load or store."""
    kind, count = kind_of(ins.opcode), count_of(ins.opcode)
    if kind == "pred":
        raise d.error(ins, f"{ins.mnemonic}: .{kind} cannot be loaded or stored")
    if kind == "b128":
        return kind, 8, 2 * count
    return kind, width_of(kind) // 8, count


def _elements(d: Decoder, ins: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    elements = d.vector(operand)
    if len(elements) != count:
        raise d.error(ins, f"{ins.mnemonic} moves {count} elements, not {len(elements)}")
    if count > 1 and len({r.width for e in elements for r in d.registers(e)}) > 1:
        raise d.error(ins, f"{ins.mnemonic} moves registers of one width")
    return elements


def load(d: Decoder, ins: Instruction) -> Step:
    kind, width, count = shape_of(d, ins)
    space = d.space(ins)
    place = d.place(ins, 1, space)
    check_cache_policy(d, ins, 2)
    if kind == "b128":
        rows = [h for e in d.vector(d.operand(ins, 0)) for h in d.halves(ins, e)]
    else:
        if count == 8 and width < 4 and space not in ("const", "param"):
            text = "ptxas 13.2 takes eight narrow elements in one run and refuses them in the next"
            raise d.error(ins, f"{ins.mnemonic} is not emulated: {text}")
        rows = [d.wide_target(ins, e, kind) for e in _elements(d, ins, d.operand(ins, 0), count)]
    memory, counted = d.machine.memory, d.machine.report.statistics.loaded
    space = place.space
    signed = kind[0] == "s"
    view = np.dtype(f"{'i' if signed else 'u'}{width}")
    # Rows of equal width and float rows take raw bits.
    targets = [
        None if r is None else r.view(UINT[width]) if r.dtype.itemsize == width else r for r in rows
    ]

    known = parameter(d, ins, width, count)
    if known is not None:
        return _load_known(targets, known.view(view), counted)
    if count == 1:
        only = targets[0]
        extend = only is not None and only.dtype.itemsize != width

        def single(sel: Select, mask: Mask) -> None:
            address = place.at(sel, mask)
            value = memory.load(space, address, sel, mask, width, 1)
            counted[space] += width * address.size
            if only is not None:
                put(only, sel, mask, value.view(view) if extend else value)

        return single

    def run(sel: Select, mask: Mask) -> None:
        address = place.at(sel, mask)
        value = memory.load(space, address, sel, mask, width, count)
        counted[space] += width * count * address.size
        for index, row in enumerate(targets):
            if row is not None:
                part = value[..., index]
                put(row, sel, mask, part.view(view) if row.dtype.itemsize != width else part)

    return run


def parameter(d: Decoder, ins: Instruction, width: int, count: int) -> Array | None:
    """The elements that a load of a kernel's parameter gives in every lane, if nothing can write
    there; else None. What is no such load, or goes wrong, is for the machine.
    """
    operand = d.operand(ins, 1)
    if type(d) is not Decoder or not isinstance(operand, Address):
        return None
    base, shift = operand.base, operand.offset
    found = d.program.find(d.scope, base.text) if isinstance(base, Name) else None
    at = 0 if shift is None else constant_or_none(shift)
    if not isinstance(found, Symbol) or found.space != "param" or at is None:
        return None
    size = width * count
    start = found.offset + at
    if at < 0 or at + size > found.size or start % size or not d.program.keeps_parameters:
        return None
    return d.machine.memory.globals.bytes[start : start + size].view(UINT[width]).copy()


def _load_known(targets: list[Row | None], values: Array, counted: Counter[str]) -> Step:
    """The same values for all lanes."""
    pairs = [
        (row, np.array(value).astype(row.dtype))
        for row, value in zip(targets, values, strict=True)
        if row is not None
    ]
    size = values.nbytes

    def run(sel: Select, mask: Mask) -> None:
        if mask is None:
            lanes = LANES * number_of(sel)
            for row, value in pairs:
                row[sel] = value
        else:
            lanes = int(np.count_nonzero(mask))
            for row, value in pairs:
                store(row, sel, mask, value)
        counted["global"] += size * lanes

    return run


def save(d: Decoder, ins: Instruction) -> Step:
    kind, width, count = shape_of(d, ins)
    place = d.place(ins, 0, d.space(ins))
    stored = stored_rows(d, ins, 1, kind, width, count)
    check_cache_policy(d, ins, 2)
    machine = d.machine
    rows = [r for r in stored if r is not None]
    if len(rows) < len(stored):
        return _save_some(d, place, stored, width)
    memory, counted = machine.memory, machine.report.statistics.stored
    space = place.space

    def run(sel: Select, mask: Mask) -> None:
        address = place.at(sel, mask)
        if count == 1:
            value = get(rows[0], sel, mask)
        else:
            value = np.stack([get(r, sel, mask) for r in rows], axis=-1)
        memory.save(space, address, sel, mask, width, count, value)
        counted[space] += width * count * address.size
        machine.progress = True

    return run


def stored_rows(
    d: Decoder, ins: Instruction, index: int, kind: str, width: int, count: int, wide: bool = True
) -> list[Row | None]:
    """The rows of what is stored; None for `_`, which leaves its place in memory as it is.

    `wide`: registers may be wider.
    """
    operand = d.operand(ins, index)
    if kind == "b128":
        if type(operand).__name__ == "Integer":
            value = d.literal(ins, index) or 0
            return [d.constant("b64", value), d.constant("b64", value >> 64)]
        return [h for e in d.vector(operand) for h in d.halves(ins, e, source=True)]
    raw = f"b{8 * width}"
    elements = _elements(d, ins, operand, count)
    if width * count < 32 and any(isinstance(e, Sink) for e in elements):
        raise d.error(ins, f"{ins.mnemonic}: `_` leaves elements out of stores of 256 bits only")
    return [
        None
        if isinstance(e, Sink)
        else d.row(ins, e, raw if _is_raw(e) else kind, wide).view(UINT[width])
        for e in elements
    ]


def _save_some(d: Decoder, place: MemoryOperand, rows: list[Row | None], width: int) -> Step:
    """A vector store that leaves some elements out: the whole vector must be in bounds."""
    machine = d.machine
    memory, counted = machine.memory, machine.report.statistics.stored

    def run(sel: Select, mask: Mask) -> None:
        address = place.at(sel, mask)
        memory.spaces(place.space, address, sel, mask, width * len(rows))
        for index, row in enumerate(rows):
            if row is not None:
                at = address + address.dtype.type(index * width)
                memory.save(place.space, at, sel, mask, width, 1, get(row, sel, mask))
                counted[place.space] += width * address.size
        machine.progress = True

    return run


def check_cache_policy(d: Decoder, ins: Instruction, index: int) -> None:
    """The operand of .L2::cache_hint: a 64-bit register, there only with that word."""
    hinted = "L2::cache_hint" in ins.opcode
    if d.count(ins) != index + hinted:
        raise d.error(ins, f"{ins.mnemonic} takes {index + hinted} operands, not {d.count(ins)}")
    if hinted:
        d.source(ins, index, "b64")


def _is_raw(operand: Operand) -> bool:
    """Whether an operand is a register (its bits are stored) rather than a literal."""
    return type(operand).__name__ in ("Name", "Component")


# -- straight runs ---------------------------------------------------------------------------------


def _straight_address(d: StraightDecoder, operand: Operand, place: MemoryOperand) -> RowOperand:
    """The row of the addresses."""
    if isinstance(operand, Address) and isinstance(cast("object", place.row), np.ndarray):
        kind = f"u{8 * place.row.dtype.itemsize}"
        found = d.direct(operand.base, kind)
        if found is not None:
            return found
    return d.read(place.row)


def _straight_code(
    d: StraightDecoder, operand: Operand, place: MemoryOperand, width: int
) -> StraightCode:
    """An access to that place, without its rows."""
    space, memory = place.space, d.machine.memory
    if space not in SPACES or (space == "shared" and memory.cluster > 1):
        raise NoStraightCode
    if space in ("global", "generic") and "malloc" in d.program.externs:
        raise NoStraightCode  # buffers come and go
    address = _straight_address(d, operand, place)
    offset = place.offset
    return StraightCode("", [address], immediate=offset, space=SPACES.index(space), width=width)


def straight_load(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    kind, width, _ = shape_of(d, ins)
    code = _straight_code(d, d.operand(ins, 1), d.place(ins, 1, d.space(ins)), width)
    operand = d.operand(ins, 0)
    rows: list[RowOperand | None]
    if kind == "b128":
        rows = [d.destination(h) for e in d.vector(operand) for h in d.halves(ins, e)]
    else:
        rows = [d.wide_out(ins, e, kind) for e in d.vector(operand)]
    if len(rows) > MOST:
        raise NoStraightCode
    code.kind, code.signed = LOAD, kind[0] == "s"
    code.sources += map(destination_or_none, rows)
    return [code]


def straight_save(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    kind, width, count = shape_of(d, ins)
    code = _straight_code(d, d.operand(ins, 0), d.place(ins, 0, d.space(ins)), width)
    stored = stored_rows(d, ins, 1, kind, width, count)
    rows = [r for r in stored if r is not None]
    if len(rows) > MOST or len(rows) < len(stored):
        raise NoStraightCode
    code.kind = STORE
    unit, elements = f"u{8 * width}", d.vector(d.operand(ins, 1))
    for index, row in enumerate(rows):
        direct = d.direct(elements[index], unit) if len(elements) == len(rows) else None
        code.sources.append(direct or d.read(row.view(UINT[width])))
    return [code]


RUNS: dict[str, Encode] = {
    "load": straight_load,
    "store": straight_save,
}


# -- cache hints -----------------------------------------------------------------------------------
# Cache hints: no effect on any result, but their operands are checked (PTX ISA 9.2, 9.7.9).

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

    def run(sel: Select, mask: Mask) -> None:
        memory.spaces(place.space, place.at(sel, mask), sel, mask, LINE)

    return run


def create_policy(d: Decoder, ins: Instruction) -> Step:
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

    def run(sel: Select, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, 0)

    return run


STEPS: dict[str, Decode] = {
    "load": load,
    "store": save,
    "prefetch": prefetch,
    "cache line": line,
    "cache policy": create_policy,
}
