"""Blocks of a cluster must outlive what others do in their shared memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import COLUMN_MASK, TIME_SHIFT, later, record, site_of
from fragir.emulator.checks.races.context import Context
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Array, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.shared_places import SharedPlaces


class BlockExits:
    def __init__(self, context: Context, places: SharedPlaces) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites
        self.findings, self.places = context.findings, places
        self.start_wave()

    def start_wave(self) -> None:
        self._began = self.clocks.now
        #: What blocks of a cluster know when they exit, besides what their lanes do.
        self._known: dict[int, I32] = {}
        #: Arrivals at mbarriers of other blocks: (position, column) -> the latest record.
        self._remote: dict[tuple[int, int], int] = {}
        #: Those of commits, which arrive later than their lanes know: position -> record, lane.
        self._committed: dict[int, tuple[int, int]] = {}
        self._gone: set[int] = set()  # blocks that go on in another process

    def leave(self, blocks: Iterable[int]) -> None:
        self._gone.update(blocks)

    def may_exit(self, lanes: I64, vector: I32 | None) -> None:
        """A relaxed barrier hands on no data, but all have come to it."""
        if vector is not None:
            for block in distinct(self.machine.block_of[lanes // LANES]):
                self._known[int(block)] = later(vector, self._known.get(int(block)))

    def has_begun(self, other: int, lane: int) -> bool:
        """Whether a lane knows that another block of its cluster has been launched."""
        per = self.machine.warps_per_block * LANES
        theirs = slice(other * per % self.clocks.lanes, other * per % self.clocks.lanes + per)
        known = self.clocks.rows(np.array([lane]))[0, 0, theirs].max()
        met = self._known.get(int(self.machine.block_of[lane // LANES]))
        if met is not None:
            known = max(known, met[0, theirs].max())
        return bool(known >= self._began)

    def arrives(self, position: int, lanes: I64) -> None:
        if self.machine.cluster_size > 1:
            block = position // max(self.machine.memory.shared_stride, 1)
            for lane in lanes[self.machine.block_of[lanes // LANES] != block]:
                column = int(self.clocks.own[lane])
                self._remote[position, column] = record(self.clocks.now, column, self.sites.current)

    def commit_arrives(self, position: int, lane: int, agent: int, time: int) -> None:
        """A tcgen05.commit of a lane arrives, as an agent of its own."""
        block = position // max(self.machine.memory.shared_stride, 1)
        if self.machine.block_of[lane // LANES] != block:
            self._committed[position] = record(time, agent, self.sites.current), lane

    def finish(self) -> None:
        if self.machine.cluster_size == 1:
            return
        clocks, shared = self.clocks, self.places
        per, stride = self.machine.warps_per_block * LANES, self.machine.memory.shared_stride
        for block in range(self.machine.resident // self.machine.warps_per_block):
            if block in self._gone:
                continue
            lanes = block * per + np.arange(per)
            known = clocks.rows(lanes)[0].max(axis=0)[None]
            if block in self._known:
                known = later(known[None, 0], self._known[block][:1])
            first, end = block * stride >> shared.shift, (block + 1) * stride >> shared.shift
            at = np.arange(first, end)
            mine = lanes[0] % clocks.lanes // per
            self._exits(block, known[0], at, shared.read[-1, first:end], mine, per)
            self._exits(block, known[0], at, shared.written[first:end], mine, per)
            there = [(p, r) for (p, _), r in self._remote.items() if p // stride == block]
            if there:
                places = np.array([p >> shared.shift for p, _ in there])
                recs = np.array([r for _, r in there])
                self._exits(block, known[0], places, recs, mine, per)
            for position, (rec, lane) in self._committed.items():
                if position // stride == block and rec >> TIME_SHIFT > known[0, rec & COLUMN_MASK]:
                    self._say(block, rec, lane, position)

    def _exits(self, block: int, known: Array, places: I64, recs: I64, rank: int, per: int) -> None:
        """Accesses of other blocks of the cluster that this block does not wait for."""
        column = recs & COLUMN_MASK
        foreign = (recs != 0) & (column < self.clocks.lanes) & (column // per != rank)
        bad = foreign & (recs >> TIME_SHIFT > known[np.minimum(column, len(known) - 1)])
        which = np.flatnonzero(bad)
        for index in which[np.unique(site_of(recs[which]), return_index=True)[1]].tolist():
            rec = int(recs[index])
            cluster = block // self.machine.cluster_size
            lane = cluster * self.clocks.lanes + (rec & COLUMN_MASK)
            self._say(block, rec, lane, int(places[index]) << self.places.shift)

    def _say(self, block: int, rec: int, lane: int, position: int) -> None:
        who, _ = self.machine.place(block * self.machine.warps_per_block)
        text = f"block {who}, whose shared memory this is, does not wait for it and may exit; "
        text += "an access to a block that is gone stops the kernel"
        site = int(site_of(rec))
        self.findings.shared("race", site, site, lane, position, text)
