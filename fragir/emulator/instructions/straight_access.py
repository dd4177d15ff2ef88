"""Loads, stores and conversions of addresses as operations of straight-line runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from fragir.emulator.instructions.access import shape_of, stored_rows
from fragir.emulator.instructions.addresses import window_of
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    elements,
    given,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import LOAD, MOST, SPACES, STORE, RowOperand
from fragir.emulator.numbers.types import UINT, kind_of
from fragir.ptx.tree import Address

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import MemoryOperand
    from fragir.ptx.tree import Instruction, Operand


def _address(d: StraightDecoder, operand: Operand, place: MemoryOperand) -> RowOperand:
    """The row of the addresses."""
    if isinstance(operand, Address) and isinstance(cast("object", place.row), np.ndarray):
        kind = f"u{8 * place.row.dtype.itemsize}"
        found = d.direct(operand.base, kind)
        if found is not None:
            return found
    return d.read(place.row)


def _code(d: StraightDecoder, operand: Operand, place: MemoryOperand, width: int) -> StraightCode:
    """An access to that place, without its rows."""
    space, memory = place.space, d.machine.memory
    if space not in SPACES or (space == "shared" and memory.cluster > 1):
        raise NoStraightCode
    if space in ("global", "generic") and "malloc" in d.program.externs:
        raise NoStraightCode  # buffers come and go
    address = _address(d, operand, place)
    offset = place.offset
    return StraightCode("", [address], immediate=offset, space=SPACES.index(space), width=width)


def load(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    kind, width, _ = shape_of(d, ins)
    code = _code(d, d.operand(ins, 1), d.place(ins, 1, d.space(ins)), width)
    operand = d.operand(ins, 0)
    rows: list[RowOperand | None]
    if kind == "b128":
        rows = [d.written(h) for e in d.vector(operand) for h in d.halves(ins, e)]
    else:
        rows = [d.wide_out(ins, e, kind) for e in d.vector(operand)]
    if len(rows) > MOST:
        raise NoStraightCode
    code.kind, code.signed = LOAD, kind[0] == "s"
    code.sources += map(given, rows)
    return [code]


def save(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    kind, width, count = shape_of(d, ins)
    code = _code(d, d.operand(ins, 0), d.place(ins, 0, d.space(ins)), width)
    rows = stored_rows(d, ins, 1, kind, width, count)
    if len(rows) > MOST or any(row is None for row in rows):
        raise NoStraightCode
    code.kind = STORE
    unit, elements = f"u{8 * width}", d.vector(d.operand(ins, 1))
    for index, row in enumerate(rows):
        direct = d.direct(elements[index], unit) if len(elements) == len(rows) else None
        code.sources.append(direct or d.read(row.view(UINT[width])))
    return [code]


def convert(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    """cvta."""
    kind = kind_of(ins.opcode)
    row, out = d.given(ins, 1, kind), d.out(ins, 0, kind)
    window = window_of(ins)
    if window == 0:
        return elements(f"copy_{kind[1:]}", out, [row])
    shift = (1 << 64) - window if "to" in ins.opcode else window
    constant = np.broadcast_to(np.uint64(shift), (d.machine.warps, 1))
    return elements("add_64", out, [row, d.read(constant)])


ENCODERS: dict[str, Encode] = {"ld": load, "ldu": load, "st": save, "cvta": convert}
