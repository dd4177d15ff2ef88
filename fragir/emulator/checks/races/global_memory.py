"""Races on global memory: what is kept of each buffer, and what clusters know of each other.

Of every place the last write, the last read, and the last read by another cluster are kept; blocks
of different waves stand beside each other too. Within a cluster the clocks order accesses. Between
clusters only strong accesses do, behind fences: what a lane learns of another cluster is an event
in its own time, known to whoever knows the lane up to then. Lanes of one warp are left alone, but
for updates that get lost (`race_updates.py`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    Clocks,
)
from fragir.emulator.checks.scopes import BLOCK, CLUSTER, DEVICE
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Region

Vector = npt.NDArray[np.int32]
#: cluster of the grid -> times of its lanes and agents; and, in a second row, of what fences have
#: shown to the asynchronous proxy.
Knowledge = dict[int, Vector]


class Events:
    """At `times[i]` the lane of `columns[i]` learned `learned[i]` of other clusters."""

    def __init__(self) -> None:
        self.learned: list[Knowledge] = []
        self._room: I64 = np.zeros((2, 32), np.int64)

    def add(self, time: int, column: int, known: Knowledge) -> None:
        count = len(self.learned)
        if count == self._room.shape[1]:
            self._room = np.concatenate([self._room, np.zeros_like(self._room)], axis=1)
        self._room[:, count] = time, column
        self.learned.append(known)

    @property
    def times(self) -> I64:
        return self._room[0, : len(self.learned)]

    @property
    def columns(self) -> I64:
        return self._room[1, : len(self.learned)]


class World:
    """What clusters know of each other. Clusters are numbered over the grid, from 1."""

    def __init__(self, machine: Machine, clocks: Clocks) -> None:
        self.machine, self.clocks = machine, clocks
        self.alone = machine.grid[0] * machine.grid[1] * machine.grid[2] == machine.cluster_size
        self.published: dict[int, Knowledge] = {}
        self.events: dict[int, Events] = {}
        # What a lane has learned once: a poll that reads the same again is no event.
        self._learned: set[tuple[int, int, int]] = set()
        self._merged: dict[tuple[int, bytes], Knowledge] = {}
        self._of_lane: dict[tuple[int, int, bool], tuple[Bools, Knowledge]] = {}
        self.first = 1

    def start_wave(self, first: int) -> None:
        """`first`: the grid's number of the first resident cluster."""
        self.first = first

    def publish(self, position: int, cluster: int, vector: Any) -> None:
        """A resident cluster hands on times by a strong write to a place."""
        if self.alone:
            return
        number = self.first + cluster
        known = dict(self.published.get(position, {}))
        rows = vector[[0, self.clocks.proxy_global]]
        known[number] = later(rows, known.get(number))
        self.published[position] = known

    def acquire(self, known: Knowledge, lanes: I64) -> None:
        """Lanes of one cluster learn what was published at a place."""
        cluster = int(lanes[0]) // self.clocks.lanes
        number = self.first + cluster
        events = self.events.setdefault(number, Events())
        for lane in lanes:
            column = int(self.clocks.own[lane])
            key = (number, column, id(known))  # an event keeps `known`, so no other has its id
            if key not in self._learned:
                self._learned.add(key)
                events.add(self.clocks.now, column, known)
        self.clocks.now += 1

    def knowledge(self, lane: int, proxy: bool = False) -> Knowledge:
        """What a lane knows of other clusters; `proxy`: at its last fence of that proxy."""
        cluster = lane // self.clocks.lanes
        number = self.first + cluster
        events = self.events.get(number)
        if events is None:
            return {}
        if proxy:
            mine = self.clocks.known[self.clocks.proxy_global, lane]
        else:
            mine = self.clocks.rows(np.array([lane]))[0, 0]
        heard: Bools = mine[events.columns] >= events.times
        key = number, np.packbits(heard).tobytes()
        if (found := self._merged.get(key)) is not None:
            self._of_lane[number, lane, proxy] = heard, found
            return found
        # A lane forgets nothing, and what it knew brings nothing new: only what it heard since.
        old, known = self._of_lane.get((number, lane, proxy), (heard[:0], {}))
        since = heard.copy()
        since[: len(old)] &= ~old
        best: Knowledge = dict(known)
        work = [events.learned[i] for i in np.flatnonzero(since)]
        while work:
            for other, vector in work.pop().items():
                before = best.get(other)
                if before is not None and covers(before, vector):
                    continue
                merged = best[other] = later(vector, before)
                if (theirs := self.events.get(other)) is None:
                    continue
                times, columns = theirs.times, theirs.columns
                now = times <= merged[0, columns]
                if before is not None:
                    now &= times > before[0, columns]
                work += [theirs.learned[i] for i in np.flatnonzero(now)]
        self._merged[key] = best
        self._of_lane[number, lane, proxy] = heard, best
        return best

    def unknown(self, lanes: I64, records: I64, owners: I32) -> Bools:
        """Which accesses of lanes of other clusters the lanes do not know (flat arrays)."""
        bad: Bools = np.ones(len(lanes), np.bool_)
        if not self.events:
            return bad
        time, column = records >> TIME_SHIFT, records & COLUMN_MASK
        for lane in np.unique(lanes):
            known = self.knowledge(int(lane))
            if not known:
                continue
            mine = np.flatnonzero(lanes == lane)
            for owner in np.unique(owners[mine]):
                vector = known.get(int(owner))
                if vector is not None:
                    which = mine[owners[mine] == owner]
                    bad[which] = time[which] > at(vector[0], column[which])
        return bad

    def hidden(self, lane: int, records: I64, owners: I32) -> Bools:
        """Which writes of other clusters no fence has shown to the asynchronous proxy."""
        time, column = records >> TIME_SHIFT, records & COLUMN_MASK
        bad: Bools = column < self.clocks.lanes
        for row, known in enumerate((self.knowledge(lane, proxy=True), self.knowledge(lane))):
            for owner in np.unique(owners[bad]):
                vector = known.get(int(owner))
                if vector is not None:
                    which = np.flatnonzero(bad & (owners == owner))
                    bad[which] = time[which] > at(vector[row], column[which])
        return bad


