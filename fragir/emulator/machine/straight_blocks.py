"""Which parts of a block become straight-line runs.

Blocks that are run often enough are looked through once: what can be encoded becomes runs, and a
block that is one run and branches back to its own beginning a loop, of which one call executes
many turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.code import BasicBlock
from fragir.emulator.machine.footprints import Footprint
from fragir.emulator.machine.lanes import Step
from fragir.emulator.machine.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.machine.state import State
from fragir.emulator.machine.straight import Encodes, LoopBranch, StraightCode, StraightRun
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand, StraightFunctions, row_operand

WARM = 8  # visits of a block before it is encoded: most code runs once


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
