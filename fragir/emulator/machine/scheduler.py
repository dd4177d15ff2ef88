"""Which lanes run next: lowest position first, in rounds, with parking per lane.

The lanes that stand at the lowest position run one basic block together. A taken backward branch
of a loop that polls (mbarrier waits, atomics, volatile or acquiring loads, nanosleep) parks its
lanes until nothing else can run; so does a loop that was taken more than `BUDGET` times in one
round. When nothing is left to run the round ends: asynchronous work that nobody waited for
completes, parked lanes go on. A round that changes nothing is a deadlock.
"""

from __future__ import annotations

from typing import TextIO
from zlib import crc32

import numpy as np

from fragir.emulator.machine.lanes import LANE_BITS, Mask, Select, Step, number_of
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.state import BLOCKED, EXITED, PARKED, WAITING
from fragir.emulator.machine.straight import (
    BasicBlock,
    DecodedCode,
    StraightRun,
    contiguous,
    whole_warpgroups,
)
from fragir.emulator.machine.straight_blocks import MANY, WARM, StraightBlocks, StraightMaker
from fragir.emulator.machine.watch import Divide, Watch
from fragir.emulator.numbers.types import I64, Array, Bools, distinct
from fragir.emulator.program.failure import CheckFailure, failure
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError, pass_on

# -- standstill ------------------------------------------------------------------------------------
# Why nothing can run any more: where the lanes stand, and for whom they wait.


def deadlock(machine: Machine, program: Program) -> EmulationError:
    """Say who waits where."""
    lines, first = who_stands_where(machine, program)
    message = f"deadlock in {program.entry}: nothing can change any more; "
    lines += [
        f"block {machine.place(block * machine.warps_per_block)[0]} has passed {words} before"
        for block, words in met_before(machine, program).items()
    ][:4]
    notes = [note for hook in machine.hooks for note in hook.on_deadlock()]
    text = message + "; ".join([*lines, *notes, *machine.engine.describe()])
    error = program.error(text, -1 if first is None else first[0])
    error.kind = "divergent" if is_torn(machine) else "deadlock"
    if first is not None:
        _, warp, lane, flags = first
        error.warp, error.lane = warp % machine.warps_per_block, lane
        error.address = machine.barriers.waits_for(warp, lane, flags)
    return error


def met_before(machine: Machine, program: Program) -> dict[int, str]:
    """By block, a barrier that has let its lanes go on from two statements, in words."""
    found: dict[int, str] = {}
    for block, (number, one, other) in machine.barriers.met.items():
        words = f"{statement(program, one)} and {statement(program, other)}"
        found[block] = f"barrier {number} at two statements, {words},"
    return found


def statement(program: Program, at: int) -> str:
    """`bar.sync of line 12`."""
    ins = program.code[at].ins
    return f"{ins.mnemonic} of line {program.error('', ins.at).line}"


def others_at(program: Program, error: Exception, position: int) -> str:
    """Where others have come from, if that is known and elsewhere, as a message ends with it."""
    at = getattr(error, "others", -1)
    return f" (they have come from {statement(program, at)})" if at not in (-1, position) else ""


def who_stands_where(
    machine: Machine, program: Program
) -> tuple[list[str], tuple[int, int, int, int] | None]:
    """Where the lanes are, a line for each place, the first eight; and of the first of them
    the place in the text, warp, lane and flags."""
    key = machine.key[: machine.resident]
    lines: list[str] = []
    first: tuple[int, int, int, int] | None = None
    mask = PARKED - 1
    alive = key < EXITED
    for value in distinct(key[alive]):
        position, flags = int(value) & mask, int(value) & ~mask
        at = program.code[min(position, len(program.code) - 1)]
        if flags & BLOCKED:
            at = program.code[position - 1]
            how = "blocked at"
        else:
            how = "stands at"
            if flags:
                how = "waits for other lanes at" if flags & WAITING else "polls at"
        where = program.error("", at.ins.at)
        who = np.argwhere(key == value)
        warp, lane = (int(x) for x in who[0])
        block, local = machine.place(warp)
        first = first or (at.ins.at, warp, lane, flags)
        lines.append(
            f"{len(who)} lanes, first block {block} warp {local} lane {lane}, {how} line "
            f"{where.line}: {at.ins.mnemonic}{machine.barriers.describe(warp, lane, flags)}"
        )
        if len(lines) == 8:
            break
    return lines, first


