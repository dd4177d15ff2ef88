"""Loads, stores and conversions of addresses as operations of straight-line runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.access import shape_of, stored_rows
from fragir.emulator.instructions.addresses import window_of
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    elements,
    read,
    written,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import LOAD, MOST, SPACES, STORE
from fragir.emulator.numbers.types import UINT, kind_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.ptx.tree import Instruction


def _code(d: Decoder, place: MemoryOperand, width: int) -> StraightCode:
    """An access to that place, without its rows."""
    space, memory = place.space, d.machine.memory
    if space not in SPACES or (space == "shared" and memory.cluster > 1):
        raise NoStraightCode
    if space in ("global", "generic") and "malloc" in d.program.externs:
        raise NoStraightCode  # buffers come and go
    address = read(d, place.row)
    offset = place.offset
    return StraightCode("", [address], immediate=offset, space=SPACES.index(space), width=width)


def load(d: Decoder, ins: Instruction) -> list[StraightCode]:
    kind, width, _ = shape_of(d, ins)
    code = _code(d, d.place(ins, 1, d.space(ins)), width)
    operand = d.operand(ins, 0)
    rows: list[Any]
    if kind == "b128":
        rows = [h for e in d.vector(operand) for h in d.halves(ins, e)]
    else:
        rows = [d.wide_target(ins, e, kind) for e in d.vector(operand)]
    if len(rows) > MOST:
        raise NoStraightCode
    code.kind, code.signed = LOAD, kind[0] == "s"
    code.sources += [written(d, row) for row in rows]
    return [code]


def save(d: Decoder, ins: Instruction) -> list[StraightCode]:
    kind, width, count = shape_of(d, ins)
    code = _code(d, d.place(ins, 0, d.space(ins)), width)
    rows = stored_rows(d, ins, 1, kind, width, count)
    if len(rows) > MOST or any(row is None for row in rows):
        raise NoStraightCode
    code.kind = STORE
    code.sources += [read(d, row.view(UINT[width])) for row in rows]
    return [code]


def convert(d: Decoder, ins: Instruction) -> list[StraightCode]:
    """cvta."""
    kind = kind_of(ins.opcode)
    row, out = read(d, d.source(ins, 1, kind)), d.target(ins, 0, kind)
    window = window_of(ins)
    if window == 0:
        return elements(d, f"copy_{kind[1:]}", out, [row])
    shift = (1 << 64) - window if "to" in ins.opcode else window
    constant = np.broadcast_to(np.uint64(shift), (d.machine.warps, 1))
    return elements(d, "add_64", out, [row, read(d, constant)])


ENCODERS: dict[str, Encode] = {"ld": load, "ldu": load, "st": save, "cvta": convert}
