"""Where checks look at a kernel that runs.

A check is a subclass of `Hooks` that overrides what it needs: what the machine tells while it runs
(`machine/events.py`), and the steps themselves, when they are decoded. `machine.hooks` holds the
checks of a launch in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fragir.emulator.instructions.alu import sequence
from fragir.emulator.machine.events import Observer
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.report import PERFORMANCE, Finding, Severity, Why

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


class Hooks(Observer):
    """A check: override what it needs to see. Steps are wrapped only where a check asks for it.

    It is made for one launch, before anything is decoded: memory is there, its contents too. What
    it gathers over the launch is complete in `on_launch_end`; `on_wave_end` comes more often. Where
    a check of a user's has both `partial` and `merge`, its launches may be divided over processes,
    each with a copy of the check; one that also says something while blocks run, in a process, is
    made once more for a run in one.
    """

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine, self.program = machine, program

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether it has anything to look at in a program; else a launch goes without it."""
        return True

    def overrides(self, name: str) -> bool:
        """Whether this check has a method of its own of that name: who has not is not asked."""
        return getattr(type(self), name) is not getattr(Hooks, name)

    # -- when the program is decoded -----------------------------------------------------------

    def alone(self, instruction: Instruction) -> bool:
        """Whether no neighbour may be fused with an mma: for who looks between them."""
        return False

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        """Put something around a step. `group`: its instruction, or neighbouring independent mma.

        The step is called for the lanes whose guard holds. `d` can still be asked for operands.
        """
        return step

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        """The same for a guarded instruction with its guard (called with all lanes there)."""
        return step

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        """Put something around a branch, call, ret, exit, bar or barrier (its guard included)."""
        return terminator

    # -- straight-line runs ----------------------------------------------------------------------

    def compiled(self, d: Decoder, instruction: Instruction) -> bool:
        """Whether `CompiledRuns` does all that this check does at an instruction.

        It is asked, after `wrap`, of those that it has wrapped and of accesses and barriers that it
        is told of.
        """
        return False

    # -- blocks in several processes -------------------------------------------------------------

    def partial(self) -> Any:
        """What it has gathered over waves, which it forgets: it goes on with nothing.

        A process of a divided launch sends this, pickled, when its blocks have ended. None where
        nothing is gathered.
        """
        return None

    def merge(self, partial: Any) -> None:
        """Adds what `partial` returned, here or in another process, in the order of the blocks."""

    # -- old names ---------------------------------------------------------------------------------

    def on_wave(self) -> None:
        """The old name of `on_wave_start`; for checks that call their base's."""

    def on_finish(self) -> None:
        """The old name of `on_wave_end`; for checks that call their base's."""

    # -- grids one after the other ---------------------------------------------------------------

    def for_next_grid(self) -> Any:
        """What the same check of a grid that comes after this one, on a stream, has to know."""
        return None

    # -- for subclasses --------------------------------------------------------------------------

    def report(
        self,
        d: Decoder,
        instruction: Instruction,
        kind: str,
        message: str,
        *,
        lane: int | None = None,
        address: int | None = None,
        subject: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Add a finding at an instruction; `lane` is a flat number. See `Finding`."""
        self.found(
            d.program,
            instruction.at,
            kind,
            message,
            lane=lane,
            address=address,
            subject=subject,
            severity=severity,
        )

    def found(
        self,
        program: Program,
        at: int,
        kind: str,
        message: str,
        *,
        lane: int | None = None,
        address: int | None = None,
        subject: str = "",
        severity: Severity | None = None,
        other: tuple[int | None, int | None] | None = None,
        why: Why | None = None,
    ) -> Finding:
        """Add a finding at a place in the PTX: a remark or an error by its kind, or a letter."""
        where = program.error("", at)
        warp = None if lane is None else lane // LANES
        if warp is not None:
            block, local = self.machine.place(warp)
            message = f"{message} (block {block} warp {local} lane {(lane or 0) % LANES})"
            warp = local
        report = self.machine.report
        severity = severity or ("remark" if kind in PERFORMANCE else "error")
        finding = Finding(
            kind,
            message,
            where.file,
            where.line,
            where.col,
            warp,
            None if lane is None else lane % LANES,
            address,
            subject,
            severity,
            other,
            why=why,
        )
        (report.remarks if severity == "remark" else report.findings).append(finding)
        return finding


def with_steps_ahead(steps: Sequence[Step], terminator: Terminator) -> Terminator:
    """A terminator with steps ahead of it."""
    if not steps:
        return terminator
    before = sequence(steps)

    def run(sel: Select, mask: Mask) -> int | None:
        before(sel, mask)
        return terminator(sel, mask)

    return run
