"""From a program to steps on a machine: every statement is decoded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.instrument import instrument, overriding
from fragir.emulator.instructions.collective import needs
from fragir.emulator.instructions.control import Control, guarded
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.products import fusible, mma_group
from fragir.emulator.instructions.straight import StraightEncoder
from fragir.emulator.instructions.table import step_of
from fragir.emulator.instructions.wgmma import registers_of
from fragir.emulator.machine.code import DecodedCode
from fragir.emulator.machine.lanes import Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.scheduler import Scheduler
from fragir.emulator.machine.straight_blocks import StraightBlocks, StraightMaker, shape_of
from fragir.emulator.machine.straight_templates import CheckedBlocks, EncodedBlocks
from fragir.emulator.machine.watch import Watch
from fragir.emulator.native.straight import functions
from fragir.emulator.numbers.types import I64, among, distinct
from fragir.emulator.program.failure import statement
from fragir.emulator.program.flow import branches
from fragir.emulator.program.program import Program
from fragir.emulator.tensor_cores.types import Settings
from fragir.ptx import tree
from fragir.ptx.machines import nvidia

if TYPE_CHECKING:
    from fragir.emulator.checks.compiled_runs import CompiledRuns
    from fragir.emulator.checks.hooks import Hooks


def nothing(ins: tree.Instruction) -> int:
    """The registers that checks look at, where there are none."""
    return 0


class Decoding:
    """Decodes one program for one machine, checks and all."""

    def __init__(
        self,
        program: Program,
        machine: Machine,
        target: str,
        settings: Settings,
        watch: Watch,
    ) -> None:
        self.program, self.machine = program, machine
        self.decoder = Decoder(program, machine, nvidia(target), settings)
        self.watch = watch
        self.watched = self._wgmma_registers()
        self.parting = overriding(machine.hooks, "alone")
        self.runs = self._runs()

    def scheduler(self, seed: int | None, trace: TextIO | None) -> Scheduler:
        """Decodes the whole program; the scheduler that runs it."""
        program, machine = self.program, self.machine
        count = len(program.code)
        found = branches(program)
        code = DecodedCode([None] * count, {}, set(found.leaders), {}, set())
        polling = found.polling
        straight = self._straight(polling)
        scheduler = Scheduler(machine, program, code, self.watch, seed, trace, straight)
        control = Control(self.decoder, scheduler, polling)
        at = 0
        while at < count:
            with statement(program, program.code[at].ins):
                at += self._decode_from(at, control, code)
        if straight is not None:
            straight.known = self._known_blocks()
        return scheduler

    def _runs(self) -> CompiledRuns | None:
        """What the checks leave to straight-line runs."""
        if not self.machine.hooks or functions() is None:
            return None
        from fragir.emulator.checks.compiled_runs import CompiledRuns  # all checks

        return CompiledRuns.of(self.machine, self.program)

    def _look(self, at: int, asked: Sequence[Hooks]) -> None:
        """Notes that checks look at an instruction."""
        if asked and (self.runs is None or not self.runs.takes(self.decoder, at, asked)):
            self.decoder.wrapped.add(id(self.program.code[at].ins))

    def _straight(self, polling: set[int]) -> StraightMaker | None:
        """What makes runs of instructions that no check has wrapped."""
        library = functions()
        if library is None:
            return None

        def uses_wgmma(ins: tree.Instruction) -> bool:
            if not len(self.watched):
                return False
            touched = registers_of(self.decoder, list(ins.operands))
            return len(among(touched, self.watched)) > 0

        def build(known: EncodedBlocks, taken: I64, budget: int) -> StraightBlocks:
            involved = self.runs.involved if self.runs is not None else nothing
            encoder = StraightEncoder(self.decoder, library, uses_wgmma, polling, involved)
            return StraightBlocks(self.machine, encoder, library, known, taken, budget, self.runs)

        return StraightMaker(build, shape_of(self.machine))

    def _known_blocks(self) -> EncodedBlocks:
        """Blocks that earlier launches have looked through, and others will have."""
        analyses, decoder = self.program.analyses, self.decoder
        if not self.machine.hooks:
            return analyses.once(EncodedBlocks, EncodedBlocks)
        checked = analyses.once(CheckedBlocks, CheckedBlocks)
        return checked.of(decoder.wrapped, decoder.watched)

    def _decode_from(self, at: int, control: Control, code: DecodedCode) -> int:
        """Decode the instruction at a position and those that are fused with it: how many."""
        program, machine, decoder = self.program, self.machine, self.decoder
        decoder.placed = placed = program.code[at]
        ins = placed.ins
        row = program.opcode(ins)
        if row.ends:
            terminator = control.terminator(at)
            asked = list(overriding(machine.hooks, "on_barrier")) if row.ends != "branch" else []
            for hook in overriding(machine.hooks, "wrap_terminator"):
                plain, terminator = terminator, hook.wrap_terminator(decoder, ins, terminator)
                if terminator is not plain:
                    asked.append(hook)
            code.terminators[at] = terminator
            self._look(at, asked)
            return 1
        if row.together:
            code.collectives[at] = needs(decoder, ins)
        if row.accumulates:
            code.warpgroups.add(at)
        if row.fuses and ins.guard is None and len(ins.operands) == 4 and not self._alone(ins):
            group = [ins]
            while (
                at + len(group) < len(program.code)
                and at + len(group) not in code.leaders
                and fusible(decoder, group, program.code[at + len(group)].ins)
                and not self._alone(program.code[at + len(group)].ins)
                and program.code[at + len(group)].scope is placed.scope
            ):
                group.append(program.code[at + len(group)].ins)
            step, _ = instrument(decoder, group, mma_group(decoder, group))
            code.steps[at] = self._watched(step, group)
            return len(group)
        code.steps[at] = self._step(control, at)
        return 1

    def _alone(self, ins: tree.Instruction) -> bool:
        return any(hook.alone(ins) for hook in self.parting)

    def _step(self, control: Control, at: int) -> Step:
        decoder, placed = self.decoder, self.program.code[at]
        ins = placed.ins
        row = self.program.opcode(ins)
        plain = control.calls.end(ins) if row.bits == "results" else step_of(decoder, placed)
        step, asked = instrument(decoder, [ins], plain)
        if ins.guard is not None:
            holds = decoder.row(ins, ins.guard.register, "pred")
            step = guarded(step, holds, ins.guard.negated)
            for hook in overriding(self.machine.hooks, "wrap_guard"):
                plain, step = step, hook.wrap_guard(decoder, ins, step)
                if step is not plain:
                    asked.append(hook)
        self._look(at, asked)
        return step if row.bits == "wgmma" else self._watched(step, [ins])

    def _watched(self, step: Step, group: list[tree.Instruction]) -> Step:
        """Steps that use registers of some wgmma look whether they may."""
        if not len(self.watched):
            return step
        touched = registers_of(self.decoder, [o for i in group for o in i.operands])
        touched = among(touched, self.watched)
        if not len(touched):
            return step
        first = [i.operands[0] for i in group if i.operands]
        written = registers_of(self.decoder, [o for o in first if not isinstance(o, tree.Address)])
        written = among(written, self.watched)
        return self.machine.wgmma.watch(step, touched, written, group[0].mnemonic)

    def _wgmma_registers(self) -> npt.NDArray[np.intp]:
        """The registers that any wgmma uses for its accumulator or A."""
        found: list[npt.NDArray[np.intp]] = [np.zeros(0, np.intp)]
        for placed, (row, _) in zip(self.program.code, self.program.rows(), strict=True):
            if row.accumulates:
                self.decoder.placed = placed
                found.append(registers_of(self.decoder, placed.ins.operands[:2]))
        if len(found) == 1:
            return found[0]
        return distinct(np.concatenate(found))
