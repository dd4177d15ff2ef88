"""Which parts of a block become straight-line runs, and how one call goes from block to block.

Blocks that are run often enough are looked through once: what can be encoded becomes runs. A block
that is one run is a piece for the library, which goes on by itself to the next one as long as all
lanes go together: loops, and what they branch around, take one call for many turns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.arena import Footprint
from fragir.emulator.machine.lanes import Mask, Select, Step, is_slice
from fragir.emulator.machine.memory import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.machine.state import State
from fragir.emulator.machine.straight import (
    BasicBlock,
    Encodes,
    Ending,
    StraightCode,
    StraightRun,
    Walking,
    WatchesRuns,
)
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand, StraightFunctions
from fragir.emulator.numbers.types import Array

# -- straight templates ----------------------------------------------------------------------------
# Straight-line runs of a program for the next launch of it: only addresses differ.

#: The first byte of each register file, by its width.
Bases: TypeAlias = Mapping[int, int]


@dataclass(slots=True)
class EncodedRun:
    """The operations of one run as the library takes them, for register files at `bases`.

    `files`: of guards, results and operands, which register file they are in; None where other
    launches have some of them elsewhere.
    """

    codes: Array
    operands: Array
    files: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]] | None
    bases: Bases
    accesses: bool
    keeps: object

    def moved(self, bases: Bases) -> EncodedRun:
        """The same for another launch."""
        assert self.files is not None
        change = changes(self.bases, bases)
        codes, operands = self.codes.copy(), self.operands.copy()
        for name, files in zip(("guard", "out", "other"), self.files[0], strict=True):
            codes[name]["base"] += change[files]
        operands["base"] += change[self.files[1]]
        return EncodedRun(codes, operands, self.files, bases, self.accesses, self.keeps)


def changes(old: Bases, new: Bases) -> npt.NDArray[np.uint64]:
    """How far each register file lies from where it was, by its width."""
    change = np.zeros(max(old) + 1, np.uint64)
    for width, base in old.items():
        change[width] = (new[width] - base) & 0xFFFFFFFFFFFFFFFF
    return change


def encode_run(
    encoded: Sequence[StraightCode],
    of: Sequence[int],
    numbers: Mapping[str, int],
    bases: Bases,
) -> EncodedRun:
    """Operations beside each other; `of`: of which instruction each of them is."""
    operands: list[RowOperand] = []
    rows: list[tuple[object, ...]] = []
    for code, instruction in zip(encoded, of, strict=True):
        rows.append(
            (
                code.kind,
                numbers[code.function] if code.function else 0,
                instruction,
                len(operands),
                len(code.sources),
                code.times,
                code.combine,
                code.space,
                code.width,
                code.signed,
                code.watched,
                0,
                _as_int64(code.immediate),
                code.guard.fields,
                code.out.fields,
                code.other.fields,
            )
        )
        operands += code.sources
    results = [[code.guard.file, code.out.file, code.other.file] for code in encoded]
    read = [operand.file for operand in operands]
    files = None
    if min([*read, *(file for each in results for file in each)], default=0) >= 0:
        of_codes = np.array(results, np.intp).reshape(-1, 3).T
        files = of_codes, np.array(read or [0], np.intp)
    return EncodedRun(
        np.array(rows, native.CODE),
        native.operands_array(operands),
        files,
        bases,
        any(code.kind >= native.LOAD for code in encoded),
        encoded,
    )


@dataclass(slots=True)
class EncodedBlock:
    """A block as `StraightBlocks` has looked it through.

    `parts`: runs, with their first instruction and the one behind the last, counted in the block;
    `ending`: of a block that is one run.
    """

    positions: list[int]
    parts: list[tuple[int, int, EncodedRun]]
    ending: Ending | None
    bases: Bases

    def lasts(self) -> bool:
        """Whether other launches can take it."""
        ends = self.ending is None or self.ending.row.file >= 0
        return ends and all(run.files is not None for _, _, run in self.parts)

    def moved(self, bases: Bases) -> EncodedBlock:
        """The same for another launch."""
        ending = self.ending
        if ending is not None and ending.row.file > 0:
            file, (base, *rest) = ending.row.file, ending.row.fields
            base += bases[file] - self.bases[file]
            row = ending.row._replace(fields=(base, rest[0], rest[1], rest[2], rest[3]))
            ending = ending._replace(row=row)
        parts = [(first, end, run.moved(bases)) for first, end, run in self.parts]
        return EncodedBlock(self.positions, parts, ending, bases)


class EncodedBlocks(dict[tuple[int, ...], EncodedBlock]):
    """Blocks of a program by where they begin and the shape of the launch."""


class CheckedBlocks:
    """The blocks of a program by what checks look at: most launches with checks have the same."""

    KEPT = 8

    def __init__(self) -> None:
        self._known: dict[tuple[frozenset[int], frozenset[int]], EncodedBlocks] = {}

    def of(self, wrapped: Iterable[int], watched: Iterable[int]) -> EncodedBlocks:
        """Those of launches in which checks look at these instructions (`Decoder`)."""
        key = frozenset(wrapped), frozenset(watched)
        found = self._known.get(key)
        if found is None:
            if len(self._known) == self.KEPT:
                del self._known[next(iter(self._known))]
            found = self._known[key] = EncodedBlocks()
        return found


def _as_int64(value: int) -> int:
    """A number of 64 bits as int64 has it."""
    return ((value & 0xFFFFFFFFFFFFFFFF) ^ (1 << 63)) - (1 << 63)


#: Visits of a block before it is encoded, which takes as long as some ten of its steps: most
#: code runs once. A visit of so many warps counts twice, and so on.
WARM, MANY = 8, 32
_ROOM = 64  # pieces that there is room for at first
_NOWHERE = (native.OTHER, 0, 0, 0, 0, -1, -1, -1, -1)  # a piece that is no block


def shape_of(machine: State) -> tuple[int, int, int]:
    """What the operations of a program depend on beside its text."""
    return machine.warps, machine.warps_per_block, machine.cluster_size


class StraightBlocks:
    """Turns blocks into runs, for one machine.

    `known`: blocks of earlier launches of the program, to which these are added. `taken`: backward
    branches taken in this round, by position; `budget`: how many may be. `watch`: the checks.
    """

    def __init__(
        self,
        machine: State,
        encoder: Encodes,
        functions: StraightFunctions,
        known: EncodedBlocks,
        taken: npt.NDArray[np.int64],
        budget: int,
        watch: WatchesRuns | None = None,
    ) -> None:
        self.machine, self.encoder, self.functions = machine, encoder, functions
        self.watch = watch
        self.known, self.shape = known, shape_of(machine)
        self.bases = {width: native.address_of(file) for width, file in machine.files.items()}
        self.totals: npt.NDArray[np.int64] = np.zeros(8, np.int64)  # bytes loaded, then stored
        self.pieces: Array = np.zeros(_ROOM, native.PIECE)
        self.runs: npt.NDArray[np.int64] = np.zeros(_ROOM, np.int64)
        #: By piece: its block where it is one.
        self.blocks: list[BasicBlock | None] = []
        #: By piece, under checks: its run, the registers that they look at where one is in doubt,
        #: and those of its ending.
        self._watched: list[tuple[StraightRun, int, int]] = []
        self._doubt = 0
        self._starts: dict[int, int] = {}  # position -> the piece that is the block there
        self._seen_stores = 0
        self._footprint: Footprint | None = None
        self._memory, self._keeps = self._describe_memory()
        walk = native.Walk(budget=budget, taken=native.address_of(taken))
        walk.memory = native.address_of(self._memory)
        walk.checks = 0 if watch is None else watch.address
        address = ctypes.addressof(walk)
        self.walking = Walking(functions.call, walk, address, self._waits, watch, self._look)
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
        self, run: StraightRun, sel: Select, mask: Mask, left: int, others: int
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
        self._look()
        walk.left, walk.others, walk.piece = left, others, run.number
        walk.whole = (
            mask is None and is_slice(sel) and sel.start == 0 and sel.stop == machine.resident
        )
        at = run.go(sel, mask, 0, 0 if waits else 1)
        return self._block(walk.piece), at, walk.left

    def _look(self) -> None:
        """Says of all pieces which of their registers are in doubt, where that has changed."""
        if self.watch is None or (doubt := self.watch.doubt()) == self._doubt:
            return
        changed, self._doubt = doubt ^ self._doubt, doubt
        for number, (run, involved, ending) in enumerate(self._watched):
            if involved & changed:
                run.doubt(doubt)
            if ending & changed:
                self.pieces[number]["doubt"] = ending & doubt != 0

    def _block(self, number: int) -> BasicBlock:
        found = self.blocks[number]
        assert found is not None
        return found

    # -- blocks ------------------------------------------------------------------------------------

    def prepare(self, block: BasicBlock) -> None:
        """Puts runs into the parts of a block, and makes it a piece where it is one run."""
        positions = [at for at, _ in block.pairs]
        key = (block.start, *self.shape)
        found = self.known.get(key)
        if found is not None and found.positions == positions:
            found = found.moved(self.bases)
        else:
            found = self._encode(block, positions)
            if found.lasts():
                self.known[key] = found
        parts: list[tuple[int, Step]] = []
        done = 0
        for first, end, encoded in found.parts:
            parts += block.pairs[done:first]
            run = self._run(encoded, positions[first:end], [s for _, s in block.pairs[first:end]])
            parts.append((positions[first] if end > first else block.start, run))
            done = end
            if found.ending is not None:
                block.whole = run
                self._link(run.number, block, found.ending)
        block.parts = parts + block.pairs[done:]

    def _encode(self, block: BasicBlock, positions: list[int]) -> EncodedBlock:
        """Looks through a block: which of its instructions are runs, and how it ends."""
        parts: list[tuple[int, int, EncodedRun]] = []
        codes: list[StraightCode] = []
        of: list[int] = []
        first = 0
        for index, at in enumerate(positions):
            more = self.encoder.codes(at)
            if more is None:
                if codes:
                    parts.append((first, index, self._encode_run(codes, of)))
                codes, of, first = [], [], index + 1
            else:
                of += [index - first] * len(more)
                codes += more
        ending = None
        if first == 0:  # all of it
            ending = Ending(native.FALLING)
            if block.terminator is not None:
                ending = self.encoder.ending(block.end)
        if codes or ending is not None:
            parts.append((first, len(positions), self._encode_run(codes, of)))
        return EncodedBlock(positions, parts, ending, self.bases)

    def _encode_run(self, codes: list[StraightCode], of: list[int]) -> EncodedRun:
        return encode_run(codes, of, self.functions.numbers, self.bases)

    def _link(self, number: int, block: BasicBlock, ending: Ending) -> None:
        """Says how a piece ends, and who comes to it."""
        self.blocks[number] = block
        self._starts[block.start] = number
        asked = self.encoder.involved(block.end) if block.terminator is not None else 0
        if self.watch is not None:
            run, involved, _ = self._watched[number]
            self._watched[number] = run, involved, asked
        after = block.end + (block.terminator is not None)
        self._keeps.append(ending)
        starts = self._starts
        self.pieces[number] = (
            *self.pieces[number].item()[:4],
            *(ending.kind, block.end, block.size, block.collective, asked & self._doubt != 0),
            *(starts.get(after, -1), starts.get(ending.to, -1), after, ending.to),
            ending.row.fields,
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
        return self._run(self._encode_run(encoded, of), positions, steps)

    def _run(self, encoded: EncodedRun, positions: list[int], steps: list[Step]) -> StraightRun:
        number = len(self.blocks)
        self.blocks.append(None)
        if number == len(self.pieces):
            self.pieces = np.concatenate([self.pieces, np.zeros(number, native.PIECE)])
            self.runs = np.concatenate([self.runs, np.zeros(number, np.int64)])
            self._tell_places()
        places = [native.address_of(array) for array in (encoded.codes, encoded.operands)]
        counts = (len(encoded.codes), len(steps))
        self.pieces[number] = (*places, *counts, *_NOWHERE, NO_ROW.fields)
        involved = [self.encoder.involved(at) for at in positions] if self.watch else []
        codes, accesses = encoded.codes, encoded.accesses
        codes["doubt"] = 0
        run = StraightRun(
            self.walking, number, positions, steps, accesses, involved, codes, encoded
        )
        if self.watch is not None:
            either = 0
            for each in involved:
                either |= each
            self._watched.append((run, either, 0))
            run.doubt(self._doubt)
        return run

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

    def _describe_memory(self) -> tuple[Array, list[object]]:
        memory = self.machine.memory
        places = sorted(memory.places, key=lambda b: b.start)
        starts = np.array([b.start for b in places] or [0], np.int64)
        ends = np.array([b.start + b.size for b in places] or [0], np.int64)
        arrays: list[Array] = [memory.globals.bytes, memory.shared.bytes, memory.local.bytes]
        arrays += [starts, ends, memory.shared_home, memory.local_home, self.totals]
        numbers = [0, 0, 0, memory.globals.bytes.size]
        numbers += [len(places), memory.shared_size, memory.local_size, memory.cluster]
        windows = [GLOBAL_BASE, SHARED_WINDOW, LOCAL_WINDOW]
        row = (*map(native.address_of, arrays), *numbers, *windows)
        return np.array([row], native.MEMORY), [*arrays]


@dataclass(slots=True)
class StraightMaker:
    """Makes the runs of a launch once there is use for them.

    `build` takes blocks of earlier launches, the backward branches by position, and how many may be
    taken in one round. `known` are those blocks, once all is decoded.
    """

    build: Callable[[EncodedBlocks, npt.NDArray[np.int64], int], StraightBlocks]
    shape: tuple[int, int, int]
    known: EncodedBlocks = field(default_factory=EncodedBlocks)

    def make(self, taken: npt.NDArray[np.int64], budget: int) -> StraightBlocks:
        return self.build(self.known, taken, budget)

    def knows(self, start: int) -> bool:
        """Whether an earlier launch has looked through the block there."""
        return (start, *self.shape) in self.known
