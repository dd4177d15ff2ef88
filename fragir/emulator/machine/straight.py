"""Straight-line runs: neighbouring instructions of a block that the compiled core runs in one call.

A step on numpy arrays takes a microsecond or more however few lanes it has, an operation of the
library nanoseconds. Blocks that are run often enough are looked through once: what can be encoded
becomes runs, and a block that is one run and branches back to its own beginning a loop, of which
one call executes many turns. Whatever a call cannot do, an access that faults above all, it leaves
to the instruction's own step, as if there were no library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.code import BasicBlock
from fragir.emulator.machine.footprints import Footprint
from fragir.emulator.machine.lanes import Mask, Row, Step, is_slice
from fragir.emulator.machine.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.machine.state import State
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand, StraightFunctions, row_operand

WARM = 8  # visits of a block before it is encoded: most code runs once


@dataclass(slots=True)
class StraightCode:
    """One operation of the library: `Code` in native/source/straight.h."""

    function: str  # empty for loads and stores
    sources: list[RowOperand]
    out: RowOperand = NO_ROW
    other: RowOperand = NO_ROW
    kind: int = native.ELEMENTS
    immediate: int = 0
    times: int = 1
    combine: int = 0
    space: int = 0
    width: int = 0
    signed: bool = False
    guard: RowOperand = NO_ROW


class LoopBranch(NamedTuple):
    """A branch back that polls nothing: where to, and the guard that it takes its lanes by."""

    to: int
    row: Row | None
    negated: bool


class Encodes(Protocol):
    """Makes the operations of instructions, by position."""

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of an instruction; None where its own step has to run."""
        ...

    def branch(self, at: int) -> LoopBranch | None:
        """A branch that can close a loop."""
        ...


@dataclass(eq=False)
class StraightRun:
    """A step of several instructions; `stopped`: the position of the one that runs by itself."""

    call: Callable[..., int]
    address: int
    positions: list[int]
    steps: list[Step]
    waits: Callable[[], int] | None  # whether its accesses must look at more than the call does
    keeps: Any
    stopped: int | None = None
    begun: int = 0  # turns of the last call

    def __call__(self, sel: Any, mask: Mask, turns: int = 1) -> None:
        """One turn, or up to so many while all lanes branch back; `begun` says how many."""
        self.begun, start, end = 1, 0, len(self.steps)
        if self.waits is not None and self.waits():
            self._by_steps(sel, mask, 0, end)
            return
        listed = given = None
        if is_slice(sel):
            first, count = sel.start, sel.stop - sel.start
        else:
            warps = np.ascontiguousarray(sel, np.int64)
            first, count, listed = 0, len(warps), native.address_of(warps)
        if mask is not None:
            mask = np.ascontiguousarray(mask)
            given = native.address_of(mask)
        result = self.call(self.address, first, count, listed, given, turns, 0)
        self.begun = result >> 32
        while (start := result & 0xFFFFFFFF) < end:
            self._by_steps(sel, mask, start, start + 1)
            if start + 1 == end:
                return
            result = self.call(self.address, first, count, listed, given, 1, start + 1)

    def _by_steps(self, sel: Any, mask: Mask, start: int, end: int) -> None:
        for index in range(start, end):
            self.stopped = self.positions[index]
            self.steps[index](sel, mask)
        self.stopped = None


@dataclass
class _Pending:
    """Instructions on their way into a run."""

    positions: list[int] = field(default_factory=list[int])
    steps: list[Step] = field(default_factory=list[Step])
    codes: list[StraightCode] = field(default_factory=list[StraightCode])
    numbers: list[int] = field(default_factory=list[int])


