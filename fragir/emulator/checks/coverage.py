"""Which statements of a kernel a run has executed, and which guards have gone one way only.

A check of its own, for `run(..., checks=[...])`: it finds nothing, it counts. Every statement is
executed by itself, so that a run takes a few times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.program.flow import targets
from fragir.emulator.program.program import RESULTS

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.lanes import Mask, Select, Step
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.numbers.types import Bools
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

#: How control leaves a statement without a guard for good.
_LEAVES = frozenset(("return", "exit", "trap"))


def reachable(program: Program) -> Iterator[int]:
    """The positions of the statements that control can get to, whatever guards say, in order.

    What the emulator puts in (results of a call, the end of a function) is no statement.
    """
    routines = program.routines.values()
    seen: set[int] = set()
    waiting = [program.main.start]
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(program.code):
            continue
        seen.add(at)
        placed = program.code[at]
        ins, ends = placed.ins, program.opcode(placed.ins).ends
        if ends == "branch":
            waiting += targets(program, ins, placed.scope)
        if ends == "call":
            name = program.callee(ins)
            known = None if name is None else program.routine(name)
            waiting += (
                [known.start]
                if known is not None
                else [r.start for r in routines if r.name in program.addressed]
            )
        if ins.guard is not None or ends not in {"branch", *_LEAVES}:
            waiting.append(at + 1)
    made = {routine.end - 1 for routine in routines}
    return (at for at in sorted(seen - made) if program.code[at].ins.opcode[0] != RESULTS)


@dataclass(frozen=True)
class Covered:
    """What runs of one kernel have executed. `lines`: of the PTX, by statement; all others are
    sets of statements. `branches`: those with a guard that may jump, return or exit. `held` and
    `failed`: those whose guard has held, and failed, for some lane."""

    lines: dict[int, int | None]
    branches: frozenset[int]
    guards: frozenset[int]
    executed: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        done, there = self.counts
        one_way = len(self.branches_one_way) + len(self.guards_one_way)
        return f"<{done} of {there} statements, {one_way} lines one way only>"

    def __or__(self, other: Covered) -> Covered:
        """Of both runs together, of the same text and entry."""
        return Covered(
            self.lines,
            self.branches,
            self.guards,
            self.executed | other.executed,
            self.held | other.held,
            self.failed | other.failed,
        )

    @property
    def counts(self) -> tuple[int, int]:
        """Statements executed, and those that control can get to."""
        return len(self.executed & self.lines.keys()), len(self.lines)

    @property
    def missed(self) -> list[int]:
        """The lines of statements that control can get to and that were not executed."""
        return self._lines(self.lines.keys() - self.executed)

    @property
    def branches_one_way(self) -> list[int]:
        """The lines of branches that were executed, and went one way only."""
        return self._one_way(self.branches)

    @property
    def guards_one_way(self) -> list[int]:
        """The lines of other statements whose guard always held, or never."""
        return self._one_way(self.guards)

    def _one_way(self, statements: frozenset[int]) -> list[int]:
        return self._lines(statements & (self.held ^ self.failed))

    def _lines(self, statements: set[int] | frozenset[int]) -> list[int]:
        found = (self.lines[at] for at in statements if at in self.lines)
        return sorted({line for line in found if line is not None})


@dataclass(eq=False)
class Coverage:
    """What makes the check of a launch, and keeps the last: `run(..., checks=[coverage])`."""

    made: list[StatementCoverage] = field(default_factory=list["StatementCoverage"])

    def __repr__(self) -> str:
        return f"<coverage of {len(self.made)} runs>"

    def __call__(self, machine: Machine, program: Program) -> StatementCoverage:
        self.made.append(StatementCoverage(machine, program))
        return self.made[-1]

    @property
    def covered(self) -> Covered:
        """What the last run has executed."""
        return self.made[-1].covered


class StatementCoverage(Hooks):
    """Notes every statement that some lane executes, and how guards go."""

    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self._position = {id(placed.ins): at for at, placed in enumerate(program.code)}
        self._executed, self._held, self._failed = np.zeros((3, len(program.code)), np.bool_)
        self._lines = {
            at: program.error("", program.code[at].ins.at).line for at in reachable(program)
        }

    @cached_property
    def covered(self) -> Covered:
        code, row = self.program.code, self.program.opcode
        guarded = [at for at in self._lines if code[at].ins.guard is not None]
        ends = {at: row(code[at].ins).ends for at in guarded}
        jumps = {"branch", *_LEAVES}
        return Covered(
            self._lines,
            frozenset(at for at in guarded if ends[at] in jumps),
            frozenset(at for at in guarded if ends[at] not in jumps),
            *(
                frozenset(map(int, np.flatnonzero(flags)))
                for flags in (self._executed, self._held, self._failed)
            ),
        )

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        places = np.array([self._position[id(ins)] for ins in group])
        executed = self._executed

        def run(sel: Select, mask: Mask) -> None:
            executed[places] = True
            step(sel, mask)

        return run

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        note = self._guard(d, instruction)

        def run(sel: Select, mask: Mask) -> None:
            note(sel, mask)
            step(sel, mask)

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        note = self._guard(d, instruction)

        def run(sel: Select, mask: Mask) -> int | None:
            note(sel, mask)
            return terminator(sel, mask)

        return run

    def _guard(self, d: Decoder, ins: Instruction) -> Callable[[Select, Mask], None]:
        """Notes for which way a guard goes; where it holds, or there is none, it is executed."""
        at, guard = self._position[id(ins)], ins.guard
        executed, held, failed = self._executed, self._held, self._failed
        if guard is None:

            def always(sel: Select, mask: Mask) -> None:
                executed[at] = True

            return always
        row, negated = d.row(ins, guard.register, "pred"), guard.negated

        def run(sel: Select, mask: Mask) -> None:
            lanes: Bools = row[sel] != negated
            here = np.ones_like(lanes) if mask is None else mask
            if (lanes & here).any():
                executed[at] = held[at] = True
            if (~lanes & here).any():
                failed[at] = True

        return run
