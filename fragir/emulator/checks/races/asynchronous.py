"""Bulk and tensor copies and wgmma in shared memory: what the asynchronous proxy touches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import (
    ASYNC,
    COLUMN_MASK,
    STRONG,
    TIME_SHIFT,
    record,
    site_of,
    unlike,
)
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.shared_places import CHUNK
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.transfers import WARPGROUP, expand
from fragir.emulator.numbers.types import I32, I64, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.barriers import MbarrierObjects, MbarrierPhases
    from fragir.emulator.checks.races.shared_races import SharedRaces
    from fragir.emulator.machine.transfers import Issue, Transfer


# -- bulk copies -----------------------------------------------------------------------------------
# Bulk and tensor copies in shared memory.
#
# What they access must have passed a `fence.proxy.async` if threads wrote it; what they read must
# not be overwritten before it is known that they are done.


class BulkCopies:
    """`races` has the rules of shared memory; `mbarriers` are told what signals them, `phases`
    which copies are done."""

    def __init__(
        self,
        context: Context,
        races: SharedRaces,
        mbarriers: MbarrierObjects,
        phases: MbarrierPhases,
    ) -> None:
        self.clocks, self.sites = context.clocks, context.sites
        self.races, self.places = races, races.places
        self.mbarriers, self.phases = mbarriers, phases
        self._refilling: set[int] = set()  # copies of which that has been said
        self.start_wave()

    def start_wave(self) -> None:
        self._started: dict[int, tuple[Transfer, int]] = {}  # by identity: with its time
        self._commits: dict[int, list[int]] = {}  # by lane: the times of its bulk groups

    def issue(self, transfer: Transfer) -> None:
        clocks, shared = self.clocks, self.places
        lane = int(transfer.lanes[0])
        who = transfer.lanes
        if transfer.signal >= 0:
            self.mbarriers.use(transfer.signal, who)
            if not transfer.generic:
                self.mbarriers.note_signal(transfer.signal, lane)
        if transfer.into is not None:
            column = clocks.agent(lane, "mbarrier", transfer.signal)
            places = shared.places(transfer.into, transfer.grain)
            lanes = np.full(places.shape, lane, np.int64)
            where = places << shared.shift
            recs = shared.written[places]
            if transfer.atomic:  # in any order with others that are
                recs = np.where(recs & STRONG, 0, recs)
            if transfer.generic:
                if (bad := clocks.unordered(lanes, recs)).any():
                    self.races.clash_each("write", self.sites.current, bad, lanes, where, recs)
            else:
                self.must_see(where, lanes, recs)
                self._refills(places, lane)
            self.races.after_reads(self.sites.current, places, lanes, False, alone=True)
            mine = record(ASYNC + clocks.now, column, self.sites.current, transfer.atomic)
            shared.written[places] = mine
            shared.written_at(ASYNC + clocks.now)
            self._started[id(transfer)] = transfer, ASYNC + clocks.now
        if transfer.reads is not None:
            agent = ("bulk", lane) if transfer.group >= 0 else ("mbarrier", transfer.signal)
            column = clocks.agent(lane, *agent)
            places = shared.places(transfer.reads, CHUNK)
            lanes = np.full(places.shape, lane, np.int64)
            self.must_see(places << shared.shift, lanes, shared.written[places])
            rec = record(ASYNC + clocks.now, column, self.sites.current)
            shared.chunk_read[transfer.reads // CHUNK, -1] = rec
        clocks.now += 1

    def must_see(self, where: I64, lanes: I64, recs: I64) -> None:
        """What the asynchronous proxy is to access must be visible to it."""
        some = unlike(recs)  # the lane is the same everywhere
        if not self.clocks.invisible(lanes.ravel()[some], recs.ravel()[some]).any():
            return
        bad = self.clocks.invisible(lanes, recs)
        if not bad.any():
            return
        lanes, recs, where = lanes[bad], recs[bad], where[bad]
        raced = self.clocks.unordered(lanes, recs)
        unseen = ~raced
        if self.races.told.is_any_told:  # a race that is a letter, and no fence: that is worse
            each = zip(lanes.tolist(), recs.tolist(), strict=True)
            hides = partial(self.races.told.hides, cluster=None, plane=self.clocks.proxy)
            unseen |= [hides(lane, rec) for lane, rec in each]
        for what, which in (("write", raced), ("invisible", unseen)):
            self.races.clash_each(what, self.sites.current, which, lanes, where, recs)

    def _refills(self, places: I64, lane: int) -> None:
        """What threads have read must have passed a fence before another proxy writes there: a
        letter, once for each copy, with how many instructions it is said of."""
        clocks, shared, site = self.clocks, self.places, self.sites.current
        places = places.ravel()
        if site in self._refilling or not shared.read_time[places].any():
            return
        recs = shared.read[:, places]
        columns = np.minimum(recs & COLUMN_MASK, clocks.width - 1)
        bad = recs >> TIME_SHIFT > clocks.known[clocks.proxy, lane, columns]
        if not bad.any():
            return
        self._refilling.add(site)
        first = tuple(np.argwhere(bad)[0].tolist())
        rec, at = int(recs[first]), int(places[first[1]]) << shared.shift
        more = len(np.unique(site_of(recs[bad]))) - 1
        text = "the asynchronous proxy writes where threads have read, without fence.proxy.async "
        text += f"since: {self.races.findings.who(lane, rec)}"
        text += f", and {more} more instructions" if more else ""
        self.races.findings.shared("proxy-fence", site, site_of(rec), lane, at, text, "proxies")

    def complete(self, transfer: Transfer) -> None:
        _, time = self._started.pop(id(transfer), (None, 0))
        if time and transfer.signal >= 0:
            column = self.clocks.agent(int(transfer.lanes[0]), "mbarrier", transfer.signal)
            self.phases.note_copied(transfer.signal, column, time)

    def commit(self, lanes: I64) -> None:
        for lane in lanes:
            self._commits.setdefault(int(lane), []).append(self.clocks.now)
        self.clocks.now += 1

    def wait(self, newest: int, read: bool, lanes: I64) -> None:
        """`read`: only the sources have been read. Else what was written is known, too."""
        for lane in lanes:
            commits = self._commits.get(int(lane), [])
            if len(commits) > newest:
                time = ASYNC + commits[len(commits) - newest - 1]
                for done in ("bulk",) if read else ("bulk", "stored"):
                    column = self.clocks.agent(int(lane), done, int(lane))
                    self.clocks.known[0, lane, column] = time
                self.clocks.uneven[lane // LANES] = True


# -- wgmma -----------------------------------------------------------------------------------------
# wgmma in shared memory: what it reads must be known, and visible to the asynchronous proxy.


FEW = 8  # columns of so many that are cheaper to pick before what each warp knows is found


class WgmmaReads:
    def __init__(self, context: Context, races: SharedRaces) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites
        self.races, self.places = races, races.places
        self.start_wave()

    def start_wave(self) -> None:
        self._commits: dict[int, list[int]] = {}  # by warp: the times of its wgmma groups

    def issue(self, item: Issue) -> None:
        clocks, shared, memory = self.clocks, self.places, self.machine.memory
        options = item.form.options
        addresses = item.form.op.shared_addresses(
            item.a,
            item.b,
            transpose_a=bool(options.get("transpose_a", False)),
            transpose_b=bool(options.get("transpose_b", False)),
        ).astype(np.int64)
        if addresses.size and int(addresses.max()) + CHUNK > memory.shared_size:
            return  # an error when it executes
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        chunks = addresses + home[:, None]
        for first, at in zip(item.warps, chunks, strict=True):
            places = shared.places(at, CHUNK).ravel()
            written = shared.written[places]
            some = unlike(written)
            recs, index = np.unique(written[some], return_index=True)
            self._wgmma_sees(int(first), recs, places[some[index]] << shared.shift)
            column = clocks.agent(int(first) * LANES, "wgmma", int(first))
            slot = int(first) % self.machine.warps_per_block // WARPGROUP
            rec = record(ASYNC + clocks.now, column, self.sites.current)
            shared.chunk_read[at // CHUNK, slot] = rec
        clocks.now += 1

    def _wgmma_sees(self, first: int, recs: I64, where: I64) -> None:
        """Each of the four warps must know what the operands are made of."""
        clocks = self.clocks
        time, column = recs >> TIME_SHIFT, recs & COLUMN_MASK
        at = np.minimum(column, clocks.width - 1)
        lanes = slice(first * LANES, (first + WARPGROUP) * LANES)

        def by_warp(plane: int) -> I32:
            known: I32 = clocks.known[plane, lanes].reshape(WARPGROUP, LANES, -1)
            if FEW * len(at) < clocks.width:
                return np.maximum.reduce(known[:, :, at], axis=1)
            return np.maximum.reduce(known, axis=1)[:, at]

        known = np.where(column >= clocks.lanes, by_warp(0), by_warp(clocks.proxy))
        late_for: Bools = (time > 0) & (time > known)
        if not late_for.any():
            return
        for warp in range(first, first + WARPGROUP):
            bad = late_for[warp - first]
            if bad.any():
                late, there = recs[bad], where[bad]
                everybody = np.repeat(warp * LANES + np.arange(LANES), len(late))
                alike = clocks.unordered(everybody, np.repeat(late[None], LANES, 0).ravel())
                raced: Bools = np.logical_and.reduce(alike.reshape(LANES, -1))
                first_lane = np.full(len(late), warp * LANES, np.int64)
                for what, which in (("write", raced), ("invisible", ~raced)):
                    self.races.clash_each(what, self.sites.current, which, first_lane, there, late)

    def commit(self, lanes: I64) -> None:
        for warp in distinct(lanes // LANES):
            self._commits.setdefault(int(warp), []).append(self.clocks.now)
        self.clocks.now += 1

    def wait(self, newest: int, lanes: I64) -> None:
        clocks = self.clocks
        for warp in distinct(lanes // LANES):
            commits = self._commits.get(int(warp), [])
            if len(commits) > newest:
                first = int(warp) // WARPGROUP * WARPGROUP
                column = clocks.agent(first * LANES, "wgmma", first)
                rows = expand(np.array([first], np.intp))[int(warp) - first] * LANES
                time = ASYNC + commits[len(commits) - newest - 1]
                clocks.known[0, rows : rows + LANES, column] = time
