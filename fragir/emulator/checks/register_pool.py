"""setmaxnreg: what the warps of a block hold together, and who executes it (PTX ISA 9.2, 9.7.20.5).

A block's pool has the registers that it was launched with: for each of its threads as many as
`.maxnreg` says, or as `.minnctapersm` blocks of `.maxntid` or `.reqntid` threads leave of the
machine's 65,536. Where a kernel says neither (ptxas can be told on its command line) the most that
its block can have is taken, and whether a count grows or falls is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.operand_contents import quote
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.transfers import WARPGROUP
from fragir.emulator.numbers.types import I64
from fragir.emulator.program.entities import constant_or_none
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program

REGISTERS = 65536  # of a multiprocessor (CUDA C++ Programming Guide, table of compute capabilities)
MOST = 256  # that a thread can have, rounded up to a multiple of UNIT
#: From here on the count at the start is not certain: ptxas 13.2 gives 240 where 255 are allowed.
UNCERTAIN = 240
UNIT = 8


def launched_with(program: Program, threads: int) -> tuple[int, bool]:
    """Registers of a thread at the start, a multiple of 8, and whether they are known."""
    values: dict[str, list[int]] = {}
    for directive in program.main.node.directives:
        if isinstance(directive, tree.FunctionDirective):
            values[directive.name] = [program.constant(v) for v in directive.values]
    bound = values.get("reqntid") or values.get("maxntid")
    blocks = values.get("minnctapersm", [0])[0] if bound else 0
    found = MOST
    known = "maxnreg" in values or blocks > 0
    if "maxnreg" in values:
        found = -(-values["maxnreg"][0] // UNIT) * UNIT
    group = WARPGROUP * LANES
    each = -(-(prod(bound) if bound and blocks else threads) // group) * group
    if blocks > 0 or not known:
        found = min(found, REGISTERS // (max(blocks, 1) * each) // UNIT * UNIT)
    return found, known and found < UNCERTAIN


class RegisterPool(Hooks):
    """Finds registers beyond the pool, counts in the wrong direction, parts of warpgroups."""

    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.start, self.known = launched_with(program, machine.threads)
        self.pool = self.start * machine.warps_per_block * LANES
        self.held: I64 = np.full(machine.warps, self.start, np.int64)  # by each thread of a warp
        self.done: I64 = np.zeros(machine.warps, np.int64)  # how many setmaxnreg it has executed
        #: The setmaxnreg that a warpgroup has executed, in order; warpgroups by block and number.
        self.order: dict[tuple[int, int], list[tree.Instruction]] = {}
        #: Block -> the instruction that went beyond its pool, its warp, and the registers then.
        self.beyond: dict[int, tuple[tree.Instruction, int, int]] = {}

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether a program has a setmaxnreg."""
        return any(row.registers for row, _ in program.rows())

    def on_wave_start(self) -> None:
        self.held[...] = self.start
        self.done[...] = 0
        self.order.clear()
        self.beyond.clear()

    def _say(
        self, ins: tree.Instruction, kind: str, text: str, warp: int, letter: str | None = None
    ) -> None:
        line = self.program.error("", ins.at).line
        if all((f.kind, f.line) != (kind, line) for f in self.machine.report.findings):
            message = f"{ins.mnemonic}: {text}"
            message += "" if letter is None else f". {quote(letter)}"
            severity = None if letter is None else "letter"
            self.found(self.program, ins.at, kind, message, lane=warp * LANES, severity=severity)

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        if not d.program.opcode(ins).registers:
            return step
        count = d.literal(ins, 0)
        assert count is not None

        def run(sel: Select, mask: Mask) -> None:
            warps = np.arange(self.machine.warps)[sel]
            if mask is not None:
                warps = warps[mask.any(axis=1)]
            for warp in warps.tolist():
                self._change(ins, warp, count)
            step(sel, mask)

        return run

    def _change(self, ins: tree.Instruction, warp: int, count: int) -> None:
        before = int(self.held[warp])
        grows = "inc" in ins.opcode
        if (self.known or self.done[warp]) and (count < before if grows else count > before):
            text = f"a thread holds {before} registers, {count} is {'less' if grows else 'more'}"
            self._say(ins, "registers", text, warp)
        self._in_turn(ins, warp)
        self.held[warp] = count
        block = int(self.machine.block_of[warp])
        total = self._total(block)
        if total <= self.pool:
            self.beyond.pop(block, None)
        elif grows or block in self.beyond:
            first, whose, _ = self.beyond.get(block, (ins, warp, total))
            self.beyond[block] = (first, whose, total)

    def _total(self, block: int) -> int:
        """Registers of the warps of a block that have not exited."""
        per = self.machine.warps_per_block
        rows = slice(block * per, (block + 1) * per)
        alive = self.machine.alive[rows].any(axis=1)
        return int((self.held[rows] * alive).sum()) * LANES

    def _group(self, warp: int) -> tuple[int, int]:
        per = self.machine.warps_per_block
        return warp // per, warp % per // WARPGROUP

    def _in_turn(self, ins: tree.Instruction, warp: int) -> None:
        """All warps of a warpgroup execute the same setmaxnreg, one after the other."""
        order, turn = self.order.setdefault(self._group(warp), []), int(self.done[warp])
        self.done[warp] += 1
        if turn == len(order):
            order.append(ins)
        elif order[turn] is not ins:
            line = self.program.error("", order[turn].at).line
            text = f"another warp of this warpgroup has executed the one at line {line} instead"
            first = order[turn]
            alike = first.mnemonic == ins.mnemonic and (
                constant_or_none(first.operands[0]) == constant_or_none(ins.operands[0])
            )
            letter = "setmaxnreg" if alike else None
            self._say(ins, "divergent", text, warp, letter)

    def on_leave(self, warps: I64) -> None:
        gone = set(self.machine.block_of[warps].tolist())
        self.beyond = {block: found for block, found in self.beyond.items() if block not in gone}
        self.order = {key: found for key, found in self.order.items() if key[0] not in gone}

    def on_wave_end(self) -> None:
        for ins, warp, total in self.beyond.values():
            text = (
                f"the warps of the block hold {total} registers then, it was launched with "
                f"{self.pool}; nobody gives back what is missing, so this waits for ever"
            )
            self._say(ins, "registers", text, warp)
        per = self.machine.warps_per_block
        for (block, group), order in self.order.items():
            first = block * per + group * WARPGROUP
            warps = range(first, min(first + WARPGROUP, (block + 1) * per))
            for warp in warps:
                turn = int(self.done[warp])
                if turn < len(order):
                    text = f"warp {warp % per} does not execute this with its warpgroup"
                    self._say(order[turn], "divergent", text, warp)
