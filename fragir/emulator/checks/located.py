"""Where the lanes of one instruction access memory, found once each time it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.machine.arena import AccessPattern
from fragir.emulator.machine.events import Access, AccessKind
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step, is_slice
from fragir.emulator.numbers.types import I64, Array, count_of, kind_of, width_of
from fragir.ptx.tree import Address

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

#: So often an access may be unlike the last one before nobody looks any more.
MISSES = 8


def address_of(ins: Instruction) -> int:
    """The first of an instruction's operands that is an address."""
    return next(i for i, o in enumerate(ins.operands) if isinstance(o, Address))


def is_windowed(ins: Instruction) -> bool:
    """Whether it reads constants or parameters: through caches of their own, and nobody writes."""
    return "param" in ins.opcode or "const" in ins.opcode


def flat_lanes(machine: Machine, sel: Select, mask: Mask) -> I64:
    """The flat numbers of the lanes that take part: `[warp, lane]`, in one row under a mask."""
    lanes = machine.lane_ids[sel]
    return lanes if mask is None else lanes[mask]


def located_access(d: Decoder, ins: Instruction) -> LocatedAccess | None:
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
        self.memory = d.machine.memory
        self.kind: AccessKind = kind
        self.place, self.size, self.rows = place, size, rows
        #: Whether its step asks for no other place of so many bytes.
        self._only = d.program.opcode(ins).bits in ("load", "store", "atomic")
        self._found: Access | None = None
        self._sel: Select | None = None
        self._mask: Mask = None
        self._misses = self._kept = 0
        #: The last access; its warps, its lanes, its addresses counted from the first one; that.
        self._last: Access | None = None
        self._shape: tuple[Any, Any, bytes] = None, None, b""
        self._first = 0
        self._base = 0  # the first address of the pattern

    def of(self, sel: Select, mask: Mask) -> Access:
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
            if self._only and self._misses < MISSES and address.size:
                found = self._found = self.memory.located = self._like_last(sel, mask, address)
                return found
            lanes = flat_lanes(machine, sel, mask)
        found = self._found = self._access(address, lanes, warps, used)
        if self._only:
            self.memory.located = found
        return found

    def _access(self, address: Array, lanes: I64, sel: Select, mask: Mask) -> Access:
        return Access(
            self.kind,
            self.ins,
            self.place.space,
            address,
            self.size,
            lanes,
            sel,
            mask,
            self.memory,
        )

    # -- accesses that are like the last one -------------------------------------------------------

    def _like_last(self, sel: Select, mask: Mask, address: Array) -> Access:
        """An access for which that is taken over which is known of the last one."""
        first, last = address.item(0), self._last
        if address.size > self._kept and not self._keep(address.size):
            return self._access(address, flat_lanes(self.machine, sel, mask), sel, mask)
        shape = (
            (sel.start, sel.stop) if is_slice(sel) else sel.tobytes(),
            None if mask is None else mask.tobytes(),
            (address - address.dtype.type(first)).tobytes(),
        )
        if shape != self._shape or last is None:
            self._misses += 1
            self._shape = shape
            return self._anew(sel, mask, address, first)
        self._misses = 0
        pattern = last.pattern or self._learn(last)
        if pattern is None or not pattern.allows(first - self._base, self.memory.changes):
            return self._anew(sel, mask, address, first)
        if first == self._first and last.pattern is not None:
            last.sel, last.mask = sel, mask
            return last
        access = self._access(address, last.lanes, sel, mask)
        access.pattern, access.moved = pattern, first - self._base
        access.found = [(pattern.arena, pattern.moved_positions(access.moved), None)]
        self._last, self._first = access, first
        return access

    def _keep(self, lanes: int) -> bool:
        """Whether there is room for what is kept of an access of so many lanes."""
        more, self._kept = lanes - self._kept, lanes
        if self.memory.patterns.take(more):
            return True
        self._misses, self._last = MISSES, None
        return False

    def _anew(self, sel: Select, mask: Mask, address: Array, first: int) -> Access:
        access = self._access(address, flat_lanes(self.machine, sel, mask), sel, mask)
        self._last, self._first = access, first
        return access

    def _learn(self, last: Access) -> AccessPattern | None:
        """The pattern of an access that has been located; None where it has none."""
        memory = self.memory
        if last.found is None or len(last.found) > 1:
            return None
        ((arena, at, which),) = last.found
        if which is not None:
            return None
        if arena is memory.globals:
            low, high = int(at.min()), int(at.max())
            start, end = memory.place_at(low)
        elif arena is memory.shared and memory.cluster == 1:
            offset = at % memory.shared_stride
            low, high = int(offset.min()), int(offset.max())
            start, end = 0, memory.shared_size
        else:
            return None
        self._base = self._first
        room = start - low, end - self.size - high
        lanes = *self._shape[:2], arena is memory.shared, self.size
        number = memory.patterns.number(*lanes, (at - at.item(0)).tobytes())
        return AccessPattern(arena, at, self.size, room, memory.changes, number)

    def around(self, step: Step) -> Step:
        """The whole step: what was found is of this time alone."""
        memory = self.memory

        def run(sel: Select, mask: Mask) -> None:
            self._found = None
            step(sel, mask)
            self._found = memory.located = None

        return run
