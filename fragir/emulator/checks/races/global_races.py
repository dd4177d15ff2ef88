"""Races on global memory: between warps, blocks and waves; within a warp lost updates only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.global_places import (
    READ,
    READ_ELSEWHERE,
    WRITE,
    GlobalPlaces,
    Ledger,
)
from fragir.emulator.checks.races.records import STRONG, record, site_of
from fragir.emulator.checks.races.scopes import DEVICE
from fragir.emulator.checks.races.shuffles import ToldByShuffle
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.checks.races.lost_updates import LostUpdates
    from fragir.emulator.machine.transfers import Copy

LOST = READ_ELSEWHERE + 1  # beside the kinds of records: an update that gets lost


class GlobalRaces:
    """`overlap`: whether lanes of one store have written one place; who asks has to clear it."""

    def __init__(
        self, context: Context, places: GlobalPlaces, updates: LostUpdates, told: ToldByShuffle
    ) -> None:
        self.machine, self.clocks = context.machine, context.clocks
        self.sites, self.findings = context.sites, context.findings
        self.places, self.updates, self.told = places, updates, told
        self.overlap = False
        self.suspects: list[
            tuple[int, int, int, int, int, int, npt.NDArray[np.uint8]]
        ] = []  # site, lane, position, kind, record, owner, bytes before

    def access(self, kind: str, site: int, at: I64, lanes: I64, size: int, scope: int) -> None:
        clocks, whole = self.clocks, self.places
        if kind == "store":
            clocks.now += 1  # later than what has been read
        mine_all = record(clocks.now, clocks.own[lanes], site, scope > 0)
        for ledger, which in whole.by_buffer(at):
            if ledger.too_large:
                continue
            if ledger.copied and kind != "load":
                ledger.note_copied()
            places = ledger.places(at[which], size)
            who, mine = lanes[which], mine_all[which]
            owner = whole.owner_of[who]
            if ledger.too_large:
                continue
            if kind == "load":
                kinds = (WRITE,) if ledger.written else ()
                if ledger.written and self._through_cache(site):
                    self._read_only(site, ledger, places, who)
                    kinds = ()
            else:
                kinds = (WRITE, READ, READ_ELSEWHERE)
            for how, index, place, rec, other in whole.clashes(ledger, kinds, places, who, scope):
                self._suspect(site, int(who[index]), ledger, place, how, rec, other, kind)
            if kind == "load":
                ledger.note_read(places, mine, owner)
                continue
            plain = kind == "store" and not scope and self.updates.loads
            lost = (
                list(self.updates.before(ledger, site, places, who, mine, owner)) if plain else []
            )
            warps, lanes_too = ledger.note_write(places, mine, owner)
            self.overlap |= warps
            if warps and 0 < scope < DEVICE:
                for index, place, rec, other in whole.beyond(ledger, places, who, scope):
                    self._suspect(site, int(who[index]), ledger, place, WRITE, rec, other, kind)
            if plain and lanes_too:
                lost += self.updates.together(ledger, site, places, mine, owner)
            for index, place, rec in lost:
                self._suspect(site, int(who[index]), ledger, place, LOST, rec, 0, kind)

    def _through_cache(self, site: int) -> bool:
        """Whether a load may see what was in memory before."""
        return self.sites.row(site).read_only or "nc" in self.sites.instruction(site).opcode

    def _read_only(self, site: int, ledger: Ledger, places: I64, lanes: I64) -> None:
        """ld.global.nc and ldu may see old bytes, whatever orders them after a write."""
        written = ledger.records[WRITE, places]
        if not written.any():
            return
        i, j = (int(x) for x in np.argwhere(written)[0])
        rec, owner = int(written[i, j]), int(ledger.owners[WRITE, places[i, j]])
        lane, position = int(lanes[i]), ledger.start + (int(places[i, j]) << ledger.shift)
        text = "the kernel writes these bytes, and .nc may read what was there before: "
        text += self.who(lane, rec, owner)
        other = site_of(rec)
        self.findings.globally(site, other, lane, position, text, "read-only")

    def _suspect(
        self,
        site: int,
        lane: int,
        ledger: Ledger,
        place: int,
        how: int,
        rec: int,
        owner: int,
        kind: str,
    ) -> None:
        """A write that leaves the bytes as they are does not race: look afterwards."""
        position = ledger.start + (place << ledger.shift)
        if kind == "load":
            self.clash(site, lane, position, how, rec, owner)
            return
        bytes_ = self.machine.memory.globals.bytes
        old = bytes_[position : position + (1 << ledger.shift)].copy()
        self.suspects.append((site, lane, position, how, rec, owner, old))

    def resolve(self) -> None:
        bytes_ = self.machine.memory.globals.bytes
        for site, lane, position, how, rec, owner, old in self.suspects:
            if (bytes_[position : position + len(old)] != old).any():
                self.clash(site, lane, position, how, rec, owner)
        self.suspects.clear()

    def clash(self, site: int, lane: int, position: int, how: int, rec: int, owner: int) -> None:
        if how == LOST:
            text = f"lane {rec & LANES - 1} of the same warp has read the same bytes too, and "
            text += "changes them: one of the two updates is lost without an atomic"
            self.findings.globally(site, site, lane, position, text)
            return
        other = site_of(rec)
        cluster = None if owner == self.places.owner_of[lane] else owner
        letter = "warp" if self.told.knows(lane, rec, cluster) else None
        if self.findings.said("global", "race", letter, site, other):
            return
        who = self.who(lane, rec, owner)
        what = "write" if how == WRITE else "read"
        text = f"nothing orders this after the {what} of the same bytes: {who}"
        if rec & STRONG and self.places.strengths[site]:
            text += "; the scope of one of the two leaves the other thread out"
        if letter is not None:
            text += "; a lane of this warp knows of it, and has told the others by a shuffle"
        self.findings.globally(site, other, lane, position, text, letter=letter)

    def who(self, lane: int, rec: int, owner: int) -> str:
        """The instruction and the thread of a record, for messages."""
        if owner == self.places.owner_of[lane]:
            return self.findings.who(lane, rec)
        return self.findings.who_elsewhere(rec, owner)

    def others(self, at: I64, lanes: I64, size: int) -> Bools:
        """Which of the lanes have written where another warp was the last to write."""
        result = np.zeros(len(at), np.bool_)
        for ledger, which in self.places.by_buffer(at):
            if not ledger.too_large:
                mine, owner = self.clocks.own[lanes[which]], self.places.owner_of[lanes[which]]
                result[which] = ledger.others(ledger.places(at[which], size), mine, owner)
        return result

    def overwritten(self, site: int, lane: int, position: int) -> None:
        """Lanes of one store write different values to one place."""
        text = "another lane writes another value to the same bytes"
        self.findings.globally(site, site, lane, position, text)

    def copied(self, copy: Copy) -> None:
        """What cp.async reads, where it reads all of its bytes."""
        at, lanes = copy.source.ravel(), copy.lanes.ravel()
        if copy.given is not None:
            whole = copy.given.ravel() == copy.size
            at, lanes = at[whole], lanes[whole]
        if at.size:
            self.access("load", self.sites.current, at, lanes, copy.size, 0)