class StraightBlocks:
    """Turns blocks into runs, for one machine."""

    def __init__(self, machine: State, encoder: Encodes, functions: StraightFunctions) -> None:
        self.machine, self.encoder, self.functions = machine, encoder, functions
        self.totals: npt.NDArray[np.int64] = np.zeros(8, np.int64)  # bytes loaded, then stored
        self._seen_stores = 0
        self._memory: npt.NDArray[Any] | None = None
        self._keeps: list[Any] = []
        self._footprint: Footprint | None = None

    # -- what has happened -------------------------------------------------------------------------

    def count(self) -> None:
        """Adds the bytes that runs have moved to the launch's statistics."""
        statistics = self.machine.report.statistics
        for counter, moved in (
            (statistics.loaded, self.totals[:4]),
            (statistics.stored, self.totals[4:]),
        ):
            for space, size in zip(native.SPACES, moved.tolist(), strict=True):
                if size:
                    counter[space] += size
        self.note_stores()
        self.totals[:] = 0
        self._seen_stores = 0

    def note_stores(self) -> None:
        """Says `progress` where a run has stored since the last time."""
        stored = int(self.totals[4:].sum())
        if stored != self._seen_stores:
            self._seen_stores = stored
            self.machine.progress = True

    # -- blocks ------------------------------------------------------------------------------------

    def prepare(self, block: BasicBlock) -> None:
        """Puts runs into the parts of a block, and makes it a loop where it is one."""
        parts: list[tuple[int, Step]] = []
        pending = _Pending()
        whole = bool(block.pairs)
        for at, step in block.pairs:
            codes = self.encoder.codes(at)
            if codes is None:
                whole = False
                self._close(parts, pending, None)
                pending = _Pending()
                parts.append((at, step))
                continue
            pending.numbers += [len(pending.steps)] * len(codes)
            pending.codes += codes
            pending.positions.append(at)
            pending.steps.append(step)
        branch = None
        if whole and block.terminator is not None:
            branch = self.encoder.branch(block.end)
            if branch is not None and branch.to != block.start:
                branch = None
        run = self._close(parts, pending, branch)
        block.parts = parts
        block.loop = run if branch is not None else None

    def _close(
        self, parts: list[tuple[int, Step]], pending: _Pending, branch: LoopBranch | None
    ) -> StraightRun | None:
        if not pending.codes:
            parts += zip(pending.positions, pending.steps, strict=True)
            return None
        run = self.run_of(pending.positions, pending.steps, pending.codes, pending.numbers, branch)
        parts.append((pending.positions[0], run))
        return run

    def run_of(
        self,
        positions: list[int],
        steps: list[Step],
        encoded: list[StraightCode],
        numbers: list[int],
        branch: LoopBranch | None,
    ) -> StraightRun:
        """A run of instructions: where they stand, their steps, their operations.

        `numbers`: of which instruction each operation is; `branch`: what closes a loop of them.
        """
        operands: list[RowOperand] = []
        rows: list[Any] = []
        for code, number in zip(encoded, numbers, strict=True):
            function = self.functions.numbers[code.function] if code.function else 0
            rows.append(
                (
                    code.kind,
                    function,
                    number,
                    len(operands),
                    len(code.sources),
                    code.times,
                    code.combine,
                    code.space,
                    code.width,
                    code.signed,
                    _signed(code.immediate),
                    code.guard.fields,
                    code.out.fields,
                    code.other.fields,
                )
            )
            operands += code.sources
        codes = np.array(rows, native.CODE)
        sources = native.operands_array(operands)
        taken, loops = NO_ROW, 0
        if branch is not None:
            loops = 1
            if branch.row is not None:
                taken, loops = row_operand(branch.row, self.machine.warps, branch.negated), 2
        header = np.array(
            [
                (
                    native.address_of(codes),
                    native.address_of(sources),
                    native.address_of(self._describe_memory()),
                    len(codes),
                    len(steps),
                    taken.fields,
                    loops,
                )
            ],
            native.RUN,
        )
        return StraightRun(
            self.functions.call,
            native.address_of(header),
            positions,
            steps,
            self._waits if any(c.kind >= native.LOAD for c in encoded) else None,
            (codes, sources, header, taken, encoded),
        )

    def _waits(self) -> int:
        """Asynchronous writes to shared memory that are pending: each access must look for them."""
        memory = self.machine.memory
        if memory.globals.footprint is not self._footprint:
            self._footprint = footprint = memory.globals.footprint
            described = self._describe_memory()
            marks = [footprint.read, footprint.written] if footprint is not None else []
            for name, half in zip(("read", "written"), marks or [None] * 2, strict=True):
                described[name] = 0 if half is None else native.address_of(half)
            described["unit_shift"] = 0 if footprint is None else footprint.shift
        return memory.poisoned

    def _describe_memory(self) -> npt.NDArray[Any]:
        if self._memory is None:
            memory = self.machine.memory
            places = sorted(memory.places, key=lambda b: b.start)
            starts = np.array([b.start for b in places] or [0], np.int64)
            ends = np.array([b.start + b.size for b in places] or [0], np.int64)
            arrays = [memory.globals.bytes, memory.shared.bytes, memory.local.bytes, starts, ends]
            arrays += [memory.shared_home, memory.local_home, self.totals]
            numbers = [0, 0, 0, memory.globals.bytes.size]
            numbers += [len(places), memory.shared_size, memory.local_size, memory.cluster]
            windows = [GLOBAL_BASE, SHARED_WINDOW, LOCAL_WINDOW]
            row = (*map(native.address_of, arrays), *numbers, *windows)
            self._memory = np.array([row], native.MEMORY)
            self._keeps = arrays
        return self._memory


def _signed(value: int) -> int:
    """A number of 64 bits as int64 has it."""
    return ((value & 0xFFFFFFFFFFFFFFFF) ^ (1 << 63)) - (1 << 63)
