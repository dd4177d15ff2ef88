"""Calls: arguments, results, frames of recursive functions (PTX ISA 9.2, sections 7 and 9.7.12.5).

Registers and variables of a function exist once, unless it can be called again before it has
returned: then each call has a frame of its own in the lane's stack, and the registers of the caller
are kept until it is back. `RESULTS`, the pseudo instruction behind a call, is where that happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fragir.emulator.instructions.call_frames import (
    Fetch,
    Handover,
    Handovers,
    Passed,
    Put,
    bits_of,
    check_stack,
    next_frame,
)
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.machine.externs import EXTERNS, Call, Extern
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, store
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.numbers.types import UINT, Array, distinct, where
from fragir.emulator.program.entities import Register, Routine, Symbol
from fragir.emulator.program.flow import split_call
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator

MOST = 1000  # calls that can be nested
#: Registers of one width of a function at one level: their key, file, places in it, and lanes.
Frame: TypeAlias = tuple[tuple[str, int, int], Row, list[int], Row]
Frames: TypeAlias = Callable[[Select, Mask], Iterator[Frame]]


class Calls(Handovers):
    """The calls of a program on one machine, or on a plane beside it (`planes.py`)."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder)
        #: Which function a register names is read from the machine itself.
        self.real: Decoder = getattr(decoder, "real", decoder)

    # -- terminators -------------------------------------------------------------------------------

    def call(self, at: int) -> Terminator:
        ins = self.program.code[at].ins
        if self.program.callee(ins) is None:
            text = "takes the name of a function, or the register that holds its address"
            raise self.program.error(f"{ins.mnemonic} {text}", ins.at)
        _, name, _ = split_call(ins)
        extern = self.extern(name)
        if extern is not None:
            step = self._extern(ins, extern)

            def outside(sel: Select, mask: Mask) -> int:
                step(sel, mask)
                return at + 1

            return outside
        routine = self.program.routine(name.text)
        begin = self.begin(ins)
        if routine is not None:
            if routine.node.kind == "entry":
                text = f"{name.text} is a kernel, a call is of a function"
                raise self.program.error(text, name.at)
            only = routine

            def direct(sel: Select, mask: Mask) -> int:
                begin(sel, mask)
                self._push(sel, mask, at + 1, only)
                return only.start

            return direct
        row = self._number(ins, name)
        routines = list(self.program.routines.values())

        def indirect(sel: Select, mask: Mask) -> None:
            begin(sel, mask)
            number = row[sel]
            key = self.machine.key
            for value in distinct(number if mask is None else number[mask]):
                if not 0 < value <= len(routines):
                    raise EmulationError(f"0x{value:x} is not the address of a function")
                lanes = number == value if mask is None else (number == value) & mask
                callee = routines[int(value) - 1]
                if callee.node.kind == "entry":
                    text = f"the address of {callee.name}, a kernel; a call is of a function"
                    raise EmulationError(f"0x{value:x} is {text}")
                self._push(sel, lanes, at + 1, callee)
                key[sel] = np.where(lanes, callee.start, key[sel])

        return indirect

    def extern(self, name: tree.Name) -> Extern | None:
        """What stands for a function that has no body."""
        if self.program.routine(name.text) is not None:
            return None
        return EXTERNS.get(name.text)

    def _number(self, ins: tree.Instruction, name: tree.Name) -> Row:
        found = self.program.find(self.decoder.scope, name.text)
        if not isinstance(found, Register):
            raise self.program.error(f"the function {name.text} has no body", ins.at)
        return self.real.row(ins, name, "u64")

    def ret(self) -> Terminator:
        machine = self.machine

        def run(sel: Select, mask: Mask) -> int | None:
            depth = machine.depth[sel] - 1
            to = np.zeros(depth.shape, np.int32)
            for level in distinct(depth if mask is None else depth[mask]):
                here = depth == level if mask is None else (depth == level) & mask
                to[here] = machine.stack[int(level)][sel][here]
                if self.program.frames:
                    frame, top = machine.frames[int(level)]
                    store(machine.frame, sel, here, frame[sel])
                    store(machine.stack_top, sel, here, top[sel])
            store(machine.depth, sel, mask, depth)
            some = to if mask is None else to[mask]
            if (some == some.flat[0]).all():
                return int(some.flat[0])
            key = machine.key
            key[sel] = to if mask is None else np.where(mask, to, key[sel])
            return None

        return run

    def _push(self, sel: Select, mask: Mask, position: int, callee: Routine) -> None:
        """Remember where the lanes come back, and give them the frame of the callee."""
        machine = self.machine
        depth = machine.depth[sel]
        lanes = np.ones(depth.shape, np.bool_) if mask is None else mask
        for level in distinct(depth[lanes]):
            if level >= MOST:
                raise EmulationError(f"calls are nested more than {MOST} deep")
            while len(machine.stack) <= level:
                machine.stack.append(np.zeros(machine.key.shape, np.int32))
                machine.frames.append((machine.frame.copy(), machine.stack_top.copy()))
            here = lanes & (depth == level)
            store(machine.stack[int(level)], sel, here, position)
            if self.program.frames:
                for row, now in zip(
                    machine.frames[int(level)], (machine.frame, machine.stack_top), strict=True
                ):
                    store(row, sel, here, now[sel])
        store(machine.depth, sel, mask, depth + 1)
        if callee.frame_size:
            base = next_frame(machine.stack_top[sel])
            top = base + np.uint64(callee.frame_size)
            check_stack(machine, top, mask)
            store(machine.frame, sel, mask, base)
            store(machine.stack_top, sel, mask, top)

    # -- what moves --------------------------------------------------------------------------------

    def begin(self, ins: tree.Instruction) -> Step:
        """Keep the caller's registers where it may be called again, and pass the arguments."""
        _, name, arguments = split_call(ins)
        routine = self.program.routine(name.text)
        keep = self._keep(routine)
        if routine is not None:
            move = self.moves(ins, arguments, routine.parameters, into=routine)

            def direct(sel: Select, mask: Mask) -> None:
                if keep is not None:
                    keep(sel, mask)
                move.run(sel, mask)

            return direct
        if self.extern(name) is not None:
            return self._forget(ins)
        row = self._number(ins, name)
        moves = self._all(ins, arguments, lambda r: r.parameters, passing=True)

        def indirect(sel: Select, mask: Mask) -> None:
            if keep is not None:
                keep(sel, mask)
            for lanes, move in _split(row[sel], mask, moves):
                move.run(sel, lanes)

        return indirect

    def end(self, ins: tree.Instruction) -> Step:
        """Behind a call: the results go to the caller, whose registers are as before."""
        results, name, _ = split_call(ins)
        routine = self.program.routine(name.text)
        restore = self._restore(routine)
        if routine is None and self.extern(name) is not None:
            return lambda sel, mask: None
        if routine is not None:
            only = self.moves(ins, routine.returns, results, out_of=routine)

            def direct(sel: Select, mask: Mask) -> None:
                values = only.fetch(sel, mask)
                if restore is not None:
                    restore(sel, mask)
                only.put(sel, mask, values)

            return direct
        row = self._number(ins, name)
        moves = self._all(ins, results, lambda r: r.returns, passing=False)

        def indirect(sel: Select, mask: Mask) -> None:
            number = row[sel].copy()
            if restore is not None:
                number = self._kept_number(ins, name, sel, number)
            parts = list(_split(number, mask, moves))
            values = [move.fetch(sel, lanes) for lanes, move in parts]
            if restore is not None:
                restore(sel, mask)
            for (lanes, move), value in zip(parts, values, strict=True):
                move.put(sel, lanes, value)

        return indirect

    def _all(
        self,
        ins: tree.Instruction,
        operands: Sequence[tree.Operand],
        side: Callable[[Routine], Sequence[Passed]],
        passing: bool,
    ) -> list[Handover]:
        """The values of an indirect call, for every function that it may call."""
        result = [Handover([])]  # no function has the number 0
        for routine in self.program.routines.values():
            theirs = side(routine)
            if routine.node.kind == "entry" or not self._fits(theirs, operands):
                result.append(Handover([]))
            elif passing:
                result.append(self.moves(ins, operands, theirs, into=routine))
            else:
                result.append(self.moves(ins, theirs, operands, out_of=routine))
        return result

    def _fits(self, theirs: Sequence[object], operands: Sequence[tree.Operand]) -> bool:
        """Whether an indirect call can be one of a function with such parameters, or results."""
        if len(theirs) != len(operands):
            return False
        sizes = [bits_of(self.entity(operand)) for operand in operands]
        return all(n is None or n == bits_of(t) for n, t in zip(sizes, theirs, strict=True))

    # -- registers of recursive functions ----------------------------------------------------------

    def _again(self, callee: Routine | None) -> Routine | None:
        """The calling function, if the callee may call it before it returns."""
        caller = self.decoder.scope.function
        assert caller is not None
        return caller if self.program.reenters(caller, callee) else None

    def _rows(self, routine: Routine) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for register in routine.registers:
            found.setdefault(register.width, []).append(register.index)
        return found

    def _frames(self, caller: Routine) -> Frames:
        """Of every level of recursion that stands there: its key, registers, and lanes."""
        rows, machine = self._rows(caller), self.machine

        def frames(sel: Select, mask: Mask) -> Iterator[Frame]:
            for level, lanes in _levels(machine, sel, mask):
                for width, indices in rows.items():
                    yield (caller.name, level, width), machine.files[width], indices, lanes

        return frames

    def _keep(self, callee: Routine | None) -> Step | None:
        caller = self._again(callee)
        if caller is None:
            return None
        frames, machine = self._frames(caller), self.machine

        def run(sel: Select, mask: Mask) -> None:
            for key, file, indices, lanes in frames(sel, mask):
                rows = file[indices]
                kept = machine.kept.get(key)
                if kept is None:
                    kept = machine.kept[key] = np.zeros_like(rows)
                kept[:, sel] = np.where(lanes, rows[:, sel], kept[:, sel])

        return run

    def _restore(self, callee: Routine | None) -> Step | None:
        caller = self._again(callee)
        if caller is None:
            return None
        frames, machine = self._frames(caller), self.machine

        def run(sel: Select, mask: Mask) -> None:
            for key, file, indices, lanes in frames(sel, mask):
                kept = machine.kept[key]
                for place, index in enumerate(indices):
                    store(file[index], sel, lanes, kept[place][sel])

        return run

    def _kept_number(
        self, ins: tree.Instruction, name: tree.Name, sel: Select, number: Array
    ) -> Array:
        """The function that a register named before the call; the callee may have changed it."""
        found = self.program.find(self.decoder.scope, name.text)
        caller = self.decoder.scope.function
        machine = self.real.machine
        if not isinstance(found, Register) or caller is None:
            return number
        place = self._rows(caller)[found.width].index(found.index)
        for level, lanes in _levels(machine, sel, None):
            kept = machine.kept.get((caller.name, level, found.width))
            if kept is not None:
                number = where(lanes, kept[place][sel], number)
        return number

    # -- functions without a body ------------------------------------------------------------------

    def _extern(self, ins: tree.Instruction, extern: Extern) -> Step:
        results, name, arguments = split_call(ins)
        if len(arguments) != len(extern.parameters) or len(results) > 1:
            raise self.program.error(
                f"{name.text} takes {len(extern.parameters)} arguments, not {len(arguments)}",
                ins.at,
            )
        fetches = self.passed(ins)
        put: Put | None = None
        if results and not isinstance(results[0], tree.Sink):
            entity = self.entity(results[0])
            put = self.put(ins, entity, extern.result, False)
        machine = self.machine

        def run(sel: Select, mask: Mask) -> None:
            values = [f(sel, mask) for f in fetches]
            result = np.zeros(machine.key[sel].shape, UINT[extern.result])
            lanes = np.ones(result.shape, np.bool_) if mask is None else mask
            call = Call(machine)
            ids = machine.lane_ids[sel][lanes].tolist()
            arguments = zip(*(v[lanes].tolist() for v in values), strict=True)
            answers: list[int] = []
            for lane, given in zip(ids, arguments, strict=True):
                try:
                    answers.append(extern.act(call, lane, given))
                except AccessFault as fault:
                    fault.index = len(answers)
                    raise
            result[lanes] = answers
            if put is not None:
                put(sel, mask, result)

        return run

    def passed(self, ins: tree.Instruction) -> list[Fetch]:
        """The arguments of a call of a function without a body."""
        _, name, arguments = split_call(ins)
        extern = self.extern(name)
        sizes = () if extern is None else extern.parameters
        return [self._value(ins, a, size) for a, size in zip(arguments, sizes, strict=True)]

    def _value(self, ins: tree.Instruction, operand: tree.Operand, size: int) -> Fetch:
        entity = self.entity(operand)
        return self.fetch(ins, operand, entity, Register(8 * size, 0, f"b{8 * size}"), size, False)

    def _forget(self, ins: tree.Instruction) -> Step:
        """On a plane: nothing is known of what such a function returns."""
        results, _, _ = split_call(ins)
        puts: list[Put] = []
        for result in results:
            entity = self.entity(result)
            if isinstance(entity, Register | Symbol):
                size = entity.size if isinstance(entity, Symbol) else max(entity.width // 8, 1)
                puts.append(self.put(ins, entity, size, False))

        def run(sel: Select, mask: Mask) -> None:
            shape = self.machine.key[sel].shape
            for put in puts:
                put(sel, mask, np.zeros(shape, np.uint64))

        return run


def _split(number: Array, mask: Mask, moves: Sequence[Handover]) -> list[tuple[Array, Handover]]:
    """(lanes, what moves) for every function that lanes call."""
    result: list[tuple[Array, Handover]] = []
    for value in distinct(number if mask is None else number[mask]):
        if 0 <= value < len(moves):
            lanes = number == value
            result.append((lanes if mask is None else lanes & mask, moves[int(value)]))
    return result


def _levels(machine: Machine, sel: Select, mask: Mask) -> list[tuple[int, Array]]:
    """(depth, lanes) of the calls that lanes are in."""
    depth = machine.depth[sel]
    levels = distinct(depth if mask is None else depth[mask])
    return [(int(v), depth == v if mask is None else (depth == v) & mask) for v in levels]
