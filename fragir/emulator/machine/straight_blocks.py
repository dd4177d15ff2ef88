"""Which parts of a block become straight-line runs, and how one call goes from block to block.

Blocks that are run often enough are looked through once: what can be encoded becomes runs. A block
that is one run is a piece for the library, which goes on by itself to the next one as long as all
lanes go together: loops, and what they branch around, take one call for many turns.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.code import BasicBlock
from fragir.emulator.machine.footprints import Footprint
from fragir.emulator.machine.lanes import Mask, Step, is_slice
from fragir.emulator.machine.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.machine.state import State
from fragir.emulator.machine.straight import Encodes, Ending, StraightCode, StraightRun, Walking
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand, StraightFunctions, row_operand

#: Visits of a block before it is encoded, which takes as long as some ten of its steps: most
#: code runs once. A visit of so many warps counts twice, and so on.
WARM, MANY = 24, 32
_ROOM = 64  # pieces that there is room for at first


@dataclass
class _Pending:
    """Instructions on their way into a run."""

    positions: list[int] = field(default_factory=list[int])
    steps: list[Step] = field(default_factory=list[Step])
    codes: list[StraightCode] = field(default_factory=list[StraightCode])
    numbers: list[int] = field(default_factory=list[int])  # of which instruction each code is


class StraightBlocks:
    """Turns blocks into runs, for one machine.

    `taken`: backward branches taken in this round, by position; `budget`: how many may be.
    """

    def __init__(
        self,
        machine: State,
        encoder: Encodes,
        functions: StraightFunctions,
        taken: npt.NDArray[np.int64],
        budget: int,
    ) -> None:
        self.machine, self.encoder, self.functions = machine, encoder, functions
        self.totals: npt.NDArray[np.int64] = np.zeros(8, np.int64)  # bytes loaded, then stored
        self.pieces: npt.NDArray[Any] = np.zeros(_ROOM, native.PIECE)
        self.runs: npt.NDArray[np.int64] = np.zeros(_ROOM, np.int64)
        #: By piece: its block where it is one.
        self.blocks: list[BasicBlock | None] = []
        self._starts: dict[int, int] = {}  # position -> the piece that is the block there
        self._seen_stores = 0
        self._footprint: Footprint | None = None
        self._memory, self._keeps = self._describe_memory()
        walk = native.Walk(budget=budget, taken=native.address_of(taken))
        walk.memory = native.address_of(self._memory)
        self.walking = Walking(functions.call, walk, ctypes.addressof(walk), self._waits)
        self._keeps.append(taken)
        self._tell_places()

    def _tell_places(self) -> None:
        self.walking.walk.pieces = native.address_of(self.pieces)
        self.walking.walk.runs = native.address_of(self.runs)

    # -- what has happened -------------------------------------------------------------------------

    def count(self) -> None:
        """Adds what calls have done to the statistics of blocks and launch."""
        for block, runs in zip(self.blocks, self.runs.tolist(), strict=False):
            if block is not None:
                block.runs += runs
        self.runs[:] = 0
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

    # -- from block to block -----------------------------------------------------------------------

    def go(
        self, run: StraightRun, sel: Any, mask: Mask, left: int, others: int
    ) -> tuple[BasicBlock, int, int]:
        """Runs a block, and those that all lanes go on to.

        `left`: instructions until somebody has to look; `others`: where other lanes stand. Returns
        the block that it stopped in, the number of the instruction there that has to run by itself
        (that behind the last: the terminator has), and what is left.
        """
        walk, machine = self.walking.walk, self.machine
        waits = self._waits()
        if waits and run.accesses:
            return self._block(run.number), 0, left
        walk.left, walk.others, walk.piece = left, others, run.number
        walk.whole = (
            mask is None and is_slice(sel) and sel.start == 0 and sel.stop == machine.resident
        )
        at = run.go(sel, mask, 0, 0 if waits else 1)
        return self._block(walk.piece), at, walk.left

    def _block(self, number: int) -> BasicBlock:
        found = self.blocks[number]
        assert found is not None
        return found

    # -- blocks ------------------------------------------------------------------------------------

    def prepare(self, block: BasicBlock) -> None:
        """Puts runs into the parts of a block, and makes it a piece where it is one run."""
        parts: list[tuple[int, Step]] = []
        pending = _Pending()
        whole = True
        for at, step in block.pairs:
            codes = self.encoder.codes(at)
            if codes is None:
                whole = False
                self._close(parts, pending)
                pending = _Pending()
                parts.append((at, step))
                continue
            pending.numbers += [len(pending.steps)] * len(codes)
            pending.codes += codes
            pending.positions.append(at)
            pending.steps.append(step)
        if whole:
            run = self.run_of(pending.positions, pending.steps, pending.codes, pending.numbers)
            block.whole = run
            parts = [(block.start, run)]
            self._link(run.number, block)
        else:
            self._close(parts, pending)
        block.parts = parts

    def _close(self, parts: list[tuple[int, Step]], pending: _Pending) -> None:
        if not pending.codes:
            parts += zip(pending.positions, pending.steps, strict=True)
            return
        run = self.run_of(pending.positions, pending.steps, pending.codes, pending.numbers)
        parts.append((pending.positions[0], run))

    def _link(self, number: int, block: BasicBlock) -> None:
        """Says how a piece ends, and who comes to it."""
        self.blocks[number] = block
        self._starts[block.start] = number
        ending = Ending(native.FALLING)
        after = block.end
        if block.terminator is not None:
            ending = self.encoder.ending(block.end)
            after += 1
        branch = NO_ROW
        if ending.row is not None:
            branch = row_operand(ending.row, self.machine.warps, ending.negated)
            self._keeps.append(branch)
        starts = self._starts
        self.pieces[number] = (
            *self.pieces[number].item()[:4],
            *(ending.kind, block.end, block.size, block.collective),
            *(starts.get(after, -1), starts.get(ending.to, -1), after, ending.to),
            branch.fields,
        )
        known = self.pieces[: len(self.blocks)]
        known["next"][known["next_position"] == block.start] = number
        known["to"][known["to_position"] == block.start] = number

    def run_of(
        self, positions: list[int], steps: list[Step], encoded: list[StraightCode], of: list[int]
    ) -> StraightRun:
        """A run of instructions: where they stand, their steps, their operations.

        `of`: of which instruction each operation is.
        """
        operands: list[RowOperand] = []
        rows: list[Any] = []
        for code, instruction in zip(encoded, of, strict=True):
            function = self.functions.numbers[code.function] if code.function else 0
            rows.append(
                (
                    code.kind,
                    function,
                    instruction,
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
        number = len(self.blocks)
        self.blocks.append(None)
        if number == len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.zeros(number, native.PIECE)])
            self.runs = np.concatenate([self.runs, np.zeros(number, np.int64)])
            self._tell_places()
        places = (native.address_of(codes), native.address_of(sources), len(rows), len(steps))
        self.pieces[number] = (*places, native.OTHER, 0, 0, 0, -1, -1, -1, -1, NO_ROW.fields)
        accesses = any(c.kind >= native.LOAD for c in encoded)
        keeps = (codes, sources, encoded)
        return StraightRun(self.walking, number, positions, steps, accesses, keeps)

    # -- memory ------------------------------------------------------------------------------------

    def _waits(self) -> int:
        """Asynchronous writes to shared memory that are pending: each access must look for them."""
        memory = self.machine.memory
        if memory.globals.footprint is not self._footprint:
            self._footprint = footprint = memory.globals.footprint
            marks = [footprint.read, footprint.written] if footprint is not None else []
            for name, half in zip(("read", "written"), marks or [None] * 2, strict=True):
                self._memory[name] = 0 if half is None else native.address_of(half)
            self._memory["unit_shift"] = 0 if footprint is None else footprint.shift
        return memory.poisoned

    def _describe_memory(self) -> tuple[npt.NDArray[Any], list[Any]]:
        memory = self.machine.memory
        places = sorted(memory.places, key=lambda b: b.start)
        starts = np.array([b.start for b in places] or [0], np.int64)
        ends = np.array([b.start + b.size for b in places] or [0], np.int64)
        arrays: list[Any] = [memory.globals.bytes, memory.shared.bytes, memory.local.bytes]
        arrays += [starts, ends, memory.shared_home, memory.local_home, self.totals]
        numbers = [0, 0, 0, memory.globals.bytes.size]
        numbers += [len(places), memory.shared_size, memory.local_size, memory.cluster]
        windows = [GLOBAL_BASE, SHARED_WINDOW, LOCAL_WINDOW]
        row = (*map(native.address_of, arrays), *numbers, *windows)
        return np.array([row], native.MEMORY), arrays


def _signed(value: int) -> int:
    """A number of 64 bits as int64 has it."""
    return ((value & 0xFFFFFFFFFFFFFFFF) ^ (1 << 63)) - (1 << 63)
