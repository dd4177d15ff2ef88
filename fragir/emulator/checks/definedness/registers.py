"""The registers that can hold undefined bits, and these bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.causes import Causes
from fragir.emulator.checks.definedness.choices import Choices
from fragir.emulator.checks.definedness.spreading import full
from fragir.emulator.checks.planes import Plane, PlaneDecoder, later
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.machine.lanes import Mask, Row, Step, store
from fragir.emulator.program.dataflow import Dataflow, dataflow
from fragir.emulator.program.entities import Register
from fragir.emulator.program.program import Program
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine

#: What comes from elsewhere than registers: from memory, another lane, a call.
_ELSEWHERE = ("load", "load fragment", "atomic", "shuffle", "results", "wgmma")
#: Words of loads and atomics on memory that counts as defined.
_DEFINED = frozenset(("global", "const", "param::entry"))
#: What gives defined registers, or those of memory, whatever its operands are.
_OWN = ("load", "load fragment", "atomic")


class FollowedRegisters:
    """Which registers of a program can hold undefined bits: found once."""

    def __init__(self, program: Program, flow: Dataflow) -> None:
        #: Those that some path reads before it has written them.
        self.unwritten = flow.maybe_undefined()
        read_from_elsewhere = {
            r
            for placed, each in zip(program.code, flow.roles, strict=True)
            if program.opcode(placed.ins).bits in _ELSEWHERE
            and _DEFINED.isdisjoint(placed.ins.opcode)
            for r in each.written
        }
        #: All of them.
        choices = Choices.of(program, flow)
        self.tracked = flow.closure(
            self.unwritten | read_from_elsewhere,
            lambda ins: program.opcode(ins).bits not in _OWN,
            sources=lambda ins, each: (*each.read, *choices.conditions(ins)),
        )

    @classmethod
    def of(cls, program: Program, flow: Dataflow) -> FollowedRegisters:
        return program.analyses.once(cls, lambda: cls(program, flow))


class Undefined:
    """A plane in which ones are undefined bits, of registers and of memory."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.flow = dataflow(program)
        self.plane = Plane(machine, 0xFF)
        #: Of undefined bits: what in a tensor core they come from.
        self.causes = Causes(machine, self.plane)
        followed = FollowedRegisters.of(program, self.flow)
        self._unwritten = followed.unwritten
        #: Registers that can hold undefined bits.
        self.tracked = followed.tracked
        #: Registers, as bits of `Dataflow`, that may hold undefined bits at this moment: no other
        #: row of the plane has a one.
        self.doubtful = 0
        #: What `if_doubtful` has made: the registers, and the step without the question.
        self._doubtful_steps: dict[Step, tuple[int, Step]] = {}
        self._everything = self.bits(sorted(self.tracked, key=lambda r: (r.width, r.index)))

    def start_wave(self) -> None:
        self.plane.reset()
        self.causes.start_wave()
        for register in self._unwritten:
            row = self.plane.row(register)
            row[...] = full(np.ones((), np.bool_), row.dtype)
        self.doubtful = self.bits(self._unwritten)

    def row(self, register: Register) -> Row:
        return self.plane.row(register)

    def repeat(self, d: Decoder, ins: tree.Instruction, steering: Sequence[int] = ()) -> Step:
        """The step of an instruction that moves data, on undefined bits and their causes."""
        bits = later(d, lambda: PlaneDecoder(d, self.plane).repeat(ins, steering))
        causes = self.causes.repeat(d, ins, steering)

        def run(sel: Any, mask: Mask) -> None:
            bits(sel, mask)
            causes(sel, mask)

        return run

    def rows(self, registers: Iterable[Register]) -> list[Row]:
        """Those of the registers that are followed."""
        return [self.plane.row(r) for r in registers if r in self.tracked]

    # -- which registers are in doubt --------------------------------------------------------------

    def bits(self, registers: Iterable[Register]) -> int:
        """Those of the registers that are followed, as bits of `doubtful`."""
        return self.flow.bits(r for r in registers if r in self.tracked)

    def doubt_all(self) -> None:
        """Anything may have been written: calls move what frames hold."""
        self.doubtful = self._everything

    def settle(self, registers: Iterable[Register]) -> Callable[[], None]:
        """What looks, after some registers were written, whether they hold undefined bits."""
        rows = [(self.bits([r]), self.plane.row(r)) for r in registers if r in self.tracked]

        def look() -> None:
            doubtful = self.doubtful
            for bit, row in rows:
                doubtful = doubtful | bit if row.any() else doubtful & ~bit
            self.doubtful = doubtful

        return look

    def if_doubtful(
        self, steps: Sequence[Step], read: Iterable[Register], written: Iterable[Register]
    ) -> list[Step]:
        """Steps that change nothing where neither what they read nor what they write is in doubt.

        With defined operands they give defined results.
        """
        if not steps:
            return []
        involved = self.bits([*read, *written])
        look, inner = self.settle(written), sequence(steps)
        if not self.bits(written):

            def check(sel: Any, mask: Mask) -> None:
                if self.doubtful & involved:
                    inner(sel, mask)

            self._doubtful_steps[check] = involved, inner
            return [check]

        def followed(sel: Any, mask: Mask) -> None:
            inner(sel, mask)
            look()

        def run(sel: Any, mask: Mask) -> None:
            if self.doubtful & involved:
                followed(sel, mask)

        self._doubtful_steps[run] = involved, followed
        return [run]

    def before(self, steps: Sequence[Step], step: Step) -> Step:
        """A step with others ahead of it."""
        if not steps:
            return step
        first = sequence(steps)
        if (known := self._doubtful_steps.get(first)) is not None:
            involved, inner = known

            def run(sel: Any, mask: Mask) -> None:
                if self.doubtful & involved:
                    inner(sel, mask)
                step(sel, mask)

            return run

        def both(sel: Any, mask: Mask) -> None:
            first(sel, mask)
            step(sel, mask)

        return both

    def clear(self, registers: Iterable[Register]) -> list[Step]:
        """Make registers defined in the lanes that take part."""
        some = list(registers)
        rows = self.rows(some)

        def run(sel: Any, mask: Mask) -> None:
            for row in rows:
                store(row, sel, mask, 0)

        return self.if_doubtful([run] if rows else [], (), some)
