"""Strong writes that a strong read has seen are ordered before whatever follows that read.

So says the causality order (PTX ISA 9.2, section 8.9.6): a write that precedes a read in
observation order precedes what the read does in base causality order. Neither the writer's fence
nor an acquire is needed: those order *other* accesses. A lock that is taken by looking at it may
be reset by a plain store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.records import COLUMN_MASK, STRONG, TIME_SHIFT, record, site_of
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.global_places import Clash, GlobalPlaces
    from fragir.emulator.checks.races.groups import AccessGroup
    from fragir.emulator.checks.races.ledger import Ledger
    from fragir.emulator.checks.races.shared_places import SharedPlaces


def unseen_in_shared(
    shared: SharedPlaces, clocks: Clocks, reading: Bools, places: I64, lanes: I64, records: I64
) -> Bools:
    """Which records of places are not of strong writes that some read has seen, of which the lanes
    know (flat arrays; `reading`: the sites of what reads)."""
    result: Bools = np.ones(len(places), np.bool_)
    strong = np.flatnonzero(records & STRONG)
    if not len(strong):
        return result
    places, lanes, records = places[strong], lanes[strong], records[strong]
    found = np.ones(len(strong), np.bool_)
    for reads, masks in shared.reads_of(places):
        sites = np.minimum(site_of(reads), len(reading) - 1)
        since = reading[sites] & (reads >> TIME_SHIFT >= records >> TIME_SHIFT) & (reads != records)
        warp = (reads & COLUMN_MASK) // LANES == clocks.own[lanes] // LANES
        own = warp & (masks >> (lanes % LANES).astype(np.uint32) & np.uint32(1) != 0)
        found &= ~(since & (own | ~clocks.unordered(lanes, reads)))
    result[strong] = found
    return result


#: Of a position: where a wider access that has it may begin.
_WIDER = (-1, -2, -4, -8, -16)


class ObservedWrites:
    """In global memory: which loads have seen the last write of a place is written down."""

    def __init__(self, places: GlobalPlaces) -> None:
        self.places = places
        #: (position, record, owner) of a write -> (owner, column) of who has seen it -> when first.
        self.seen: dict[tuple[int, int, int], dict[tuple[int, int], int]] = {}

    def note(self, group: AccessGroup, size: int, scope: int) -> None:
        """A strong load."""
        places = self.places
        for ledger, which in places.by_buffer(group.at):
            if not ledger.written:
                continue
            part = group.some(which)
            rows, kept = ledger.rows(part.at, size)
            if not len(rows):
                continue
            lanes = part.lanes if kept is None else part.lanes[kept]
            self._note(ledger, rows, lanes, scope)

    def _note(self, ledger: Ledger, rows: I64, lanes: I64, scope: int) -> None:
        places = self.places
        owner, own = places.owner_of[lanes][:, None], places.clocks.own[lanes][:, None]
        found = places.strong_others(ledger, rows, owner, own, scope)
        for access, part in np.argwhere(found).tolist():
            row = rows[access, part]
            key = (
                int(ledger.position(row)),
                *(int(ledger.records[0, row]), int(ledger.owners[0, row])),
            )
            who = int(owner[access, 0]), int(own[access, 0])
            self.seen.setdefault(key, {}).setdefault(who, places.clocks.now)

    def unseen(self, ledger: Ledger, clash: Clash, lanes: I64) -> Bools:
        """Which writes of a clash nobody has seen before the lanes of its accesses, `lanes`, went
        on."""
        result: Bools = np.ones(len(clash.index), np.bool_)
        if not self.seen:
            return result
        for i in np.flatnonzero(clash.records & STRONG).tolist():
            write = int(clash.records[i]), int(clash.owners[i])
            position = int(ledger.position(clash.rows[i]))
            readers = [self.seen.get((position & mask, *write), {}) for mask in _WIDER]
            lane = int(lanes[clash.index[i]])
            seen = (self._known(lane, *who, time) for each in readers for who, time in each.items())
            result[i] = not any(seen)
        return result

    def _known(self, lane: int, owner: int, column: int, time: int) -> bool:
        """Whether a lane knows of what somebody did at a time."""
        places, one = self.places, np.array([lane])
        rec = np.array([record(time, column, 0)])
        if owner == places.owner_of[lane]:
            return not places.clocks.unordered(one, rec).any()
        return not places.clusters.unknown(one, rec, np.array([owner], np.int32)).any()
