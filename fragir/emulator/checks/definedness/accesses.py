"""Undefined bits that are loaded and stored; global memory counts as defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.atomics import Shadowed
from fragir.emulator.checks.definedness.registers import Undefined
from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.checks.located import address_of, located
from fragir.emulator.machine.lanes import LANES, Mask, Step, store
from fragir.emulator.machine.memory import GLOBAL_BASE, Arena
from fragir.emulator.numbers.types import I64, count_of
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.dataflow import Roles
    from fragir.emulator.program.entities import Register


class AccessedBits:
    """Every method: the steps of an instruction, before it happens."""

    def __init__(self, machine: Machine, undefined: Undefined, uses: Uses) -> None:
        self.machine, self.undefined, self.uses = machine, undefined, uses
        self.plane = undefined.plane

    def _beside(self, arena: Arena) -> Arena | None:
        """The bits of a space that may hold undefined ones."""
        memory = self.machine.memory
        if arena is memory.shared:
            return self.plane.memory.shared
        return self.plane.memory.local if arena is memory.local else None

    def load(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        if not any(r in self.undefined.tracked for r in each.written):
            return []
        if d.place(ins, 1, d.space(ins)).space == "global":
            return self.undefined.clear(each.written)
        repeat, found = self.undefined.repeat(d, ins), located(d, ins)
        undefined, look = self.undefined, self.undefined.settle(each.written)
        written = undefined.bits(each.written)
        if found is None:
            return [self._looked_at(repeat, each.written)]

        def run(sel: Any, mask: Mask) -> None:
            access = found.of(sel, mask)
            for arena, at, _ in access.parts():
                beside = self._beside(arena)
                if beside is not None and cells(beside, access.size, at).any():
                    break
            else:
                if not undefined.doubtful & written:
                    return
            repeat(sel, mask)
            look()

        return [run]

    def _looked_at(self, step: Step, written: Sequence[Register]) -> Step:
        """A step that writes registers' bits, whatever they are."""
        look = self.undefined.settle(written)

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            look()

        return run

    def matrix(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        """wmma.load and wmma.store; their stride counts as an address."""
        stride = [r for found in each.operands[2:] for r in found]
        steps = self.uses.checks(ins, stride, "an address")
        load = d.program.opcode(ins).access == "load"
        place = d.place(ins, 1 if load else 0, d.space(ins))
        if load and place.space == "global":
            return steps + self.undefined.clear(each.written)
        if load:
            repeat = self.undefined.repeat(d, ins, (2,))
            return [*steps, self._looked_at(repeat, each.written)]
        checks = self.uses.checks(ins, each.operands[1], "stored to global memory", place)
        if place.space == "global":
            return steps + checks
        repeat = self.undefined.repeat(d, ins, (2,))

        def run(sel: Any, mask: Mask) -> None:
            if place.space == "generic" and (place.at(sel, mask) >= GLOBAL_BASE).all():
                for check in checks:
                    check(sel, mask)
            else:
                repeat(sel, mask)

        return [*steps, run]

    def stored(self, d: Decoder, ins: tree.Instruction, data: list[Register]) -> list[Step]:
        place = d.place(ins, 0, d.space(ins))
        what = "stored to global memory"
        if place.space == "global":
            return self.uses.checks(ins, data, what, place)
        repeat = self.undefined.repeat(d, ins)
        if place.space != "generic":
            return [self._defined(d, ins, data, repeat)]
        checks = self.uses.checks(ins, data, what, place)
        memory, causes = self.machine.memory, self.undefined.causes

        def run(sel: Any, mask: Mask) -> None:
            address = place.at(sel, mask)
            for arena, at, which in memory.spaces("generic", address, sel, mask, 1):
                if arena is not memory.globals:
                    continue
                lanes = mask
                if which is not None:
                    lanes = which
                    if mask is not None:
                        lanes = mask.copy()
                        lanes[mask] = which
                for check in checks:
                    check(sel, lanes)
                repeat(sel, mask)
                planes = (self.plane, causes.plane) if causes.known else (self.plane,)
                for bytes_ in (plane.memory.globals.bytes for plane in planes):
                    for offset in range(32):  # global memory counts as defined
                        bytes_[np.minimum(at + offset, bytes_.size - 1)] = 0
                return
            repeat(sel, mask)

        return [self._defined(d, ins, data, run)]

    def _defined(self, d: Decoder, ins: tree.Instruction, data: list[Register], step: Step) -> Step:
        """The step of a store; where all that it stores is defined, something simpler."""
        found, undefined, bits = located(d, ins), self.undefined, self.undefined.bits(data)
        if found is None or found.rows:
            return step

        def run(sel: Any, mask: Mask) -> None:
            if undefined.doubtful & bits:
                step(sel, mask)
                return
            access = found.of(sel, mask)
            for arena, at, _ in access.parts():
                beside = self._beside(arena)
                if beside is not None:
                    view, shift = seen(beside, access.size)
                    view[at >> shift] = 0

        return run

    def atomic(
        self, d: Decoder, ins: tree.Instruction, each: Roles, data: list[Register]
    ) -> list[Step]:
        place = d.place(ins, address_of(ins), d.space(ins))
        what = "an operand of an atomic on global memory"
        checks = self.uses.checks(ins, data, what, place)
        if place.space == "global" or count_of(ins.opcode) > 1:
            return checks + self.undefined.clear(each.written)
        outs = self.undefined.rows(each.written)
        shadowed = Shadowed(d, ins, self.plane, outs)
        causes = self.undefined.causes
        found, undefined = located(d, ins), self.undefined
        involved = undefined.bits([*data, *each.written])
        look = undefined.settle(each.written)
        memory, beside = self.machine.memory, self.plane.memory.shared

        def run(sel: Any, mask: Mask) -> None:
            if found is not None and not undefined.doubtful & involved:
                access = found.of(sel, mask)
                if not any(
                    cells(beside, access.size, at).any()
                    for arena, at, _ in access.parts()
                    if arena is memory.shared
                ):
                    return
            shadowed.run(place, sel, mask)
            look()
            if causes.known:
                for register in each.written:
                    store(causes.row(register), sel, mask, 0)
            if (
                place.space == "generic"
                and (lanes := self._on_global(place, sel, mask)) is not None
            ):
                for check in checks:
                    check(sel, lanes)

        return [run]

    def _on_global(self, place: MemoryOperand, sel: Any, mask: Mask) -> Mask:
        """Which lanes address global memory; None where none does."""
        lanes = np.ones((len(np.arange(self.machine.warps)[sel]), LANES), np.bool_)
        lanes = lanes if mask is None else mask.copy()
        lanes[lanes] = place.at(sel, mask).ravel() >= GLOBAL_BASE
        return lanes if lanes.any() else None


def seen(arena: Arena, size: int) -> tuple[Any, int]:
    """An arena as cells of accesses of `size` bytes, and how far positions are shifted."""
    return arena.view(min(size, 8), max(size >> 3, 1)), size.bit_length() - 1


def cells(arena: Arena, size: int, at: I64) -> Any:
    """What accesses of `size` bytes at positions find."""
    view, shift = seen(arena, size)
    return view[at >> shift]