def is_torn(machine: Machine) -> bool:
    """Whether lanes wait at a collective for lanes of their warp that wait elsewhere."""
    key = machine.key[: machine.resident]
    waiting = (key & WAITING != 0) & (key < EXITED)
    low = np.where(key < EXITED, key, 1 << 30).min(axis=1)
    high = np.where(key < EXITED, key, -1).max(axis=1)
    elsewhere = (key & (PARKED | BLOCKED) != 0) & (key < EXITED)
    polls = ((key & PARKED != 0) & (key < EXITED)).any(axis=1)
    torn = waiting.any(axis=1) & (low != high) & ~polls
    return bool(torn.any() and (elsewhere | waiting)[torn].any())


BUDGET = 4096
PATIENCE = 2000  # rounds without any visible change before a loop that reads clocks is given up
COMPUTING = 200_000  # the same where no loop polls: each of its lanes has computed all the time


class Scheduler:
    def __init__(
        self,
        machine: Machine,
        program: Program,
        code: DecodedCode,
        watch: Watch,
        seed: int | None,
        trace: TextIO | None = None,
        straight: StraightMaker | None = None,
    ) -> None:
        self.machine, self.program, self.code = machine, program, code
        self._straight_maker = straight
        self.straight: StraightBlocks | None = None
        self.watch, self.trace = watch, trace
        self.blocks: dict[int, BasicBlock] = {}
        self.shuffle = seed is not None
        #: Backward branches taken in this round, by position.
        self.back_edges: I64 = np.zeros(len(program.code), np.int64)
        #: Whether blocks may be run without a look between them: schedules and traces look.
        self._straight_on = seed is None and trace is None
        self._snapshot: tuple[int, int] | None = None
        self._at = self._idle = 0
        self._polled = False  # whether a loop that polls came round in this round
        self.divide: Divide | None = None

    # -- the loop --------------------------------------------------------------------------------

    def run_wave(self) -> None:
        """Run until every lane of the resident blocks has exited."""
        self._snapshot, self._idle = None, 0
        try:
            while True:
                group = self._pick()
                if group is not None:
                    self._execute(*group)
                elif not self._end_round():
                    return
        finally:
            if self.straight is not None:
                self.straight.count()

    def _pick(self) -> tuple[int, Select, Mask, int] | None:
        key = self.machine.key[: self.machine.resident]
        at = int(key.min())
        if at >= PARKED:
            return None
        if self.shuffle:
            at = self.machine.random.choice(distinct(key[key < PARKED])).item()
        here = key == at
        if self.shuffle:
            here &= self._some_warps(here)
            others = -1  # one block, then choose again
        elif here.all():
            return at, slice(0, len(key)), None, EXITED
        else:
            others = int(np.where(here, EXITED, key).min())
        warps = np.flatnonzero(here.any(axis=1))
        sel = contiguous(warps)
        part = here[sel]
        return at, sel, None if part.all() else part, others

    def _some_warps(self, here: Array) -> Array:
        """A random choice of the warps that stand there, at least one: [warp, 1]."""
        warps = np.flatnonzero(here.any(axis=1))
        random = self.machine.random
        chosen = [w for w in warps if random.random() < 0.5] or [random.choice(list(warps))]
        result = np.zeros((len(here), 1), np.bool_)
        result[chosen] = True
        return result

    def block(self, start: int) -> BasicBlock:
        found = self.blocks.get(start)
        if found is None:
            code = self.code
            pairs: list[tuple[int, Step]] = []
            end = start
            collective = warpgroup = False
            while end not in code.terminators and (end == start or end not in code.leaders):
                step = code.steps[end]
                if step is not None:
                    pairs.append((end, step))
                collective = collective or end in code.collectives
                warpgroup = warpgroup or end in code.warpgroups
                end += 1
            last = code.terminators.get(end)
            size = end - start + (last is not None)
            found = BasicBlock(pairs, end, last, collective, warpgroup, size, start, pairs)
            self.blocks[start] = found
        return found

    def _execute(self, at: int, sel: Select, mask: Mask, others: int) -> None:
        """Run a group of lanes until others stand lower, or it splits, waits or parks."""
        position, watch, splits = at, self.watch, False
        block = self.block(at)
        try:
            while True:
                block = self.blocks.get(at) or self.block(at)
                width = number_of(sel)
                if watch.left < width * block.size and self._has_divided(at, sel, mask):
                    return
                block.runs += width
                watch.left -= width * block.size
                if watch.left < 0:
                    self._look(at, sel, mask)
                if self.trace is not None:
                    self._write_trace(at, block, sel, mask)
                splits = (mask is not None and block.collective) or (
                    block.warpgroup and not whole_warpgroups(sel)
                )
                if splits:
                    left = self._run_split(block, sel, mask)
                    if left is None:
                        return
                    sel, mask = left
                    position = block.end
                elif block.whole is not None and self._straight_on:
                    block, first = self._go_straight(block.whole, sel, mask, others)
                    position = block.start
                    assert block.whole is not None
                    block.whole.finish(sel, mask, first)
                else:
                    if block.visits < WARM:
                        self._visit(block, width)
                    for position, step in block.parts:
                        step(sel, mask)
                if block.terminator is None:
                    after: int | None = block.end
                else:
                    position = block.end
                    after = block.terminator(sel, mask)
                if after is None:
                    return
                if after >= others:
                    self.machine.key[sel] = (
                        after if mask is None else np.where(mask, after, self.machine.key[sel])
                    )
                    return
                at = after
        except AccessFault as fault:
            at = self._at if splits else self._inside(block, position)
            raise self._fault(fault, at, sel, mask) from None
        except MemoryError:
            raise
        except Exception as problem:
            pass_on(problem)
            if isinstance(problem, FragirError):
                if problem.line is not None:
                    raise
                if not isinstance(problem, CheckFailure):
                    raise self._place_error(problem, self._inside(block, position), sel) from None
            at = self._at if splits else self._inside(block, position)
            raise failure(self.program, self.program.code[at].ins, problem) from problem

    def _visit(self, block: BasicBlock, warps: int) -> None:
        """Counts visits of a block; one that comes often is looked through for runs."""
        block.visits += 1 + warps // MANY
        maker = self._straight_maker
        if maker is None or not (
            block.visits >= WARM or (block.visits > 1 and maker.knows(block.start))
        ):
            return
        block.visits = WARM
        if self.straight is None:
            self.straight = maker.make(self.back_edges, BUDGET)
        self.straight.prepare(block)

    def _go_straight(
        self, run: StraightRun, sel: Select, mask: Mask, others: int
    ) -> tuple[BasicBlock, int]:
        """Run a block and those behind it, as `StraightBlocks.go` does: where it stopped."""
        assert self.straight is not None
        block, at, self.watch.left = self.straight.go(run, sel, mask, self.watch.left, others)
        return block, at

    @staticmethod
    def _inside(block: BasicBlock, position: int) -> int:
        """The instruction that ran by itself within the run at `position`, if that is one."""
        run = next((step for at, step in block.parts if at == position), None)
        if isinstance(run, StraightRun) and run.stopped is not None:
            return run.stopped
        return position

    def _run_split(self, block: BasicBlock, sel: Select, mask: Mask) -> tuple[Select, Mask] | None:
        """A block with collective instructions for incomplete warps."""
        for at, step in block.pairs:
            self._at = at
            if mask is not None and at in self.code.collectives:
                left = self.gather(at, sel, mask)
                if left is None:
                    return None
                sel, mask = left
            if at in self.code.warpgroups:
                left = self._gather_warpgroups(at, sel, mask)
                if left is None:
                    return None
                sel, mask = left
            step(sel, mask)
        self._at = block.end
        return sel, mask

    def gather(self, at: int, sel: Select, mask: Bools) -> tuple[Select, Mask] | None:
        """Hold the warps whose named lanes have not all come to the collective at `at`."""
        machine = self.machine
        needs = self.code.collectives[at]
        alive = (machine.alive[sel] * LANE_BITS).sum(axis=1, dtype=np.uint32)
        needed = alive if needs is None else needs(sel, mask) & alive
        here = (mask * LANE_BITS).sum(axis=1, dtype=np.uint32)
        incomplete = needed & ~here != 0
        if not incomplete.any():
            return sel, mask
        warps = np.arange(machine.warps)[sel]
        key = machine.key
        for index in np.flatnonzero(incomplete):
            warp = warps[index]
            for hook in machine.hooks:
                hook.on_wait(int(warp), mask[index])
            key[warp] = np.where(mask[index], at | WAITING, key[warp])
            waiting = key[warp] == at | WAITING
            if int(needed[index]) & ~int((waiting * LANE_BITS).sum(dtype=np.uint32)) == 0:
                key[warp] = np.where(waiting, at, key[warp])
        if incomplete.all():
            return None
        part = mask[~incomplete]
        return contiguous(warps[~incomplete]), None if part.all() else part

    def _gather_warpgroups(self, at: int, sel: Select, mask: Mask) -> tuple[Select, Mask] | None:
        """Hold the warps whose warpgroup is not complete at the wgmma at `at`."""
        machine = self.machine
        warps = np.arange(machine.warps)[sel]
        groups, counts = np.unique(warps // 4, return_counts=True)
        complete = np.isin(warps // 4, groups[counts == 4])
        if complete.all():
            return sel, mask
        key = machine.key
        for index in np.flatnonzero(~complete):
            warp = warps[index]
            lanes = machine.alive[warp] if mask is None else mask[index]
            key[warp] = np.where(lanes, at | WAITING, key[warp])
        for group in groups[counts < 4]:
            rows = key[4 * group : 4 * group + 4]
            waiting = rows == at | WAITING
            if waiting.any(axis=1).all():
                rows[waiting] = at
        if not complete.any():
            return None
        part = None if mask is None or mask[complete].all() else mask[complete]
        return contiguous(warps[complete]), part

    def _has_divided(self, at: int, sel: Select, mask: Mask) -> bool:
        """Whether warps have left for another process: then it is to be seen anew who runs."""
        if self.divide is None or not self.divide.is_due():
            return False
        self._stand(at, sel, mask)
        if self.straight is not None:
            self.straight.count()
        self.divide.divide()
        return True

    def _stand(self, at: int, sel: Select, mask: Mask) -> None:
        """Note in the keys where the lanes stand that run."""
        key = self.machine.key
        key[sel] = at if mask is None else np.where(mask, at, key[sel])

    def _look(self, at: int, sel: Select, mask: Mask) -> None:
        """Say how far the run is; stop it where it has reached its limit."""
        reason = self.watch.look(lambda: self._line(at))
        if reason is None:
            return
        self._stand(at, sel, mask)
        lines, _ = who_stands_where(self.machine, self.program)
        text = f"{self.program.entry} was stopped {reason}: " + "; ".join(lines)
        error = self.program.error(text, self.program.code[at].ins.at)
        error.kind = "limit"
        error.warp = int(np.arange(self.machine.warps)[sel][0]) % self.machine.warps_per_block
        raise error

    def _line(self, position: int) -> int | None:
        return self.program.error("", self.program.code[position].ins.at).line

    # -- branches --------------------------------------------------------------------------------

    def park(self, position: int, polls: bool) -> bool:
        """Whether the lanes that take the backward branch at `position` park."""
        self._polled = self._polled or polls
        if polls:  # in another order a loop may come round before what it looks for has happened
            return not self.shuffle or self.machine.random.random() < 0.5
        taken = int(self.back_edges[position]) + 1
        self.back_edges[position] = taken
        return taken > BUDGET

    # -- rounds ----------------------------------------------------------------------------------

    def _end_round(self) -> bool:
        machine = self.machine
        machine.report.statistics.rounds += 1
        if self.straight is not None:
            self.straight.note_stores()
        key = machine.key[: machine.resident]
        if int(key.min()) >= EXITED:
            machine.finish()
            if self.divide is None or not self.divide.idle:
                for hook in machine.hooks:
                    hook.on_wave_end()
            return False
        self.back_edges[:] = 0
        if machine.engine.end_round() or machine.tensor.end_round():
            machine.progress = True
        held = (key & (PARKED | WAITING)) != 0
        if machine.progress:
            machine.progress = False
            self._snapshot, self._idle = None, 0
        else:
            self._idle += COMPUTING // PATIENCE if self._polled else 1
            state = self._state()
            if state == self._snapshot or self._idle > COMPUTING or not held.any():
                raise deadlock(self.machine, self.program)
            self._snapshot = state
        if not held.any() and int(key.min()) >= BLOCKED:
            raise deadlock(self.machine, self.program)
        key[held] &= ~(PARKED | WAITING)
        self._polled = False
        return True

    def _state(self) -> tuple[int, int]:
        total = 0
        for rows in self.machine.files.values():
            total = crc32(rows.reshape(-1).view(np.uint8).data, total)
        return total, crc32(self.machine.key.reshape(-1).view(np.uint8).data)

    # -- messages ----------------------------------------------------------------------------------

    def _fault(self, fault: AccessFault, position: int, sel: Select, mask: Mask) -> EmulationError:
        used = getattr(fault, "mask", mask)
        if hasattr(fault, "sel"):
            sel = getattr(fault, "sel")
        warps = np.arange(self.machine.warps)[sel]
        if fault.lane is not None:
            warp, lane = divmod(fault.lane, 32)
        elif used is None:
            which, lane = divmod(fault.index, 32)
            warp = int(warps[which])
        else:
            which, lane = (int(x) for x in np.argwhere(used)[fault.index])
            warp = int(warps[which])
        block, local = self.machine.place(warp)
        ins = self.program.code[position].ins
        message = (
            f"{ins.mnemonic} in {self.program.entry}, block {block} warp {local} lane {lane}, "
            f"address 0x{fault.address:x}: {fault.reason}"
        )
        error = self.program.error(message, ins.at)
        error.kind, error.warp, error.lane = fault.kind, local, lane
        error.address = fault.address
        return error

    def _place_error(self, error: FragirError, position: int, sel: Select) -> EmulationError:
        ins = self.program.code[position].ins
        warp, lane = getattr(error, "warp", None), getattr(error, "lane", None)
        if warp is None:
            warp = int(np.arange(self.machine.warps)[sel][0])
        block, local = self.machine.place(warp)
        where = f"block {block} warp {local}" + ("" if lane is None else f" lane {lane}")
        text = error.message + others_at(self.program, error, position)
        message = f"{ins.mnemonic} in {self.program.entry}, {where}: {text}"
        placed = self.program.error(message, ins.at, error.hint)
        placed.kind, placed.warp = getattr(error, "kind", "stopped"), local
        placed.lane, placed.address = lane, getattr(error, "address", None)
        return placed

    def _write_trace(self, at: int, block: BasicBlock, sel: Select, mask: Mask) -> None:
        assert self.trace is not None
        lanes = 32 * number_of(sel) if mask is None else int(mask.sum())
        warps = np.arange(self.machine.warps)[sel]
        for position in range(at, min(block.end + 1, len(self.program.code))):
            if position == block.end and block.terminator is None:
                break
            ins = self.program.code[position].ins
            line = self.program.error("", ins.at).line
            first, last = int(warps[0]), int(warps[-1])
            self.trace.write(f"warps {first}..{last} lanes {lanes} line {line}: {ins.mnemonic}\n")