def at(times: Vector, columns: I64) -> Any:
    """The times of columns; never, of columns that came later."""
    return np.where(columns < len(times), times[np.minimum(columns, len(times) - 1)], 0)


def covers(a: Vector, b: Vector) -> bool:
    """Whether `a` has all that `b` has."""
    width = min(a.shape[1], b.shape[1])
    return bool((b[:, :width] <= a[:, :width]).all()) and not b[:, width:].any()


def later(a: Vector, b: Vector | None) -> Vector:
    """The later of two times everywhere."""
    if b is None:
        return a
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    result = a.copy()
    result[:, : b.shape[1]] = np.maximum(a[:, : b.shape[1]], b)
    return result


#: What of a place is kept: the last write, the last read, the last read of another cluster.
WRITE, READ, READ_ELSEWHERE = range(3)
LIMIT = 1 << 23  # places of one buffer; larger ones are left alone
LATEST = 64  # bulk copies of a buffer whose reads are kept until somebody writes to it


class Ledger:
    """The last accesses to every place of one buffer. A place is the smallest access so far."""

    def __init__(self, start: int, size: int) -> None:
        self.start, self.size = start, size
        self.shift = 4
        count = (size >> self.shift) + 1
        self.records: I64 = np.zeros((3, count), np.int64)
        self.owners: I32 = np.zeros((3, count), np.int32)
        self.written = False
        #: What bulk copies have read while nothing was written: region, record, owner.
        self.copied: deque[tuple[Region, int, int]] = deque(maxlen=LATEST)
        self.too_large = count > LIMIT

    def refine(self, shift: int) -> None:
        """Make places smaller."""
        times = 1 << (self.shift - shift)
        if self.records.shape[1] * times > LIMIT:
            self.too_large = True
            return
        self.records = np.repeat(self.records, times, axis=1)
        self.owners = np.repeat(self.owners, times, axis=1)
        self.shift = shift

    def places(self, at: I64, size: int) -> I64:
        shift = (size & -size).bit_length() - 1
        if shift < self.shift:
            self.refine(shift)
        return ((at - self.start)[:, None] >> self.shift) + np.arange(max(size >> self.shift, 1))

    def note_read(self, places: I64, mine: I64, owner: I32) -> None:
        """`mine`, `owner`: one for each access."""
        records, owners = self.records, self.owners
        who = np.broadcast_to(owner[:, None], places.shape)
        rec = np.broadcast_to(mine[:, None], places.shape)
        before = owners[READ, places]
        moved = (before != who) & (before != 0)
        if moved.any():
            there = places[moved]
            records[READ_ELSEWHERE, there] = records[READ, there]
            owners[READ_ELSEWHERE, there] = before[moved]
        records[READ, places] = rec
        owners[READ, places] = who
        lost = owners[READ, places] != who
        if lost.any():
            records[READ_ELSEWHERE, places[lost]] = rec[lost]
            owners[READ_ELSEWHERE, places[lost]] = who[lost]

    def note_write(self, places: I64, mine: I64, owner: I32) -> tuple[bool, bool]:
        """Whether several warps write one place, and whether several lanes do."""
        self.written = True
        self.records[WRITE, places] = mine[:, None]
        self.owners[WRITE, places] = owner[:, None]
        apart = (self.records[WRITE, places] ^ mine[:, None]) & COLUMN_MASK
        others = self.owners[WRITE, places] != owner[:, None]
        if not apart.any() and not others.any():
            return False, False
        return bool((apart >> 5 != 0).any() or others.any()), True

    def others(self, places: I64, mine: I64, owner: I32) -> Bools:
        """Which accesses have written places where another warp was the last to write."""
        last, by = self.records[WRITE, places], self.owners[WRITE, places]
        apart = (last ^ mine[:, None]) & COLUMN_MASK >> 5 << 5 != 0
        return (apart | (by != owner[:, None])).any(axis=1)


