"""Races on global memory with bulk copies: what TMA reads and writes there.

Threads' writes that a bulk copy reads must be ordered before it, and pass a `fence.proxy.async` on
their way, the writer's or the issuer's. What a bulk copy writes is known to who waits for the copy
itself; a wait with `.read` says only that its source has been read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import ASYNC, STRONG, record, site_of
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.ledger import READ, WRITE, Ledger
from fragir.emulator.numbers.types import I64, Array, Bools

if TYPE_CHECKING:
    from fragir.emulator.checks.races.global_races import GlobalRaces
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Transfer


# -- overwrites ------------------------------------------------------------------------------------
# Bulk copies to global memory where others have written, and nothing orders the two.
#
# They are no race where both leave the same bytes, as at the edges of tiles that overlap. What a
# copy leaves is known when it is done: a suspicion waits for the later of the two.


@dataclass(slots=True)
class OverwriteSuspicion:
    """Two writes of the bytes at `at`: what each has left there, None while it is under way."""

    at: I64
    site: int
    lane: int
    rec: int  # of the first
    owner: int
    mine: int  # the record of the second
    first: npt.NDArray[np.uint8] | None
    second: npt.NDArray[np.uint8] | None = None


class Overwrites:
    def __init__(self, machine: Machine, races: GlobalRaces) -> None:
        self.machine, self.races = machine, races
        self.start_wave()

    def start_wave(self) -> None:
        self._under_way: dict[int, tuple[Transfer, int]] = {}  # by identity: with its record
        self._records: set[int] = set()  # of these
        self._suspicions: list[OverwriteSuspicion] = []

    def note_started(self, transfer: Transfer, rec: int) -> None:
        """A copy with that record writes to global memory, later."""
        self._under_way[id(transfer)] = transfer, rec
        self._records.add(rec)

    def suspect(
        self, at: I64, size: int, site: int, lane: int, rec: int, owner: int, mine: int
    ) -> None:
        """Nothing orders the write in `rec` of places of `size` bytes, and the copy that begins."""
        if self.races.findings.is_said("global", "race", None, site, int(site_of(rec))):
            return
        cells = (at[:, None] + np.arange(size)).ravel()
        first = None if rec in self._records else self._bytes(cells)
        self._suspicions.append(OverwriteSuspicion(cells, site, lane, rec, owner, mine, first))

    def complete(self, transfer: Transfer) -> None:
        """A copy has written."""
        _, rec = self._under_way.pop(id(transfer), (None, 0))
        if not rec:
            return
        self._records.discard(rec)
        kept: list[OverwriteSuspicion] = []
        for one in self._suspicions:
            if one.rec == rec:
                one.first = self._bytes(one.at)
            elif one.mine == rec:
                one.second = self._bytes(one.at)
            if one.first is None or one.second is None:
                kept.append(one)
                continue
            differ = np.flatnonzero(one.first != one.second)
            if len(differ):
                position = int(one.at[differ[0]])
                self.races.clash(one.site, one.lane, position, WRITE, one.rec, one.owner)
            else:
                self.races.excuses.note(one.site, site_of(one.rec))
        self._suspicions = kept

    def _bytes(self, at: I64) -> Array:
        return self.machine.memory.globals.bytes[at]


class GlobalCopies:
    def __init__(self, context: Context, races: GlobalRaces) -> None:
        self.clocks, self.sites = context.clocks, context.sites
        self.findings, self.races, self.places = context.findings, races, races.places
        self.overwrites = Overwrites(context.machine, races)

    def issue(self, transfer: Transfer, now: int) -> None:
        """A copy is issued; `now`: the time of that."""
        region = transfer.region
        if region is None or not len(region.starts) or region.size <= 0:
            return
        lane = int(transfer.lanes[0])
        if transfer.group >= 0:
            self._stores(transfer, now, *region.pieces())
            return
        (ledger, _), *_ = self.places.by_buffer(region.starts[:1])
        column = self.clocks.agent(lane, "mbarrier", transfer.signal)
        rec = record(ASYNC + now, column, self.sites.current)
        ledger.note_copy(region, rec, int(self.places.owner_of[lane]))
        if ledger.is_written:
            self._loads(lane, ledger, *region.pieces())
            ledger.note_copied()

    def _stores(self, transfer: Transfer, now: int, at: I64, size: int) -> None:
        lane = int(transfer.lanes[0])
        column = self.clocks.agent(lane, "stored", lane)
        reduces = self.sites.row(self.sites.current).strong
        rec = record(ASYNC + now, column, self.sites.current, reduces)
        for ledger, which in self.places.by_buffer(at):
            rows, _ = ledger.rows(at[which], size)
            if ledger.is_written:
                self._overwrites(lane, ledger, rows.ravel(), int(rec))
            if self.places.earlier is not None:
                self._read_by_grids(lane, ledger, rows.ravel())
            mine = np.full(len(rows), rec, np.int64)
            owner = np.full(len(rows), self.places.owner_of[lane], np.int32)
            ledger.note_write(rows, mine, owner)
        self.overwrites.note_started(transfer, int(rec))

    def complete(self, transfer: Transfer) -> None:
        """A copy has moved its bytes."""
        self.overwrites.complete(transfer)

    def _overwrites(self, lane: int, ledger: Ledger, rows: I64, mine: int) -> None:
        """Suspects the earlier writes to rows that nothing orders before a copy to them."""
        rows = rows[ledger.records[WRITE][rows] != 0]
        if not len(rows):
            return
        both = np.stack([ledger.owners[WRITE][rows].astype(np.int64), ledger.records[WRITE][rows]])
        (owners, recs), which = np.unique(both, axis=1, return_inverse=True)
        unordered = self._is_unordered(lane, owners, recs)
        if mine & STRONG:  # added in any order
            unordered &= recs & STRONG == 0
        for index in np.flatnonzero(unordered):
            at = ledger.position(rows[which.ravel() == index])
            self.overwrites.suspect(
                at,
                1 << ledger.shift,
                self.sites.current,
                lane,
                int(recs[index]),
                int(owners[index]),
                mine,
            )

    def _read_by_grids(self, lane: int, ledger: Ledger, rows: I64) -> None:
        """Tells where a copy writes what earlier grids may still read."""
        rows = rows[ledger.owners[READ][rows] < 0]
        owners, recs = ledger.owners[READ][rows].astype(np.int64), ledger.records[READ][rows]
        for index in np.flatnonzero(self._is_unordered(lane, owners, recs))[:1]:
            position, rec = int(ledger.position(rows[index])), int(recs[index])
            self.races.clash(self.sites.current, lane, position, READ, rec, int(owners[index]))

    def _is_unordered(self, lane: int, owners: I64, recs: I64) -> Bools:
        """Which accesses of the past a lane does not know."""
        here = owners == self.places.owner_of[lane]
        lanes = np.full(len(recs), lane, np.int64)
        found = np.zeros(len(recs), np.bool_)
        found[here] = self.clocks.unordered(lanes[here], recs[here])
        if not here.all():
            far, clusters = ~here, self.places.clusters
            found[far] = clusters.unknown(lanes[far], recs[far], owners[far].astype(np.int32))
        return found

    def _loads(self, lane: int, ledger: Ledger, at: I64, size: int) -> None:
        rows = ledger.rows(at, size)[0].ravel()
        rows = rows[ledger.records[WRITE][rows] != 0]
        if not len(rows):
            return
        both = np.stack([ledger.owners[WRITE][rows].astype(np.int64), ledger.records[WRITE][rows]])
        (owners, recs), first = np.unique(both, axis=1, return_index=True)
        lanes = np.full(len(recs), lane, np.int64)
        here = owners == self.places.owner_of[lane]
        clocks, clusters = self.clocks, self.places.clusters
        unordered = self._is_unordered(lane, owners, recs)
        hidden = np.zeros(len(recs), np.bool_)
        hidden[here] = clocks.invisible(lanes[here], recs[here], clocks.proxy_global)
        if not here.all():
            far = ~here
            whose = owners[far].astype(np.int32)
            hidden[far] = clusters.hidden(lane, recs[far], whose)
        for index in (*np.flatnonzero(unordered), *np.flatnonzero(hidden & ~unordered)):
            rec, owner = int(recs[index]), int(owners[index])
            position = int(ledger.position(rows[first[index]]))
            if unordered[index]:
                self.races.clash(self.sites.current, lane, position, WRITE, rec, owner)
                cluster = None if here[index] else owner
                if not self.races.told.hides(lane, rec, cluster, clocks.proxy_global):
                    continue
            text = "the asynchronous proxy does not see what "
            text += f"{self.races.who(lane, rec, owner)} wrote without fence.proxy.async"
            other = site_of(rec)
            self.findings.globally(self.sites.current, other, lane, position, text, "proxy-fence")
