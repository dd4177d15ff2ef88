"""Reads of shared memory that later ones have pushed out, and that a write may not know of yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, U32, Bools

COMPACT = 1 << 12  # entries of the log before it is looked through


class ReadLog:
    """`places`: how many places of shared memory there are."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.clear()

    def clear(self) -> None:
        self.entries = 0
        self._parts: list[tuple[I64, I64, U32]] = []  # places, records, masks of their lanes
        self.logged: Bools = np.zeros(self.places, np.bool_)  # of which places there is anything
        self.limit = COMPACT

    def push(self, places: I64, records: I64, masks: U32, lowest: int) -> None:
        self._parts.append((places, records, masks))
        self.logged[places] = True
        self.entries += len(places)
        if self.entries > self.limit:
            self._compact(lowest)
            self.limit = max(COMPACT, 2 * self.entries)

    def _whole(self) -> tuple[I64, I64, U32]:
        if len(self._parts) != 1:
            places, records, masks = (np.concatenate(x) for x in zip(*self._parts, strict=True))
            self._parts = [(places, records, masks)]
        return self._parts[0]

    def everything(self) -> list[tuple[int, int, int]]:
        """(place, record, mask) of all reads in it, in order."""
        if not self._parts:
            return []
        return sorted(zip(*(part.tolist() for part in self._whole()), strict=True))

    def at(self, places: I64) -> Iterator[tuple[I64, U32]]:
        """Records of logged reads of places, and the masks of their lanes, read by read."""
        if not self.entries or not self.logged[places].any():
            return
        found, records, masks = self._whole()
        for place in np.unique(places[self.logged[places]]).tolist():
            for entry in np.flatnonzero(found == place).tolist():
                here = places == place
                yield np.where(here, records[entry], 0), np.where(here, masks[entry], np.uint32(0))

    def _compact(self, lowest: int) -> None:
        """Leave out what is settled, and what lanes have read again since."""
        places, records, masks = self._whole()
        keep = (records >> TIME_SHIFT > lowest) & self.logged[places]
        places, records, masks = places[keep], records[keep], masks[keep]
        warp = records & COLUMN_MASK >> 5 << 5
        order = np.lexsort((records >> TIME_SHIFT, masks, warp, places))
        places, records, masks, warp = places[order], records[order], masks[order], warp[order]
        last = np.ones(len(places), np.bool_)
        if len(places):
            same = (places[1:] == places[:-1]) & (masks[1:] == masks[:-1]) & (warp[1:] == warp[:-1])
            last[:-1] = ~same
        self._parts = [(places[last], records[last], masks[last])]
        self.entries = int(last.sum())

    def forgotten(self, places: I64) -> tuple[I64, I64] | None:
        """(index into the flat `places`, record) of logged reads there, a row for each lane.

        They leave the log: whoever asks is about to write there, and later writes must know of
        that one.
        """
        if not self.entries or not (here := self.logged[places]).any():
            return None
        found, records, masks = self._whole()
        flat = places.reshape(-1)
        order = np.argsort(flat, kind="stable")
        at = np.minimum(np.searchsorted(flat[order], found), len(flat) - 1)
        which = order[at]
        hit = (flat[which] == found) & self.logged[found]
        self.logged[places[here]] = False
        lanes = masks[hit][:, None] >> np.arange(LANES, dtype=np.uint32) & np.uint32(1) != 0
        entry, lane = np.nonzero(lanes)
        base: Any = records[hit][entry] & ~np.int64(LANES - 1)
        self._parts = [(found[~hit], records[~hit], masks[~hit])]
        self.entries = len(self._parts[0][0])
        return which[hit][entry], base | lane