class GlobalRecords:
    """The ledgers of all buffers."""

    def __init__(
        self, machine: Machine, clocks: Clocks, world: World, strengths: npt.NDArray[np.int8]
    ) -> None:
        self.machine, self.clocks, self.world = machine, clocks, world
        self.strengths = strengths  # of the instruction at each site
        self.ledgers: dict[int, Ledger] = {}
        self.owner_of: I32 = np.zeros(machine.warps * LANES, np.int32)

    def start_wave(self, first: int) -> None:
        self.world.start_wave(first)
        lanes = np.arange(len(self.owner_of))
        self.owner_of = (first + lanes // self.clocks.lanes).astype(np.int32)

    def by_buffer(self, at: I64) -> list[tuple[Ledger, Any]]:
        """The ledgers of the buffers in which positions lie, and which of them: a mask or all."""
        memory = self.machine.memory
        which = memory.buffer_of(at)
        first = int(which[0])
        if (which == first).all():
            return [(self._ledger(first), slice(None))]
        return [(self._ledger(int(b)), which == b) for b in np.unique(which)]

    def _ledger(self, index: int) -> Ledger:
        found = self.ledgers.get(index)
        if found is None:
            buffer = self.machine.memory.buffers[index]
            found = self.ledgers[index] = Ledger(buffer.start, buffer.size)
        return found

    def clashes(
        self, ledger: Ledger, kinds: tuple[int, ...], places: I64, lanes: I64, scope: int
    ) -> list[tuple[int, int, int, int, int]]:
        """(kind, index of the access, place, record, owner) of accesses that nothing orders.

        Two strong accesses do not race where the scope of each (`scope` of these) has the other.
        """
        mine = self.owner_of[lanes]
        found: list[tuple[int, int, int, int, int]] = []
        for kind in kinds:
            owners = ledger.owners[kind, places]
            some = owners != 0
            if not some.any():
                continue
            index, part = np.nonzero(some)
            where = places[index, part]
            recs, owner = ledger.records[kind, where], owners[index, part]
            who = lanes[index]
            here = owner == mine[index]
            bad = np.zeros(len(who), np.bool_)
            own = self.clocks.own[who]
            here_apart = here & (recs & COLUMN_MASK >> 5 << 5 != own >> 5 << 5)
            if here_apart.any():
                bad[here_apart] = self.clocks.unordered(who[here_apart], recs[here_apart])
            far = ~here
            if scope:
                strong = self._both_strong(recs, own, here, scope)
                bad &= ~strong
                far &= ~strong
            if far.any():
                bad[far] = self.world.unknown(who[far], recs[far], owner[far])
            for i in np.flatnonzero(bad)[:64]:
                found.append((kind, int(index[i]), int(where[i]), int(recs[i]), int(owner[i])))
        return found

    def beyond(
        self, ledger: Ledger, places: I64, lanes: I64, scope: int
    ) -> list[tuple[int, int, int, int]]:
        """(index, place, record, owner) of writes in one step that a strong write's scope has not.

        Behind `Ledger.note_write`: of all lanes that write a place the last one is there.
        """
        recs, owner = ledger.records[WRITE, places], ledger.owners[WRITE, places]
        here = owner == self.owner_of[lanes][:, None]
        own = np.broadcast_to(self.clocks.own[lanes][:, None], recs.shape)
        bad = np.argwhere(~self._both_strong(recs, own, here, scope))[:64]
        return [(i, int(places[i, j]), int(recs[i, j]), int(owner[i, j])) for i, j in bad.tolist()]

    def _both_strong(self, recs: I64, own: I64, here: Bools, scope: int) -> Bools:
        """Which records are of strong accesses whose scope, as the one given, has both threads."""
        sites = np.minimum(recs >> COLUMN_BITS & SITE_MASK, len(self.strengths) - 1)
        reach = np.minimum(self.strengths[sites], scope)
        per = self.machine.warps_per_block * LANES
        same_block = (recs & COLUMN_MASK) // per == own // per
        needed = np.where(here, np.where(same_block, BLOCK, CLUSTER), DEVICE)
        return (recs & STRONG != 0) & (reach >= needed)
