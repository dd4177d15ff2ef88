"""Branches, calls and exits as terminators; guards (PTX ISA 9.2, sections 9.3 and 9.7.12)."""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.barriers import barrier_terminator
from fragir.emulator.common import EmulationError, Mask, Row, Step
from fragir.emulator.decode import Decoder
from fragir.emulator.memory import AccessFault
from fragir.emulator.program import Program, Register, Routine, Symbol
from fragir.emulator.scheduler import Scheduler, Terminator
from fragir.emulator.state import EXITED, PARKED, Machine
from fragir.ptx import tree

#: First words of instructions that end a block.
ENDING = {"bra", "brx", "call", "ret", "exit", "trap", "brkpt"}
_BARRIERS = {"bar", "barrier"}


def ends_block(ins: tree.Instruction) -> bool:
    """Whether an instruction is a terminator."""
    words = ins.opcode
    if words[0] in _BARRIERS:
        return not (len(words) > 1 and words[1] == "warp")
    return words[0] in ENDING


def guarded(step: Step, row: Row, negated: bool) -> Step:
    """Run a step for the lanes whose predicate holds."""

    def run(sel: Any, mask: Mask) -> None:
        lanes = row[sel]
        if negated:
            lanes = ~lanes
        if mask is not None:
            lanes = lanes & mask
        if lanes.all():
            step(sel, None)
        elif lanes.any():
            try:
                step(sel, lanes)
            except AccessFault as fault:
                if not hasattr(fault, "mask"):
                    fault.mask = lanes  # pyright: ignore[reportAttributeAccessIssue]
                raise

    return run


def targets(program: Program, ins: tree.Instruction, scope: Any) -> list[int]:
    """Where a branch can go."""

    def position(name: tree.Name) -> int:
        found = program.label(scope, name.text)
        if found is None:
            raise program.error(f"the label {name.text} is not declared", name.at)
        return found

    if ins.opcode[0] == "bra":
        (name,) = ins.operands
        if not isinstance(name, tree.Name):
            raise program.error("bra needs a label", ins.at)
        return [position(name)]
    if ins.opcode[0] == "brx":
        table = ins.operands[1]
        if isinstance(table, tree.Name):
            for s in scope.chain():
                if table.text in s.targets:
                    return [position(n) for n in s.targets[table.text]]
        if isinstance(table, tree.Vector):
            return [position(n) for n in table.elements if isinstance(n, tree.Name)]
        raise program.error("brx.idx needs the label of a .branchtargets", ins.at)
    return []


POLLING = {"mbarrier", "atom", "nanosleep"}
_POLLING_LOADS = {"volatile", "acquire", "relaxed", "mmio"}


def polls(ins: tree.Instruction) -> bool:
    """Whether an instruction can see what another thread will do."""
    words = ins.opcode
    if words[0] == "mbarrier":
        return words[1:2] in (("try_wait",), ("test_wait",))
    if words[0] == "ld":
        return any(w in _POLLING_LOADS for w in words)
    return words[0] in POLLING


def polling_edges(program: Program) -> set[int]:
    """Positions of backward branches whose loop polls, not counting the loops inside it."""
    edges: list[tuple[int, int]] = []
    waiting: list[int] = []
    for at, placed in enumerate(program.code):
        if placed.ins.opcode[0] in ("bra", "brx"):
            edges += [(to, at) for to in targets(program, placed.ins, placed.scope) if to <= at]
        elif polls(placed.ins):
            waiting.append(at)
    found: set[int] = set()
    for at in waiting:
        around = [e for e in edges if e[0] <= at <= e[1]]
        for start, end in around:
            inner = any(
                start <= s and e <= end and (s, e) != (start, end) and e - s < end - start
                for s, e in around
            )
            if not inner:
                found.add(end)
    return found


