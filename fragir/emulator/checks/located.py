"""Where the lanes of one instruction access memory, found once each time it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.machine.events import Access, AccessKind
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.numbers.types import count_of, kind_of, width_of
from fragir.ptx.tree import Address

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.ptx.tree import Instruction


def address_of(ins: Instruction) -> int:
    """The first of an instruction's operands that is an address."""
    return next(i for i, o in enumerate(ins.operands) if isinstance(o, Address))


def located(d: Decoder, ins: Instruction) -> LocatedAccess | None:
    """What all checks share of the access of an instruction; None where it has none of its own."""
    return d.shared_by_checks.get(id(ins))


def locate(d: Decoder, ins: Instruction) -> LocatedAccess | None:
    """The same, made: of loads, stores, atomics, ldmatrix and stmatrix."""
    row = d.program.opcode(ins)
    if not row.access or row.bits in ("load fragment", "store fragment", "fill"):
        return None
    place = d.place(ins, address_of(ins), d.space(ins))
    if row.together != "warp":
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
        return LocatedAccess(d, ins, row.access, place, size)
    rows = 8 * next((int(w[1:]) for w in ins.opcode if w in ("x1", "x2", "x4")), 1)
    if "m16n16" in ins.opcode:
        rows = min(2 * rows, LANES)
    return LocatedAccess(d, ins, row.access, place, 16, rows)


class LocatedAccess:
    """One instruction's access. `rows`: of ldmatrix and stmatrix, how many lanes give an address;
    0 for others."""

    def __init__(
        self,
        d: Decoder,
        ins: Instruction,
        kind: AccessKind,
        place: MemoryOperand,
        size: int,
        rows: int = 0,
    ) -> None:
        self.machine, self.ins = d.machine, ins
        self.kind: AccessKind = kind
        self.place, self.size, self.rows = place, size, rows
        self._found: Access | None = None
        self._sel: Any = None
        self._mask: Mask = None

    def of(self, sel: Any, mask: Mask) -> Access:
        """The access of the lanes that take part; the same one until the instruction is over."""
        found = self._found
        if found is not None and sel is self._sel and mask is self._mask:
            return found
        self._sel, self._mask = sel, mask
        machine, place = self.machine, self.place
        used, warps = mask, sel
        if self.rows:
            used, warps = None, np.arange(machine.warps)[sel]
            if mask is not None:
                warps = warps[mask.any(axis=1)]
            lanes = machine.lane_ids[warps][:, : self.rows]
            address = place.at(warps, None)[:, : self.rows]
        else:
            address = place.at(sel, mask)
            lanes = machine.lane_ids[sel] if mask is None else machine.lane_ids[sel][mask]
        found = self._found = Access(
            self.kind,
            self.ins,
            place.space,
            address,
            self.size,
            lanes,
            warps,
            used,
            machine.memory,
        )
        return found

    def around(self, step: Step) -> Step:
        """The whole step: what was found is of this time alone."""

        def run(sel: Any, mask: Mask) -> None:
            self._found = None
            step(sel, mask)
            self._found = None

        return run
