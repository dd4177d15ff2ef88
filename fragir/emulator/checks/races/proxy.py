"""Races with the asynchronous proxy: cp.async, bulk copies, wgmma.

What wgmma and bulk copies access must have passed a `fence.proxy.async` if threads wrote it; what
they read must not be overwritten before it is known that they are done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import (
    ASYNC,
    COLUMN_BITS,
    COLUMN_MASK,
    PENDING,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    record,
)
from fragir.emulator.checks.races.order import Order
from fragir.emulator.checks.races.records import MBARRIER
from fragir.emulator.checks.races.shadow import CHUNK
from fragir.emulator.machine.issues import WARPGROUP, expand
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64

if TYPE_CHECKING:
    from fragir.emulator.machine.issues import Issue
    from fragir.emulator.machine.transfers import Copy, Transfer


class AsyncProxy(Order):
    def forget(self) -> None:
        super().forget()
        self.started: dict[int, tuple[Transfer, int]] = {}
        self.bulk_commits: dict[int, list[int]] = {}
        self.wgmma_commits: dict[int, list[int]] = {}

    # -- cp.async --------------------------------------------------------------------------------

    def on_copy_issue(self, copy: Copy) -> None:
        self.on_write(self.site, copy.into.ravel(), copy.lanes.ravel(), copy.size, time=PENDING)

    def on_copy_complete(self, copy: Copy) -> None:
        clocks, shadow = self.clocks, self.shadow
        places = shadow.places(copy.into.ravel(), copy.size)
        site = shadow.written[places] >> COLUMN_BITS & SITE_MASK
        mine = record(clocks.now, clocks.own[copy.lanes.ravel()], 0)
        shadow.written[places] = mine[:, None] | site << COLUMN_BITS

    # -- the asynchronous proxy: bulk copies -----------------------------------------------------

    def on_transfer_issue(self, transfer: Transfer) -> None:
        clocks, shadow = self.clocks, self.shadow
        lane = int(transfer.lanes[0])
        who = transfer.lanes
        if transfer.signal >= 0:
            self.use(transfer.signal, who)
            if not transfer.generic:
                self.signalled(transfer.signal, lane)
        if transfer.into is not None:
            column = clocks.agent(lane, "mbarrier", transfer.signal)
            places = shadow.places(transfer.into, transfer.grain)
            lanes = np.full(places.shape, lane, np.int64)
            where = places << shadow.shift
            recs = shadow.written[places]
            if transfer.atomic:  # in any order with others that are
                recs = np.where(recs & STRONG, 0, recs)
            if transfer.generic:
                if (bad := clocks.unordered(lanes, recs)).any():
                    self.tell("write", self.site, bad, lanes, where, recs)
            else:
                self._visible(where, lanes, recs)
            self._after_reads(self.site, places, lanes, False)
            mine = record(ASYNC + clocks.now, column, self.site, transfer.atomic)
            shadow.written[places] = mine
            self.started[id(transfer)] = transfer, ASYNC + clocks.now
        if transfer.reads is not None:
            agent = ("bulk", lane) if transfer.group >= 0 else ("mbarrier", transfer.signal)
            column = clocks.agent(lane, *agent)
            places = shadow.places(transfer.reads, CHUNK)
            lanes = np.full(places.shape, lane, np.int64)
            self._visible(places << shadow.shift, lanes, shadow.written[places])
            rec = record(ASYNC + clocks.now, column, self.site)
            shadow.chunk_read[transfer.reads // CHUNK, -1] = rec
        clocks.now += 1

    def _visible(self, where: I64, lanes: I64, recs: I64) -> None:
        """What the asynchronous proxy is to access must be visible to it."""
        bad = self.clocks.invisible(lanes, recs)
        if not bad.any():
            return
        inside = bad & (recs & COLUMN_MASK == MBARRIER)
        if inside.any():
            for at in np.unique(where[inside] & ~7):
                index = tuple(np.argwhere(inside & (where & ~7 == at))[0])
                self.clash("write", self.site, int(lanes[index]), int(at), int(recs[index]))
            return
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        one = np.array([lanes[index]])
        raced = self.clocks.unordered(one, np.array([recs[index]]))[0]
        what = "write" if raced else "invisible"
        self.clash(what, self.site, int(lanes[index]), int(where[index]), int(recs[index]))

    def on_transfer_complete(self, transfer: Transfer) -> None:
        _, time = self.started.pop(id(transfer), (None, 0))
        if time and transfer.signal >= 0:
            column = self.clocks.agent(int(transfer.lanes[0]), "mbarrier", transfer.signal)
            before = self.landed.get(transfer.signal, (column, 0))[1]
            self.landed[transfer.signal] = column, max(before, time)

    def commit_bulk(self, lanes: I64) -> None:
        for lane in lanes:
            self.bulk_commits.setdefault(int(lane), []).append(self.clocks.now)
        self.clocks.now += 1

    def wait_bulk(self, newest: int, read: bool, lanes: I64) -> None:
        """`read`: only the sources have been read. Else what was written is known, too."""
        for lane in lanes:
            commits = self.bulk_commits.get(int(lane), [])
            if len(commits) > newest:
                time = ASYNC + commits[len(commits) - newest - 1]
                for done in ("bulk",) if read else ("bulk", "stored"):
                    column = self.clocks.agent(int(lane), done, int(lane))
                    self.clocks.known[0, lane, column] = time
                self.clocks.uneven[lane // LANES] = True

    # -- the asynchronous proxy: wgmma -------------------------------------------------------------

    def on_wgmma_issue(self, item: Issue) -> None:
        clocks, shadow, memory = self.clocks, self.shadow, self.machine.memory
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
            places = shadow.places(at, CHUNK).ravel()
            recs, index = np.unique(shadow.written[places], return_index=True)
            self._wgmma_sees(int(first), recs, places[index] << shadow.shift)
            column = clocks.agent(int(first) * LANES, "wgmma", int(first))
            slot = int(first) % self.machine.warps_per_block // WARPGROUP
            shadow.chunk_read[at // CHUNK, slot] = record(ASYNC + clocks.now, column, self.site)
        clocks.now += 1

    def _wgmma_sees(self, first: int, recs: I64, where: I64) -> None:
        """Each of the four warps must know what the operands are made of."""
        clocks = self.clocks
        time, column = recs >> TIME_SHIFT, recs & COLUMN_MASK
        at = np.minimum(column, clocks.width - 1)
        for warp in range(first, first + WARPGROUP):
            lanes = slice(warp * LANES, (warp + 1) * LANES)
            known = clocks.known[clocks.proxy, lanes].max(axis=0)[at]
            if (agent := column >= clocks.lanes).any():
                known[agent] = clocks.known[0, lanes].max(axis=0)[at[agent]]
            bad = (time > 0) & (time > known)
            if bad.any():
                index = int(np.flatnonzero(bad)[0])
                one = np.full(LANES, recs[index], np.int64)
                all_lanes = warp * LANES + np.arange(LANES)
                what = "write" if clocks.unordered(all_lanes, one).all() else "invisible"
                self.clash(what, self.site, warp * LANES, int(where[index]), int(recs[index]))
                return

    def commit_wgmma(self, lanes: I64) -> None:
        for warp in np.unique(lanes // LANES):
            self.wgmma_commits.setdefault(int(warp), []).append(self.clocks.now)
        self.clocks.now += 1

    def wait_wgmma(self, newest: int, lanes: I64) -> None:
        clocks = self.clocks
        for warp in np.unique(lanes // LANES):
            commits = self.wgmma_commits.get(int(warp), [])
            if len(commits) > newest:
                first = int(warp) // WARPGROUP * WARPGROUP
                column = clocks.agent(first * LANES, "wgmma", first)
                rows = expand(np.array([first], np.intp))[int(warp) - first] * LANES
                time = ASYNC + commits[len(commits) - newest - 1]
                clocks.known[0, rows : rows + LANES, column] = time