class Control:
    """Makes the terminators of one program."""

    def __init__(self, decoder: Decoder, scheduler: Scheduler, polling: set[int]) -> None:
        self.decoder, self.scheduler, self.polling = decoder, scheduler, polling
        self.machine: Machine = decoder.machine
        self.program = decoder.program
        self._callees: dict[int, Row] = {}

    def terminator(self, at: int) -> Terminator:
        placed = self.program.code[at]
        self.decoder.placed = placed
        ins = placed.ins
        guard = ins.guard
        row = None
        if guard is not None:
            row = self.decoder.row(ins, guard.register, "pred")
        if ins.opcode[0] == "bra":
            (to,) = targets(self.program, ins, placed.scope)
            return self._branch(at, to, row, guard.negated if guard else False)
        plain = self._plain(at, ins)
        if row is None or guard is None:
            return plain
        return self._guarded(at, plain, row, guard.negated)

    def write(self, sel: Any, mask: Mask, value: Any) -> None:
        key = self.machine.key
        key[sel] = value if mask is None else np.where(mask, value, key[sel])

    def _branch(self, at: int, to: int, row: Row | None, negated: bool) -> Terminator:
        backwards = to <= at
        polling = at in self.polling
        scheduler = self.scheduler

        def always(sel: Any, mask: Mask) -> int | None:
            if backwards and scheduler.park(at, polling):
                self.write(sel, mask, to | PARKED)
                return None
            return to

        if row is None:
            return always
        after = at + 1

        def run(sel: Any, mask: Mask) -> int | None:
            taken = row[sel]
            if negated:
                taken = ~taken
            if mask is not None:
                taken = taken & mask
            if not taken.any():
                return after
            if taken.all() if mask is None else (taken == mask).all():
                return always(sel, mask)
            there = to | PARKED if backwards and scheduler.park(at, polling) else to
            self.write(sel, mask, np.where(taken, there, after))
            return None

        return run

    def _guarded(self, at: int, plain: Terminator, row: Row, negated: bool) -> Terminator:
        after = at + 1

        def run(sel: Any, mask: Mask) -> int | None:
            lanes = row[sel]
            if negated:
                lanes = ~lanes
            inside = lanes if mask is None else lanes & mask
            if not inside.any():
                return after
            if inside.all() if mask is None else (inside == mask).all():
                return plain(sel, mask)
            self.write(sel, ~lanes if mask is None else ~lanes & mask, after)
            to = plain(sel, inside)
            if to is not None:
                self.write(sel, inside, to)
            return None

        return run

    def _plain(self, at: int, ins: tree.Instruction) -> Terminator:
        match ins.opcode[0]:
            case "brx":
                return self._indexed(at, ins)
            case "call":
                return self._call(at, ins)
            case "ret" if self._function(at).node.kind != "entry":
                return self._return()
            case "ret" | "exit":
                return self._exit()
            case "trap" | "brkpt":
                return _trap
            case _:
                return barrier_terminator(self.decoder, ins, at + 1)

    def _function(self, at: int) -> Routine:
        function = self.program.code[at].scope.function
        assert function is not None
        return function

    def _exit(self) -> Terminator:
        machine = self.machine

        def run(sel: Any, mask: Mask) -> None:
            self.write(sel, mask, EXITED)
            if mask is None:
                machine.alive[sel] = False
            else:
                machine.alive[sel] = machine.alive[sel] & ~mask
            machine.progress = True
            machine.barriers.after_exit()

        return run

    def _indexed(self, at: int, ins: tree.Instruction) -> Terminator:
        places = np.array(targets(self.program, ins, self.program.code[at].scope), np.int32)
        index = self.decoder.source(ins, 0, "u32")

        def run(sel: Any, mask: Mask) -> None:
            which = index[sel]
            inside = which < len(places)
            if not (inside.all() if mask is None else inside[mask].all()):
                raise EmulationError(f"the index is beyond the {len(places)} targets")
            to = places[np.where(inside, which, 0)]
            self.write(sel, mask, np.where(to <= at, to | PARKED, to))

        return run

    # -- calls -----------------------------------------------------------------------------------

    def _call(self, at: int, ins: tree.Instruction) -> Terminator:
        results, name, arguments = split_call(ins)
        routine = self.program.routine(name.text)
        if routine is None:
            return self._indirect(at, ins, name, arguments)
        if name.text == self._function(at).name:
            raise self.program.error("recursive calls are not supported", ins.at)
        copies = self.copies(ins, arguments, routine.parameters)
        del results

        def run(sel: Any, mask: Mask) -> int:
            for step in copies:
                step(sel, mask)
            self._push(sel, mask, at + 1)
            return routine.start

        return run

    def _indirect(
        self, at: int, ins: tree.Instruction, name: tree.Name, arguments: tuple[tree.Operand, ...]
    ) -> Terminator:
        found = self.program.find(self.program.code[at].scope, name.text)
        if not isinstance(found, Register):
            raise self.program.error(f"the function {name.text} has no body", ins.at)
        row = self.decoder.row(ins, name, "u64")
        routines = list(self.program.routines.values())
        copies = [
            self.copies(ins, arguments, r.parameters) if len(r.parameters) == len(arguments) else []
            for r in routines
        ]

        def run(sel: Any, mask: Mask) -> None:
            number = row[sel]
            for value in np.unique(number if mask is None else number[mask]):
                if value >= len(routines):
                    raise EmulationError(f"0x{value:x} is not the address of a function")
                lanes = number == value if mask is None else (number == value) & mask
                for step in copies[int(value)]:
                    step(sel, lanes)
                self._push(sel, lanes, at + 1)
                self.write(sel, lanes, routines[int(value)].start)

        return run

    def _push(self, sel: Any, mask: Mask, position: int) -> None:
        machine = self.machine
        depth = machine.depth[sel]
        lanes = np.ones(depth.shape, np.bool_) if mask is None else mask
        for level in np.unique(depth[lanes]):
            while len(machine.stack) <= level:
                machine.stack.append(np.zeros(machine.key.shape, np.int32))
            if level > 64:
                raise EmulationError("calls are nested more than 64 deep")
            row = machine.stack[int(level)]
            row[sel] = np.where(lanes & (depth == level), position, row[sel])
        machine.depth[sel] = depth + lanes

    def _return(self) -> Terminator:
        machine = self.machine

        def run(sel: Any, mask: Mask) -> int | None:
            depth = machine.depth[sel] - 1
            to = np.zeros(depth.shape, np.int32)
            for level, row in enumerate(machine.stack):
                to = np.where(depth == level, row[sel], to)
            machine.depth[sel] = (
                depth if mask is None else np.where(mask, depth, machine.depth[sel])
            )
            some = to if mask is None else to[mask]
            if (some == some.flat[0]).all():
                return int(some.flat[0])
            self.write(sel, mask, to)
            return None

        return run

    def copy_results(self, at: int) -> Step:
        """Behind a call: what the function returned goes to the caller's variables."""
        ins = self.program.code[at].ins
        results, name, _ = split_call(ins)
        routine = self.program.routine(name.text)
        if routine is not None:
            steps = self.copies(ins, routine.returns, results)
            return _all(steps)
        # Indirect: every function's results lie in its own variables; take those of the callee.
        row = self.decoder.row(ins, name, "u64")
        routines = list(self.program.routines.values())
        copies = [
            self.copies(ins, r.returns, results) if len(r.returns) == len(results) else []
            for r in routines
        ]

        def run(sel: Any, mask: Mask) -> None:
            number = row[sel]
            for value in np.unique(number if mask is None else number[mask]):
                lanes = number == value if mask is None else (number == value) & mask
                for step in copies[int(value)]:
                    step(sel, lanes)

        return run

    def copies(self, ins: tree.Instruction, sources: Any, places: Any) -> list[Step]:
        """Steps that hand over the arguments or results of a call."""
        if len(sources) != len(places):
            raise self.program.error(
                f"the call passes {len(sources)} values, {len(places)} are expected", ins.at
            )
        return [self._copy(ins, a, b) for a, b in zip(sources, places, strict=True)]

    def _entity(self, ins: tree.Instruction, value: Any) -> Any:
        if isinstance(value, tree.Name):
            return self.program.find(self.decoder.scope, value.text)
        return value

    def _copy(self, ins: tree.Instruction, source: Any, place: Any) -> Step:
        a, b = self._entity(ins, source), self._entity(ins, place)
        memory = self.machine.memory
        if isinstance(b, tree.Sink):
            return lambda sel, mask: None
        if isinstance(a, Symbol) and isinstance(b, Symbol):
            size = min(a.size, b.size)
            start, to = a.offset, b.offset

            def copy_memory(sel: Any, mask: Mask) -> None:
                home = memory.local_home[sel] if mask is None else memory.local_home[sel][mask]
                for byte in range(size):
                    memory.local.bytes[home + to + byte] = memory.local.bytes[home + start + byte]

            return copy_memory
        if isinstance(b, Register):
            kind = f"u{b.width}" if b.width > 1 else "pred"
            row = self.machine.files[b.width][b.index]
            if isinstance(a, Register):
                value = self.machine.files[a.width][a.index]
            elif isinstance(a, Symbol):
                return self._load(a, row)
            else:
                value = self.decoder.row(ins, source, kind)

            def copy_row(sel: Any, mask: Mask) -> None:
                row[sel] = value[sel] if mask is None else np.where(mask, value[sel], row[sel])

            return copy_row
        if isinstance(b, Symbol) and isinstance(a, Register):
            return self._save(self.machine.files[a.width][a.index], b)
        raise self.program.error("this argument of a call is not supported", ins.at)

    def _load(self, symbol: Symbol, row: Row) -> Step:
        memory = self.machine.memory
        width = row.dtype.itemsize

        def run(sel: Any, mask: Mask) -> None:
            value = memory.local.gather(memory.local_home[sel] + symbol.offset, width, 1)
            row[sel] = value if mask is None else np.where(mask, value, row[sel])

        return run

    def _save(self, row: Row, symbol: Symbol) -> Step:
        memory = self.machine.memory
        width = row.dtype.itemsize

        def run(sel: Any, mask: Mask) -> None:
            home = memory.local_home[sel] + symbol.offset
            value = row[sel]
            if mask is not None:
                home, value = home[mask], value[mask]
            memory.local.scatter(home, width, 1, value)

        return run


def _all(steps: list[Step]) -> Step:
    def run(sel: Any, mask: Mask) -> None:
        for step in steps:
            step(sel, mask)

    return run


def _trap(sel: Any, mask: Mask) -> int | None:
    raise EmulationError("the kernel trapped")


def split_call(
    ins: tree.Instruction,
) -> tuple[tuple[tree.Operand, ...], tree.Name, tuple[tree.Operand, ...]]:
    """(results, function, arguments) of a call."""
    operands = list(ins.operands)
    results: tuple[tree.Operand, ...] = ()
    if operands and isinstance(operands[0], tree.Parens):
        results = operands[0].elements
        del operands[0]
    name = operands.pop(0)
    assert isinstance(name, tree.Name)
    arguments: tuple[tree.Operand, ...] = ()
    if operands and isinstance(operands[0], tree.Parens):
        arguments = operands[0].elements
    return results, name, arguments
