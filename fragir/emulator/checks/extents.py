"""Accesses beyond one variable into its neighbour, in any space.

Bounds of memory are the machine's to check: of a block's shared memory, of a buffer. Here an
address that comes from a variable (`address_origins.py`) must stay within it. PTX says nothing of
where variables lie, so whatever lies behind one is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.address_origins import Origin, Origins, place_of
from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import address_of
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.machine.memory import CLUSTER_SHIFT, GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.native.straight import SPACES
from fragir.emulator.numbers.types import I64, count_of, kind_of, width_of
from fragir.emulator.program.entities import Register
from fragir.emulator.program.expressions import constant_or_none
from fragir.emulator.tensor_cores import descriptor
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.issues import Issue
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Transfer
    from fragir.emulator.program.entities import Symbol
    from fragir.emulator.program.program import Program

#: Where a space begins among generic addresses, and which of a kernel's variables are there.
_BASES = {
    "shared": SHARED_WINDOW,
    "dynamic": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "global": GLOBAL_BASE,
    "const": GLOBAL_BASE,
    "param": GLOBAL_BASE,
}
_RANK = ((1 << CLUSTER_SHIFT) - 1) ^ ((1 << 32) - 1)  # bits of an address that name the block
_MBARRIER = 8  # bytes
#: Instructions whose addresses are looked at before they run.
_TOLD = ("copy", "mbarrier", "new mbarrier")


@dataclass(frozen=True, slots=True)
class VariableExtent:
    """A variable: generic addresses [start, end)."""

    name: str
    start: int
    end: int


class Extents(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.origins = Origins.of_program(program)
        self.extents: dict[tuple[str, int], VariableExtent] = {}
        for symbol in program.symbols:
            self._add(symbol)
        #: Of what is looked at, by instruction and operand: the variables it may touch.
        self.allowed: dict[tuple[int, int], list[VariableExtent]] = {}
        #: Of loads, stores and atomics: which operand is looked at.
        self._looked_at: dict[int, int] = {}
        self._current: tree.Instruction | None = None  # the asynchronous one that runs
        self._said: set[int] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether there is a variable with neighbours."""
        return sum(s.space in _BASES for s in program.symbols) > 1

    def _add(self, symbol: Symbol) -> None:
        if symbol.space not in _BASES or symbol.framed or symbol.offset < 0:
            return
        start = _BASES[symbol.space] + symbol.offset
        end = start + symbol.size
        if symbol.space == "dynamic":
            end = SHARED_WINDOW + self.machine.memory.shared_size
        place = place_of(symbol)
        known = self.extents.get(place)
        if known is None or known.end < end:
            self.extents[place] = VariableExtent(symbol.name, start, end)

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        row = d.program.opcode(ins)
        for index, operand in enumerate(ins.operands):
            origin = self.origins.addresses.get((id(ins), index))
            if origin is not None and origin.encoded != isinstance(operand, tree.Address):
                found = self._variables(origin)
                if found and not self._is_safe(d, ins, index, found):
                    self.allowed[id(ins), index] = found
                    if row.access and index == address_of(ins):
                        self._looked_at[id(ins)] = index
        if row.bits in _TOLD:
            return self._around(d, ins, step)
        if row.bits in ("bulk copy", "store later"):

            def remember(sel: Any, mask: Mask) -> None:
                self._current = ins
                step(sel, mask)

            return remember
        return step

    def _variables(self, origin: Origin | None) -> list[VariableExtent]:
        """The variables of an origin; none where one has no size, or nothing is known."""
        if origin is None or not origin.variables:
            return []
        found = [self.extents.get(place) for place in sorted(origin.variables)]
        known = [e for e in found if e is not None and e.end > e.start]
        return known if len(known) == len(found) else []

    def _is_safe(
        self, d: Decoder, ins: tree.Instruction, index: int, found: list[VariableExtent]
    ) -> bool:
        """Whether nothing can go wrong: a constant place within the variable, or one that has all
        of the shared memory, whose bounds the machine looks after."""
        whole = SHARED_WINDOW, SHARED_WINDOW + self.machine.memory.shared_size
        if any((e.start, e.end) == whole for e in found):
            return True
        operand = ins.operands[index]
        row = d.program.opcode(ins)
        if len(found) > 1 or not row.access or row.together:
            return False
        assert isinstance(operand, tree.Address)
        if not isinstance(operand.base, tree.Name) or row.bits == "fill":
            return False
        if isinstance(d.program.find(d.scope, operand.base.text), Register):
            return False
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
        offset = 0 if operand.offset is None else constant_or_none(operand.offset)
        return offset is not None and 0 <= offset <= found[0].end - found[0].start - size

    def _around(self, d: Decoder, ins: tree.Instruction, step: Step) -> Step:
        """mbarriers and cp.async: their address operands, before the step."""
        checks: list[tuple[int, Any, int]] = []
        copies = d.program.opcode(ins).bits == "copy"
        for index, operand in enumerate(ins.operands):
            if (id(ins), index) in self.allowed and isinstance(operand, tree.Address):
                size, space = _MBARRIER, d.space(ins)
                if copies:
                    size = d.literal(ins, 2) or 4
                    space = "global" if index == 1 else "shared"
                checks.append((index, d.place(ins, index, space), size))
        if not checks:
            return step
        lane_ids = self.machine.lane_ids

        def run(sel: Any, mask: Mask) -> None:
            lanes = lane_ids[sel] if mask is None else lane_ids[sel][mask]
            for index, place, size in checks:
                self._look(ins, index, place.space, place.at(sel, mask), size, lanes)
            step(sel, mask)

        return run

    def compiled(self, d: Decoder, instruction: tree.Instruction) -> bool:
        """Accesses that it does not look at, or that have bounds."""
        row = self.program.opcode(instruction)
        if row.bits not in ("load", "store"):
            return False
        return id(instruction) not in self._looked_at or self.bounds(d, instruction) is not None

    def bounds(self, d: Decoder, ins: tree.Instruction) -> tuple[int, int, int] | None:
        """Where the accesses of an instruction may begin: space, first and last byte.

        The space is its index in `native.straight.SPACES`; bytes are counted from the first of the
        lane's shared or local memory, or of all global memory. None: it is not looked at, or may
        touch several variables.
        """
        index = self._looked_at.get(id(ins))
        if index is None or d.space(ins) not in SPACES or "const" in ins.opcode:
            return None
        allowed = self.allowed[id(ins), index]
        if len(allowed) != 1:
            return None
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
        start, end = allowed[0].start, allowed[0].end
        space = "shared" if start < LOCAL_WINDOW else "local" if start < GLOBAL_BASE else "global"
        base = _BASES[space]
        return SPACES.index(space), start - base, end - base - size

    # -- running ---------------------------------------------------------------------------------

    def on_access(self, access: Access) -> None:
        ins = access.instruction
        index = self._looked_at.get(id(ins))
        if index is None:
            return
        address = access.address
        if self.program.opcode(ins).bits == "fill":  # positions, not addresses
            address = address % max(self.machine.memory.shared_stride, 1)
        self._look(ins, index, access.space, address, access.size, access.lanes)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        ins = self._current
        if ins is None:
            return
        stride = max(self.machine.memory.shared_stride, 1)
        for index, cells, size in ((0, transfer.into, transfer.grain), (1, transfer.reads, 16)):
            if cells is not None and (id(ins), index) in self.allowed:
                lanes = np.broadcast_to(transfer.lanes[:1], cells.shape)
                self._look(ins, index, "shared", cells % stride, size, lanes)

    def on_wgmma_issue(self, item: Issue) -> None:
        ins, form = item.form.instruction, item.form
        options = {k: v for k, v in form.options.items() if k.startswith("transpose")}
        b = form.op.shared_addresses(None, item.b, **options)
        operands = [(2, b, item.b)]
        if item.a is not None:
            both = form.op.shared_addresses(item.a, item.b, **options)
            operands.append((1, both[:, : both.shape[1] - b.shape[1]], item.a))
        for index, cells, words in operands:
            inside = int(cells.max()) + 16 <= self.machine.memory.shared_size
            if inside and (id(ins), index) in self.allowed:
                lanes = np.broadcast_to(item.warps[:, None] * LANES, cells.shape)
                notes = [f" ({' AB'[index]}'s {descriptor.said(int(word))})" for word in words]
                self._look(ins, index, "shared", cells, 16, lanes, notes)

    def _look(
        self,
        ins: tree.Instruction,
        index: int,
        space: str,
        address: npt.NDArray[Any],
        size: int,
        lanes: I64,
        notes: Sequence[str] = ("",),
    ) -> None:
        """Report lanes whose `size` bytes are not all in one of the variables.

        `notes`: what else is to be said of each row of `address`, or of all.
        """
        base = _BASES.get(space, 0) if space in ("shared", "local") else 0
        allowed = self.allowed[id(ins), index]
        if not address.size or id(ins) in self._said:
            return
        at = address.astype(np.int64)
        if self.machine.cluster_size > 1:
            at = np.where(self._in_shared(at + base), at & ~_RANK, at)
        low, high = int(at.min()) + base, int(at.max()) + base + size
        if any(e.start <= low and high <= e.end for e in allowed):
            return
        at = at.ravel() + base
        bad = np.ones(at.shape, np.bool_)
        for extent in allowed:
            bad &= (at < extent.start) | (at + size > extent.end)
        bad &= self._mapped(at, size)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            note = notes[first * len(notes) // at.size]
            self._tell(ins, int(at[first]), size, allowed, int(lanes.ravel()[first]), note)

    @staticmethod
    def _in_shared(at: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        return (at >= SHARED_WINDOW) & (at < LOCAL_WINDOW)

    def _mapped(self, at: npt.NDArray[Any], size: int) -> npt.NDArray[np.bool_]:
        """Where the machine has memory: what lies outside is its own error."""
        memory = self.machine.memory
        shared = self._in_shared(at) & (at + size <= SHARED_WINDOW + memory.shared_size)
        local = (at >= LOCAL_WINDOW) & (at + size <= LOCAL_WINDOW + memory.local_size)
        inside = np.zeros(at.shape, np.bool_)
        for buffer in memory.places:
            inside |= (at >= buffer.address) & (at + size <= buffer.address + buffer.size)
        return shared | local | inside

    def _tell(
        self,
        ins: tree.Instruction,
        at: int,
        size: int,
        allowed: list[VariableExtent],
        lane: int,
        note: str,
    ) -> None:
        self._said.add(id(ins))
        near = min(allowed, key=lambda e: max(e.start - at, at + size - e.end))
        there = [e.name for e in self.extents.values() if at < e.end and e.start < at + size]
        there += [
            b.name
            for b in self.machine.memory.places
            if not there and at < b.address + b.size and b.address < at + size
        ]
        offset = at - near.start
        where = f"at offset {offset} of" if offset >= 0 else f"{-offset} bytes before"
        text = f"{size} bytes {where} {near.name}, which has {near.end - near.start}"
        if others := [name for name in there if name != near.name]:
            text += f"; {others[0]} lies there"
        address = at
        for space in (LOCAL_WINDOW, SHARED_WINDOW):
            if space <= at < GLOBAL_BASE:
                address = at - space
                break
        message = f"{ins.mnemonic}: {text}{note}"
        lane = lane if lane < self.machine.warps * LANES else 0
        self.found(self.program, ins.at, "out-of-bounds", message, lane=lane, address=address)
