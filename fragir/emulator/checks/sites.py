"""Which instruction it is: for what is told without it, such as copies and barriers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fragir.emulator.machine.code import Terminator
    from fragir.emulator.machine.lanes import Mask, Step
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode
    from fragir.ptx.tree import Instruction


class Sites:
    """`current`: the place in the program of the asynchronous instruction, or of the cluster's
    barrier, that ran last.

    `last`: the greatest number; instructions of very long programs share it.
    """

    def __init__(self, program: Program, last: int | None = None) -> None:
        self.program = program
        count = len(program.code) if last is None else last
        self._places = {id(p.ins): min(at, count) for at, p in enumerate(program.code)}
        self.current = 0

    def of(self, instruction: Instruction) -> int:
        """The place of an instruction."""
        return self._places[id(instruction)]

    def instruction(self, site: int) -> Instruction:
        return self.program.code[site].ins

    def row(self, site: int) -> Opcode:
        return self.program.opcode(self.instruction(site))

    def words(self) -> tuple[str, ...]:
        """The opcode of the current one."""
        return self.program.code[self.current].ins.opcode

    def line(self, site: int) -> int | None:
        """The line of the PTX."""
        return self.program.error("", self.program.code[site].ins.at).line

    def during(self, instruction: Instruction, step: Step) -> Step:
        """The step of an instruction, which is the current one from there on."""
        site = self.of(instruction)

        def run(sel: Any, mask: Mask) -> None:
            self.current = site
            step(sel, mask)

        return run

    def during_barrier(self, instruction: Instruction, terminator: Terminator) -> Terminator:
        """The same for a barrier of the cluster; others are left as they are."""
        if self.program.opcode(instruction).ends != "cluster barrier":
            return terminator
        return self.during_terminator(instruction, terminator)

    def during_terminator(self, instruction: Instruction, terminator: Terminator) -> Terminator:
        """The terminator of an instruction, which is the current one from there on."""
        site = self.of(instruction)

        def run(sel: Any, mask: Mask) -> int | None:
            self.current = site
            return terminator(sel, mask)

        return run
