"""wgmma in shared memory: what it reads must be known, and visible to the asynchronous proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.records import ASYNC, COLUMN_MASK, TIME_SHIFT, record
from fragir.emulator.checks.races.shared_places import CHUNK
from fragir.emulator.machine.issues import WARPGROUP, expand
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.shared_races import SharedRaces
    from fragir.emulator.machine.issues import Issue


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
            recs, index = np.unique(shared.written[places], return_index=True)
            self._wgmma_sees(int(first), recs, places[index] << shared.shift)
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
        for warp in range(first, first + WARPGROUP):
            lanes = slice(warp * LANES, (warp + 1) * LANES)
            known = clocks.known[clocks.proxy, lanes].max(axis=0)[at]
            if (agent := column >= clocks.lanes).any():
                known[agent] = clocks.known[0, lanes].max(axis=0)[at[agent]]
            bad = (time > 0) & (time > known)
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
