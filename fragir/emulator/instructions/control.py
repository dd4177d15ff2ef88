"""Branches, calls and exits as terminators; guards (PTX ISA 9.2, sections 9.3 and 9.7.12)."""

from __future__ import annotations

import numpy as np

from fragir.emulator.instructions.barriers import barrier_terminator
from fragir.emulator.instructions.calls import Calls
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.tensor_memory import allocation_terminator
from fragir.emulator.machine.lanes import Mask, Row, Select, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.scheduler import Scheduler
from fragir.emulator.machine.state import EXITED, PARKED
from fragir.emulator.machine.straight import Terminator
from fragir.emulator.numbers.types import Array, every, some
from fragir.emulator.program.entities import Routine
from fragir.emulator.program.flow import targets
from fragir.emulator.report import EmulationError
from fragir.ptx import tree


def guard_step(step: Step, row: Row, negated: bool) -> Step:
    """Run a step for the lanes whose predicate holds."""

    def run(sel: Select, mask: Mask) -> None:
        lanes = row[sel]
        if negated:
            lanes = ~lanes
        if mask is not None:
            lanes = lanes & mask
        if every(lanes):
            step(sel, None)
        elif some(lanes):
            lanes = lanes.copy()  # the step may write the predicate, in the midst of it
            try:
                step(sel, lanes)
            except AccessFault as fault:
                if not hasattr(fault, "mask"):
                    fault.mask = lanes  # pyright: ignore[reportAttributeAccessIssue]
                raise

    return run


class Control:
    """Makes the terminators of one program."""

    def __init__(self, decoder: Decoder, scheduler: Scheduler, polling: set[int]) -> None:
        self.decoder, self.scheduler, self.polling = decoder, scheduler, polling
        self.machine: Machine = decoder.machine
        self.program = decoder.program
        self.calls = Calls(decoder)

    def terminator(self, at: int) -> Terminator:
        placed = self.program.code[at]
        self.decoder.placed = placed
        ins = placed.ins
        guard = ins.guard
        row = None
        if guard is not None:
            row = self.decoder.row(ins, guard.register, "pred")
        if self.program.opcode(ins).ends == "branch" and len(ins.operands) == 1:
            (to,) = targets(self.program, ins, placed.scope)
            return self._branch(at, to, row, guard.negated if guard else False)
        plain = self._plain_terminator(at, ins)
        if row is None or guard is None:
            return plain
        return self._guarded_terminator(at, plain, row, guard.negated)

    def write(self, sel: Select, mask: Mask, value: int | Array) -> None:
        key = self.machine.key
        key[sel] = value if mask is None else np.where(mask, value, key[sel])

    def _branch(self, at: int, to: int, row: Row | None, negated: bool) -> Terminator:
        backwards = to <= at
        polling = at in self.polling
        scheduler = self.scheduler

        def always(sel: Select, mask: Mask) -> int | None:
            if backwards and scheduler.park(at, polling):
                self.write(sel, mask, to | PARKED)
                return None
            return to

        if row is None:
            return always
        after = at + 1

        def run(sel: Select, mask: Mask) -> int | None:
            taken = row[sel]
            if negated:
                taken = ~taken
            if mask is not None:
                taken = taken & mask
            if not some(taken):
                return after
            if every(taken if mask is None else taken == mask):
                return always(sel, mask)
            there = to | PARKED if backwards and scheduler.park(at, polling) else to
            self.write(sel, mask, np.where(taken, there, after))
            return None

        return run

    def _guarded_terminator(
        self, at: int, plain: Terminator, row: Row, negated: bool
    ) -> Terminator:
        after = at + 1

        def run(sel: Select, mask: Mask) -> int | None:
            lanes = row[sel]
            if negated:
                lanes = ~lanes
            inside = lanes if mask is None else lanes & mask
            if not some(inside):
                return after
            if every(inside if mask is None else inside == mask):
                return plain(sel, mask)
            self.write(sel, ~lanes if mask is None else ~lanes & mask, after)
            to = plain(sel, inside)
            if to is not None:
                self.write(sel, inside, to)
            return None

        return run

    def _plain_terminator(self, at: int, ins: tree.Instruction) -> Terminator:
        match self.program.opcode(ins).ends:
            case "branch":
                return self._indexed_terminator(at, ins)
            case "call":
                return self.calls.call(at)
            case "return" if self._function(at).node.kind != "entry":
                return self.calls.ret()
            case "return" | "exit":
                return self._exit()
            case "trap":
                return self._trap(ins.opcode[0])
            case "allocation":
                return allocation_terminator(self.decoder, ins, at, self.scheduler.gather)
            case _:
                return barrier_terminator(self.decoder, ins, at + 1)

    def _function(self, at: int) -> Routine:
        function = self.program.code[at].scope.function
        assert function is not None
        return function

    def _exit(self) -> Terminator:
        machine = self.machine

        def run(sel: Select, mask: Mask) -> None:
            self.write(sel, mask, EXITED)
            if mask is None:
                machine.alive[sel] = False
            else:
                machine.alive[sel] = machine.alive[sel] & ~mask
            machine.progress = True
            machine.barriers.after_exit()

        return run

    def _trap(self, word: str) -> Terminator:
        machine = self.machine
        what = "the kernel trapped" if word == "trap" else "the kernel came to a breakpoint"

        def run(sel: Select, mask: Mask) -> None:
            error = EmulationError(what)
            warps = np.arange(machine.warps)[sel]
            first = np.argwhere(machine.alive[sel] if mask is None else mask)[0]
            error.warp, error.lane = int(warps[first[0]]), int(first[1])
            raise error

        return run

    def _indexed_terminator(self, at: int, ins: tree.Instruction) -> Terminator:
        places = np.array(targets(self.program, ins, self.program.code[at].scope), np.int32)
        index = self.decoder.source(ins, 0, "u32")

        def run(sel: Select, mask: Mask) -> None:
            which = index[sel]
            inside = which < len(places)
            if not (inside.all() if mask is None else inside[mask].all()):
                raise EmulationError(f"the index is beyond the {len(places)} targets")
            to = places[np.where(inside, which, 0)]
            self.write(sel, mask, np.where(to <= at, to | PARKED, to))

        return run
