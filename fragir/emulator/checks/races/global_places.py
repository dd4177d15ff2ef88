"""The last accesses to every place of global memory, buffer by buffer.

Of every place the last write, the last read, and the last read by another cluster are kept; blocks
of different waves stand beside each other too. Lanes of one warp are left alone, but for updates
that get lost (`lost_updates.py`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.records import COLUMN_MASK, STRONG, site_of
from fragir.emulator.checks.races.scopes import BLOCK, CLUSTER, DEVICE
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.clusters import Clusters
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Region

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

    def note_copied(self) -> None:
        """Before the buffer is written: note what bulk copies have read, the latest of them."""
        for region, rec, owner in self.copied:
            places = self.places(*region.pieces())
            if not self.too_large:
                mine = np.full(len(places), rec, np.int64)
                self.note_read(places, mine, np.full(len(places), owner, np.int32))
        self.copied.clear()

    def others(self, places: I64, mine: I64, owner: I32) -> Bools:
        """Which accesses have written places where another warp was the last to write."""
        last, by = self.records[WRITE, places], self.owners[WRITE, places]
        apart = (last ^ mine[:, None]) & COLUMN_MASK >> 5 << 5 != 0
        return (apart | (by != owner[:, None])).any(axis=1)


class GlobalPlaces:
    """The ledgers of all buffers."""

    def __init__(
        self, machine: Machine, clocks: Clocks, clusters: Clusters, strengths: npt.NDArray[np.int8]
    ) -> None:
        self.machine, self.clocks, self.clusters = machine, clocks, clusters
        self.strengths = strengths  # of the instruction at each site
        self.ledgers: dict[int, Ledger] = {}
        self.owner_of: I32 = np.zeros(machine.warps * LANES, np.int32)

    def start_wave(self, first: int) -> None:
        self.clusters.start_wave(first)
        lanes = np.arange(len(self.owner_of))
        self.owner_of = (first + lanes // self.clocks.lanes).astype(np.int32)

    def by_buffer(self, at: I64) -> list[tuple[Ledger, Any]]:
        """The ledgers of the buffers in which positions lie, and which of them: a mask or all."""
        memory = self.machine.memory
        which = memory.buffer_of(at)
        first = int(which[0])
        if (which == first).all():
            return [(self._ledger(first), slice(None))]
        return [(self._ledger(int(b)), which == b) for b in distinct(which)]

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
                bad[far] = self.clusters.unknown(who[far], recs[far], owner[far])
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
        sites = np.minimum(site_of(recs), len(self.strengths) - 1)
        reach = np.minimum(self.strengths[sites], scope)
        per = self.machine.warps_per_block * LANES
        same_block = (recs & COLUMN_MASK) // per == own // per
        needed = np.where(here, np.where(same_block, BLOCK, CLUSTER), DEVICE)
        return (recs & STRONG != 0) & (reach >= needed)
