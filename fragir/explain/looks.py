"""Registers that are read while PTX runs on the emulator: at a statement, at one execution of it.

A `Look` says where and what; `Looking` is the check that takes it down. Statements that nobody
looks at are decoded as ever, so a run costs what it costs without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator import Hooks
from fragir.errors import FragirError
from fragir.explain.held import ValueAsked

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.lanes import Mask, Row, Select, Step
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

LANES = 32
Words = npt.NDArray[np.uint64]


class Enough(FragirError):
    """The block that was to be looked at has ended: what comes behind it need not run."""


@dataclass(eq=False)
class Look:
    """What registers hold before or after the statement at a line of PTX (1-based).

    `occurrence`: at which execution by a lane, from 1 on; None: the last. `entry`: in which kernel,
    None: in whichever runs. What is found: `words` of every register, as bits [warp, lane],
    `reached`: which lanes came there so often, `times`: how often each came at all, `under_way`:
    registers that a wgmma was yet to write.
    """

    line: int
    registers: tuple[str, ...]
    after: bool = False
    entry: str | None = None
    block: tuple[int, int, int] = (0, 0, 0)
    occurrence: int | None = 1
    words: dict[str, Words] = field(default_factory=dict[str, Words])
    times: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, LANES), np.int64))
    reached: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, LANES), np.bool_))
    under_way: set[str] = field(default_factory=set[str])

    def begin(self, warps: int) -> None:
        """A block of so many warps is about to run."""
        if len(self.times) != warps:
            self.times = np.zeros((warps, LANES), np.int64)
            self.reached = np.zeros((warps, LANES), np.bool_)
            self.words = {name: np.zeros((warps, LANES), np.uint64) for name in self.registers}


class Looking(Hooks):
    """Takes down what the registers of some looks hold."""

    def __init__(
        self, machine: Machine, program: Program, looks: Sequence[Look], *, stops: bool
    ) -> None:
        super().__init__(machine, program)
        self.stops = stops
        self.looks = [one for one in looks if one.entry in (None, program.entry)]
        self.blocks = {one.block for one in self.looks}
        self.here: dict[tuple[int, int, int], int] = {}  # block -> its first warp, in this wave
        self.left = set(self.blocks)
        wanted = {one.line for one in self.looks}
        self.lines: dict[int, int] = {}  # place of a statement -> its line, where it is looked at
        if program.source is not None and wanted:
            for placed in program.code:
                line = program.source.place(placed.ins.at)[0]
                if line in wanted:
                    self.lines[placed.ins.at] = line

    def alone(self, instruction: Instruction) -> bool:
        return instruction.at in self.lines

    def on_wave_start(self) -> None:
        machine, self.here = self.machine, {}
        coordinates = machine.block_coordinates()
        for first in range(0, machine.resident, machine.warps_per_block):
            x, y, z = (int(c) for c in coordinates[first])
            if (x, y, z) in self.blocks:
                self.here[x, y, z] = first
        for one in self.looks:
            if one.block in self.here:
                one.begin(machine.warps_per_block)

    def on_wave_end(self) -> None:
        self.left -= set(self.here)
        if self.stops and not self.left:
            raise Enough("the blocks that were asked for have ended")

    # -- steps -----------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        if group[0].at not in self.lines or group[0].guard is not None:
            return step
        return self._around(d, group[0], step)

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        return self._around(d, instruction, step) if instruction.at in self.lines else step

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if instruction.at not in self.lines:
            return terminator
        takers = self._takers(d, instruction, after=False)

        def run(sel: Select, mask: Mask) -> int | None:
            for take in takers:
                take(sel, mask)
            return terminator(sel, mask)

        return run

    def _around(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        before = self._takers(d, instruction, after=False)
        behind = self._takers(d, instruction, after=True)

        def run(sel: Select, mask: Mask) -> None:
            for take in before:
                take(sel, mask)
            step(sel, mask)
            for take in behind:
                take(sel, mask)

        return run

    def _takers(self, d: Decoder, instruction: Instruction, *, after: bool) -> list[Step]:
        line = self.lines[instruction.at]
        found = [one for one in self.looks if (one.line, one.after) == (line, after)]
        return [self._taker(d, one) for one in found]

    def _taker(self, d: Decoder, look: Look) -> Step:
        rows = {name: register_of(d, name, look.line) for name in look.registers}
        return lambda sel, mask: self._take(look, rows, sel, mask)

    def _take(self, look: Look, rows: dict[str, tuple[Row, Any]], sel: Select, mask: Mask) -> None:
        first = self.here.get(look.block)
        if first is None:
            return
        machine = self.machine
        warps = np.arange(machine.warps)[sel]
        own = (warps >= first) & (warps < first + machine.warps_per_block)
        if not own.any():
            return
        warps = warps[own]
        local = warps - first
        there = machine.alive[warps]
        if mask is not None:
            there = there & mask[own]
        look.times[local] += there
        due = there & (look.times[local] == (look.occurrence or look.times[local]))
        if not due.any():
            return
        look.reached[local] |= due
        for name, (row, index) in rows.items():
            look.words[name][local] = np.where(due, row[warps], look.words[name][local])
            if index is not None and machine.wgmma.held[index][warps[due.any(axis=1)]].any():
                look.under_way.add(name)
            elif look.occurrence is None:
                look.under_way.discard(name)


def register_of(d: Decoder, name: str, line: int) -> tuple[Row, int | None]:
    """The row of a register where a statement stands, and its number if it has 32 bits."""
    found = d.program.find(d.scope, name)
    width, index = getattr(found, "width", None), getattr(found, "index", None)
    if width not in (1, 8, 16, 32, 64) or index is None:
        hint = "name it as the PTX does, as in %r1"
        if width == 128:
            hint = "a .b128 register is looked at by its halves: mov.b128 {%low, %high}, ..."
        raise FragirError(f"{name} is no register that can be looked at in line {line}", hint=hint)
    return d.machine.files[width][index], index if width == 32 else None


def looking(looks: Sequence[Look], *, stops: bool = True) -> Callable[[Machine, Program], Hooks]:
    """A check for `fragir.emulator.run(..., checks=[...])` and for a kernel's call.

    With `stops` it ends the run by `Enough` when the blocks have ended that are looked at.
    """
    return lambda machine, program: Looking(machine, program, looks, stops=stops)


def run_for(run: Callable[[], object], looks: Sequence[Look]) -> str:
    """Runs; why the run ended early, if it did so after something was seen, else empty."""
    try:
        run()
    except Enough:
        return ""
    except FragirError as error:
        if not any(look.reached.any() for look in looks):
            raise
        return error.sentence
    return ""


def check_reached(name: str, wanted: ValueAsked, looks: Sequence[Look]) -> None:
    """FragirError where the run never came there, or not so often."""
    if not looks or any(look.reached.any() for look in looks):
        return
    line = looks[0].line
    block = f"block ({','.join(map(str, wanted.block))})"
    if not any(len(look.times) for look in looks):
        raise FragirError(
            f"{name}: no {block} ran", hint="the grid has fewer blocks; [0,0,0] is the first"
        )
    most = max(int(look.times.max()) for look in looks)
    if most == 0:
        raise FragirError(
            f"{name}: {block} never came there (line {line} of the PTX)",
            hint="[X,Y,Z] asks for another block; other sizes may take another way",
        )
    often = "once" if most == 1 else f"{most} times"
    raise FragirError(
        f"{name}: {block} came there {often}, not {wanted.occurrence} times",
        hint=f"@{most} or @last is the last (line {line} of the PTX)",
    )
