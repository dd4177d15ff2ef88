"""Tensor memory: which of its accesses are ordered (PTX ISA 9.1, section 9.7.16.6).

Everything there is done by agents of their own: the queue of mma, cp and shift of a warp, its ld,
its st. A commit makes what a queue has done by then known to who waits for its mbarrier; wait::ld
and wait::st make the loads and stores of a warp known to itself. A load is complete, too, when one
of its registers has been used ("true register dependency"). Some pairs of one queue need nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import (
    ASYNC,
    COLUMN_MASK,
    later,
    record,
    site_of,
    unlike,
)
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.shared_places import CHUNK
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.numbers.types import I32, I64
from fragir.emulator.program.dataflow import dataflow
from fragir.emulator.program.entities import Register

if TYPE_CHECKING:
    from fragir.emulator.checks.races.asynchronous import BulkCopies
    from fragir.emulator.machine.tensor_work import (
        TensorAccess,
        TensorCommit,
        TensorRegion,
        TensorStatement,
        TensorWork,
    )
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

#: Agents whose work a relaxed wait does not make known without tcgen05.fence::after_thread_sync.
_AGENTS = ("tensor", "tensor ld", "tensor st")
#: (what has written, what reads or writes now): in one queue the second follows the first.
_PIPELINED = {
    ("cp", "mma"),
    ("cp", "cp"),
    ("refresh", "mma"),
    ("refresh", "refresh"),
    ("shift", "mma"),
    ("shift", "refresh"),
}


class LoadedRegisters:
    """Registers that tcgen05.ld writes, and the instructions that use them."""

    def __init__(self, program: Program) -> None:
        flow = dataflow(program)
        loads = [
            each
            for placed, each in zip(program.code, flow.roles, strict=True)
            if program.opcode(placed.ins).bits == "tensor load"
        ]
        self._known: dict[Register, int] = {}
        for each in loads:
            for register in each.written:
                self._known.setdefault(register, 1 << len(self._known))
        self.users: dict[int, int] = {}
        for placed, each in zip(program.code, flow.roles, strict=True):
            used = self.bits((*each.read, *each.written))
            if used:
                self.users[id(placed.ins)] = used

    @classmethod
    def of(cls, program: Program) -> LoadedRegisters:
        return program.analyses.once(cls, lambda: cls(program))

    def bits(self, registers: Iterable[Register]) -> int:
        found = 0
        for register in registers:
            found |= self._known.get(register, 0)
        return found


class TensorRaces:
    """`bulk` has the rules of what the asynchronous proxy reads of shared memory."""

    def __init__(self, context: Context, program: Program, bulk: BulkCopies) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites
        self.findings, self.bulk = context.findings, bulk
        self.registers = LoadedRegisters.of(program)
        self._cells: tuple[I64, I64, I64, npt.NDArray[np.int16]] | None = None
        self._kinds: list[tuple[object, ...]] = []
        self.start_wave()

    def start_wave(self) -> None:
        if self._cells is not None:
            for cells in self._cells:
                cells[...] = 0
        #: By warp: the loads whose registers nobody has used, as (time, registers).
        self.outstanding: dict[int, list[tuple[int, int]]] = {}
        #: By lane: what a relaxed wait has seen.
        self._deferred: dict[int, I32] = {}
        #: By commit: what its lane knew, its queue's work among it.
        self._commits: dict[int, tuple[TensorCommit, I32, int]] = {}
        #: By block: the last alloc that one of its warps has come to.
        self._allocs: dict[int, tuple[TensorStatement, int]] = {}

    @property
    def cells(self) -> tuple[I64, I64, I64, npt.NDArray[np.int16]]:
        """Of each word `[blocks, 128, 512]`: the records of its last write, ld, and other read, and
        the number of what has written it in `_kinds`."""
        if self._cells is None:
            shape = self.machine.tensor.words.shape
            records = (np.zeros(shape, np.int64) for _ in range(3))
            written, loaded, read = records
            self._cells = written, loaded, read, np.zeros(shape, np.int16)
        return self._cells

    # -- questions -------------------------------------------------------------------------------

    def _unknown(self, lanes: I64, records: I64) -> int:
        """A record that none of the lanes knows; 0 if there is none."""
        some = np.unique(records.ravel()[unlike(records)])
        some = some[some > 0]
        if not len(some):
            return 0
        shape = len(lanes), len(some)
        bad = self.clocks.unordered(np.repeat(lanes, len(some)), np.tile(some, len(lanes))).reshape(
            shape
        )
        raced = bad.all(axis=0)
        return int(some[raced][0]) if raced.any() else 0

    def _clash(self, lane: int, region: TensorRegion, cells: I64, rec: int, text: str) -> None:
        """Say it of the first word that has a record."""
        where = np.argwhere(region.of(cells) == rec)[0]
        at = int(region.lanes[where[0]]), region.first + int(where[1])
        self._say(lane, at, rec, text)

    def _say(self, lane: int, at: tuple[int, int], rec: int, text: str) -> None:
        site, other = self.sites.current, int(site_of(rec))
        text = f"at lane {at[0]} column {at[1]} of tensor memory: {text}"
        text = text.format(self.findings.who(lane, rec))
        text += self.clocks.waited_for(lane, rec & COLUMN_MASK)
        self.findings.tensor(site, other, lane, at[0] << 16 | at[1], text)

    # -- ld and st -------------------------------------------------------------------------------

    def access(self, access: TensorAccess) -> None:
        clocks, warp = self.clocks, access.warp
        self.sites.current = self.sites.of(access.form.instruction)
        block = int(self.machine.block_of[warp])
        written, loaded, read, kinds = (cells[block] for cells in self.cells)
        lanes = warp * LANES + np.arange(LANES, dtype=np.int64)
        first = int(lanes[0])
        loads = clocks.agent(first, "tensor ld", warp)
        stores = clocks.agent(first, "tensor st", warp)
        where = access.lanes, access.columns
        looks = [(written[where], stores, "nothing orders this after {}")]
        if not access.loads:
            text = "nothing orders this after {}, which reads here"
            looks += [(loaded[where], loads, text), (read[where], -1, text)]
        for records, own, text in looks:
            others = np.where(records & COLUMN_MASK == own, 0, records)
            rec = self._unknown(lanes, others)
            if rec:
                at = tuple(np.argwhere(others == rec)[0])
                self._say(first, (int(access.lanes[at]), int(access.columns[at])), rec, text)
        time = ASYNC + clocks.now
        if access.loads:
            loaded[where] = record(time, loads, self.sites.current)
            used = self.registers.users.get(id(access.form.instruction), 0)
            if warp in self.outstanding:
                self._note_used(warp, used)
            self.outstanding.setdefault(warp, []).append((time, used))
        else:
            written[where] = record(time, stores, self.sites.current)
            kinds[where] = 0
        clocks.now += 1

    def _complete(self, warp: int, kind: str, time: int) -> None:
        lanes = slice(warp * LANES, (warp + 1) * LANES)
        column = self.clocks.agent(warp * LANES, kind, warp)
        known = self.clocks.known[0, lanes, column]
        self.clocks.known[0, lanes, column] = np.maximum(known, time)

    def wait(self, loads: bool, lanes: I64) -> None:
        """wait::ld, or wait::st."""
        for warp in np.unique(lanes // LANES).tolist():
            if loads:
                self.outstanding.pop(warp, None)
            self._complete(warp, "tensor ld" if loads else "tensor st", ASYNC + self.clocks.now)
        self.clocks.now += 1

    def using(self, group: Sequence[Instruction], step: Step) -> Step:
        """A step of instructions that may use registers of loads."""
        machine, used = self.machine, 0
        for ins in group:
            used |= self.registers.users.get(id(ins), 0)
        if not used:
            return step

        def run(sel: Select, mask: Mask) -> None:
            if self.outstanding:
                warps = np.arange(machine.warps)[sel]
                for warp in (warps if mask is None else warps[mask.any(axis=1)]).tolist():
                    if warp in self.outstanding:
                        self._note_used(warp, used)
            step(sel, mask)

        return run

    def _note_used(self, warp: int, used: int) -> None:
        left = [each for each in self.outstanding[warp] if not each[1] & used]
        if len(left) == len(self.outstanding[warp]):
            return
        time = min((each[0] for each in left), default=ASYNC + self.clocks.now + 1) - 1
        self._complete(warp, "tensor ld", time)
        self.outstanding[warp] = left
        if not left:
            del self.outstanding[warp]

    # -- mma, cp and shift -----------------------------------------------------------------------

    def issue(self, work: TensorWork) -> None:
        clocks, lane = self.clocks, work.lane
        queue = clocks.agent(lane, "tensor", 2 * (lane // LANES) + work.group)
        written, loaded, read, kinds = self.cells
        number = self._number(work.kind)
        who = np.array([lane], np.int64)
        for region in work.writes:
            look = region.of(loaded)
            if (rec := self._unknown(who, look)) != 0:
                text = "{} may still load what this overwrites"
                self._clash(lane, region, loaded, rec, text)
            look = region.of(read)
            look[look & COLUMN_MASK == queue] = 0
            if (rec := self._unknown(who, look)) != 0:
                self._clash(lane, region, read, rec, "{} may still read what this overwrites")
            self._follows(work, region, queue, region in work.reads or work.kind[0] == "mma")
        for region in work.reads:
            if region not in work.writes:
                self._follows(work, region, queue, False)
        rec = record(ASYNC + clocks.now, queue, self.sites.current)
        for region in work.reads:
            region.put(read, rec)
        for region in work.writes:
            region.put(written, rec)
            region.put(kinds, number)
        self._shared(work, queue)
        clocks.now += 1

    def _number(self, kind: tuple[object, ...]) -> int:
        if kind not in self._kinds:
            self._kinds.append(kind)
        return self._kinds.index(kind) + 1

    def _follows(self, work: TensorWork, region: TensorRegion, queue: int, adds: bool) -> None:
        """What has been written there, before this reads or writes it. `adds`: as its result."""
        written, _, _, kinds = self.cells
        look = region.of(written)
        own = look & COLUMN_MASK == queue
        if own.any():
            numbers = region.of(kinds)
            found: list[int] = np.unique(numbers[own]).tolist()
            for number in found:
                before = self._kinds[number - 1]
                fine = (before[0], work.kind[0]) in _PIPELINED
                if adds and before[0] == "mma" == work.kind[0]:
                    fine = before == work.kind
                if fine:
                    look[own & (numbers == number)] = 0
        rec = self._unknown(np.array([work.lane], np.int64), look)
        if rec:
            text = "nothing orders this after {}"
            if rec & COLUMN_MASK == queue:
                text += ", which the pipeline does not (another shape, or another use)"
            self._clash(work.lane, region, written, rec, text)

    def _shared(self, work: TensorWork, queue: int) -> None:
        """What it reads of shared memory."""
        if not work.shared.size:
            return
        shared = self.bulk.places
        places = shared.places(work.shared, CHUNK)
        lanes = np.full(places.shape, work.lane, np.int64)
        self.bulk.must_see(places << shared.shift, lanes, shared.written[places])
        rec = record(ASYNC + self.clocks.now, queue, self.sites.current)
        shared.chunk_read[work.shared // CHUNK, -1] = rec

    # -- commits and fences ----------------------------------------------------------------------

    def commit(self, commit: TensorCommit) -> None:
        clocks, lane = self.clocks, commit.lane
        queue = clocks.agent(lane, "tensor", 2 * (lane // LANES) + commit.group)
        time = ASYNC + clocks.now
        vector = clocks.publish(np.array([lane]))
        if queue >= vector.shape[1]:
            vector = later(vector, np.zeros((clocks.planes, clocks.width), np.int32))
        vector[0, queue] = time
        self._commits[id(commit)] = commit, vector, self.sites.current

    def arriving(self, commit: TensorCommit, position: int) -> tuple[I32, int, int]:
        """What a commit hands on that arrives now at an mbarrier, and the column and time that
        stand for the arrival itself. The site is the commit's."""
        clocks = self.clocks
        _, vector, self.sites.current = self._commits[id(commit)]
        clocks.now += 1
        agent, time = clocks.agent(commit.lane, "commit", position), clocks.now
        vector = later(vector, np.zeros((clocks.planes, clocks.width), np.int32))
        vector[0, agent] = time
        return vector, agent, time

    def without(self, vector: I32, lanes: I64) -> I32:
        """What a relaxed wait makes known at once; the rest waits for a fence."""
        columns = [
            column
            for (cluster, kind, _), column in self.clocks.agents.items()
            if kind in _AGENTS and cluster == int(lanes[0]) // self.clocks.lanes
        ]
        columns = [column for column in columns if column < vector.shape[1]]
        if not columns:
            return vector
        rest = np.zeros_like(vector)
        rest[0, columns] = vector[0, columns]
        for lane in lanes.tolist():
            self._deferred[lane] = later(rest, self._deferred.get(lane))
        vector = vector.copy()
        vector[0, columns] = 0
        return vector

    def fence(self, lanes: I64) -> None:
        """tcgen05.fence::after_thread_sync."""
        for lane in lanes.tolist():
            if (vector := self._deferred.pop(lane, None)) is not None:
                self.clocks.acquire(np.array([lane]), vector)

    # -- allocation ------------------------------------------------------------------------------

    def permit(self, form: TensorStatement, name: str, lane: int) -> None:
        """A warp comes to alloc, or to relinquish, behind which there is no alloc of the block."""
        clocks = self.clocks
        block = int(self.machine.block_of[lane // LANES])
        if name == "alloc":
            self._allocs[block] = form, record(clocks.now, int(clocks.own[lane]), 0)
            clocks.now += 1
        elif block in self._allocs:
            alloc, rec = self._allocs[block]
            if clocks.unordered(np.array([lane]), np.array([rec])).any():
                text = f"nothing orders this after {alloc.text}, which is illegal behind it"
                self.machine.tensor.say(form, text, lane)

    def free(self, site: int, block: int, first: int, count: int, lane: int) -> None:
        """Columns are given back: nothing may be under way there."""
        self.sites.current = site
        warp = lane // LANES
        lanes = warp * LANES + np.arange(LANES, dtype=np.int64)
        columns = slice(first, first + count)
        said = ("{} may still write to it", "{} may still load from it", "{} may still read it")
        for cells, text in zip(self.cells[:3], said, strict=True):
            part = cells[block][:, columns]
            rec = self._unknown(lanes, part)
            if rec:
                at = np.argwhere(part == rec)[0]
                self._say(lane, (int(at[0]), first + int(at[1])), rec, text)
            part[...] = 0
