"""From a text to steps on a machine: texts read, programs laid out, statements decoded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, TextIO

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.instrument import instrument, overriding
from fragir.emulator.instructions.collective import needs
from fragir.emulator.instructions.control import Control, guard_step
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.products import is_fusible, mma_group
from fragir.emulator.instructions.table import StraightEncoder, step_of
from fragir.emulator.instructions.wgmma import registers_of
from fragir.emulator.machine.lanes import Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.scheduler import Scheduler
from fragir.emulator.machine.straight import DecodedCode
from fragir.emulator.machine.straight_blocks import (
    CheckedBlocks,
    EncodedBlocks,
    StraightBlocks,
    StraightMaker,
    shape_of,
)
from fragir.emulator.machine.watch import Watch
from fragir.emulator.native.straight import functions
from fragir.emulator.numbers.types import I64, among, distinct
from fragir.emulator.program.failure import statement
from fragir.emulator.program.flow import branches
from fragir.emulator.program.program import Program
from fragir.emulator.tensor_cores.forms import Settings
from fragir.ptx import tree
from fragir.ptx.machines import nvidia
from fragir.ptx.opcodes.row import Opcodes
from fragir.ptx.tree import Module

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
            if row.together:
                code.collectives[at] = needs(decoder, ins)
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
        if row.fuses and ins.guard is None and len(ins.operands) == 4 and not self._is_alone(ins):
            group = [ins]
            while (
                at + len(group) < len(program.code)
                and at + len(group) not in code.leaders
                and is_fusible(decoder, group, program.code[at + len(group)].ins)
                and not self._is_alone(program.code[at + len(group)].ins)
                and program.code[at + len(group)].scope is placed.scope
            ):
                group.append(program.code[at + len(group)].ins)
            step, _ = instrument(decoder, group, mma_group(decoder, group))
            code.steps[at] = self._watch_wgmma(step, group)
            return len(group)
        code.steps[at] = self._step(control, at)
        return 1

    def _is_alone(self, ins: tree.Instruction) -> bool:
        return any(hook.alone(ins) for hook in self.parting)

    def _step(self, control: Control, at: int) -> Step:
        decoder, placed = self.decoder, self.program.code[at]
        ins = placed.ins
        row = self.program.opcode(ins)
        plain = control.calls.end(ins) if row.bits == "results" else step_of(decoder, placed)
        step, asked = instrument(decoder, [ins], plain)
        if ins.guard is not None:
            holds = decoder.row(ins, ins.guard.register, "pred")
            step = guard_step(step, holds, ins.guard.negated)
            for hook in overriding(self.machine.hooks, "wrap_guard"):
                plain, step = step, hook.wrap_guard(decoder, ins, step)
                if step is not plain:
                    asked.append(hook)
        self._look(at, asked)
        return step if row.bits == "wgmma" else self._watch_wgmma(step, [ins])

    def _watch_wgmma(self, step: Step, group: list[tree.Instruction]) -> Step:
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


# -- programs --------------------------------------------------------------------------------------
# Texts that have been read and programs that have been laid out, kept for the next launch.
#
# A program holds where a launch has put its variables, so it is lent to one launch at a time, and
# given back by one that has ended well, which then looks at it no more: `Program.unplace` forgets
# the rest. Launches at the same time, of other threads or from within a callback, make their own.
# What is kept is what was used last, up to a size, and the last of all whatever its size; a row
# that is added to the table of opcodes, or taken out of it, makes all programs new.

#: Characters that have been read into trees, of all texts that are kept; with the programs they
#: take some 30 MB. Those of bodies that nothing has called for take a twentieth.
TEXTS, UNREAD = 1 << 19, 20
#: Instructions of the programs that are kept.
CODES = 1 << 14


@dataclass(slots=True)
class _Kept:
    """Programs of one kernel that no launch has; the module, so that its id stays its own."""

    module: Module
    size: int
    idle: list[Program] = field(default_factory=list[Program])


class Shelf:
    """Modules by their text, programs by module and entry. Safe to share between threads."""

    def __init__(self, opcodes: Opcodes) -> None:
        self._opcodes = opcodes
        self._lock = Lock()
        self._texts: OrderedDict[str, Module] = OrderedDict()
        self._programs: OrderedDict[tuple[int, str | None], _Kept] = OrderedDict()
        self._size = 0  # instructions of the programs together
        self._version = opcodes.version  # of the table that they were made with

    def module(self, text: str) -> Module:
        """The tree of a PTX text, whose bodies are read when a launch gets to them.

        PtxSyntaxError where it has none.
        """
        from fragir.ptx.reader import parse

        with self._lock:
            found = self._texts.get(text)
            if found is not None:
                self._texts.move_to_end(text)
                return found
        module = parse(text, lazy=True)
        with self._lock:
            module = self._texts.setdefault(text, module)
            self._trim()
        return module

    def _trim(self) -> None:
        """Drop the texts that were used longest ago. The newest has not been read yet."""
        from fragir.ptx.reader import characters_read

        sizes = [characters_read(m) + len(text) // UNREAD for text, m in self._texts.items()]
        size = sum(sizes)
        for one in sizes[:-1]:
            if size <= TEXTS:
                break
            self._texts.popitem(last=False)
            size -= one

    def take(self, module: Module, entry: str | None) -> Program:
        """A program that nothing else uses. EmulationError as `Program` has it."""
        with self._lock:
            self._renew()
            kept = self._programs.get((id(module), entry))
            if kept is not None and kept.idle:
                self._size -= kept.size
                return kept.idle.pop()
        return Program(module, entry, self._opcodes)

    def give(self, program: Program, entry: str | None) -> None:
        """Take back what was lent for that entry, as it was asked for."""
        size = len(program.code)
        program.unplace()
        key = id(program.module), entry
        with self._lock:
            self._renew()
            if program.version != self._version:
                return
            kept = self._programs.setdefault(key, _Kept(program.module, size))
            self._programs.move_to_end(key)
            kept.idle.append(program)
            self._size += size
            while self._size > CODES and len(self._programs) > 1:
                _, gone = self._programs.popitem(last=False)
                self._size -= gone.size * len(gone.idle)
            while self._size > CODES and len(kept.idle) > 1:
                kept.idle.pop()
                self._size -= size

    def _renew(self) -> None:
        """Drop the programs where the table of opcodes is another."""
        if self._version != self._opcodes.version:
            self._version = self._opcodes.version
            self._programs.clear()
            self._size = 0

    @property
    def held_counts(self) -> tuple[int, int]:
        """How many texts and programs it keeps."""
        with self._lock:
            return len(self._texts), sum(len(kept.idle) for kept in self._programs.values())

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._texts.clear()
            self._programs.clear()
            self._size = 0
