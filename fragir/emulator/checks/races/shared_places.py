"""The last accesses to every place of shared memory.

A place is `unit` bytes, the smallest access that the kernel makes. Of writes the last one is kept.
Of reads the last one of every warp of the block is kept (of all warps together, where that would
take too much memory), the last one from another block, and of the asynchronous proxy the last one
of every warpgroup and the last bulk copy. A record of reads stands for the lanes of its mask, which
read in one instruction. A read that pushes out one of other lanes puts it into the log,
unless a barrier of the block has settled it: no read is forgotten that a later write might not know
of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.transfers import WARPGROUP
from fragir.emulator.numbers.types import I32, I64, U32, Bools, count_of, kind_of, width_of

if TYPE_CHECKING:
    from fragir.emulator.checks.races.context import AccessGroup
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program


# -- read log --------------------------------------------------------------------------------------
# Reads of shared memory that later ones have pushed out, and that a write may not know of yet.

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

    def _whole_log(self) -> tuple[I64, I64, U32]:
        if len(self._parts) != 1:
            places, records, masks = (np.concatenate(x) for x in zip(*self._parts, strict=True))
            self._parts = [(places, records, masks)]
        return self._parts[0]

    def everything(self) -> list[tuple[int, int, int]]:
        """(place, record, mask) of all reads in it, in order."""
        if not self._parts:
            return []
        return sorted(zip(*(part.tolist() for part in self._whole_log()), strict=True))

    def at(self, places: I64) -> Iterator[tuple[I64, U32]]:
        """Records of logged reads of places, and the masks of their lanes, read by read."""
        if not self.entries or not self.logged[places].any():
            return
        found, records, masks = self._whole_log()
        for place in np.unique(places[self.logged[places]]).tolist():
            for entry in np.flatnonzero(found == place).tolist():
                here = places == place
                yield np.where(here, records[entry], 0), np.where(here, masks[entry], np.uint32(0))

    def _compact(self, lowest: int) -> None:
        """Leave out what is settled, and what lanes have read again since."""
        places, records, masks = self._whole_log()
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

    def forgotten_reads(self, places: I64) -> tuple[I64, I64] | None:
        """(index into the flat `places`, record) of logged reads there, a row for each lane.

        They leave the log: whoever asks is about to write there, and later writes must know of
        that one.
        """
        if not self.entries or not (here := self.logged[places]).any():
            return None
        found, records, masks = self._whole_log()
        flat = places.reshape(-1)
        order = np.argsort(flat, kind="stable")
        at = np.minimum(np.searchsorted(flat[order], found), len(flat) - 1)
        which = order[at]
        hit = (flat[which] == found) & self.logged[found]
        self.logged[places[here]] = False
        lanes = masks[hit][:, None] >> np.arange(LANES, dtype=np.uint32) & np.uint32(1) != 0
        entry, lane = np.nonzero(lanes)
        base: I64 = records[hit][entry] & ~np.int64(LANES - 1)
        self._parts = [(found[~hit], records[~hit], masks[~hit])]
        self.entries = len(self._parts[0][0])
        return which[hit][entry], base | lane


CHUNK = 16  # bytes: what the asynchronous proxy accesses is made of these
LIMIT = 1 << 26  # records of reads


class SharedPlaces:
    def __init__(self, machine: Machine, unit: int, asynchronous: bool) -> None:
        self.unit, self.shift = unit, unit.bit_length() - 1
        self.stride = machine.memory.shared_stride
        self.warps = machine.warps_per_block
        count = machine.memory.shared.bytes.size
        places = -(-count // unit)
        self.written: I64 = np.zeros(places, np.int64)
        self.alone = machine.cluster_size == 1
        warp = np.arange(machine.warps * LANES) // LANES
        self.slot_of, self.block_of = warp % self.warps, warp // self.warps
        self.apart = places * (self.warps + 1) <= LIMIT
        self.columns = self.warps + 1 if self.apart else 2
        if not self.apart:
            self.slot_of[...] = 0
        #: By column and place: what a warp reads together mostly lies together.
        self.read: I64 = np.zeros((self.columns, places), np.int64)
        self.masks: U32 = np.zeros((self.columns, places), np.uint32)
        self.read_time: I32 = np.zeros(places, np.int32)
        slots = self.warps // WARPGROUP + 1 if asynchronous else 0
        self.chunk_read: I64 = np.zeros((-(-count // CHUNK), slots), np.int64)
        self.bit_of: U32 = np.uint32(1) << (
            np.arange(machine.warps * LANES, dtype=np.uint32) % np.uint32(LANES)
        )
        #: No write, and no read of a thread, is later: what a barrier of all has settled since
        #: needs no look.
        self.newest_write = self.newest_read = 0
        self.fresh = True  # nothing to reset: untouched pages cost nothing
        self.log = ReadLog(places)

    def start_wave(self) -> None:
        if self.fresh:
            self.fresh = False
            return
        self.written[...] = 0
        self.read_time[...] = 0
        self.read[...] = 0
        self.masks[...] = 0
        self.chunk_read[...] = 0
        self.newest_write = self.newest_read = 0
        self.log.clear()

    def places(self, at: I64, size: int) -> I64:
        """Where accesses of `size` bytes at byte positions lie: one more axis."""
        first = at[..., None] >> self.shift
        parts = size >> self.shift
        return first if parts <= 1 else first + np.arange(parts)

    def slots(self, group: AccessGroup) -> I64:
        """The column of `read` for accesses of lanes."""
        slot = group.pick(self.slot_of)
        if self.alone:
            return slot
        block = group.pick(self.block_of)
        return np.where(group.at // max(self.stride, 1) == block, slot, self.columns - 1)

    def columns_of(self, group: AccessGroup, places: I64) -> I64:
        """Where the reads of lanes stand in `read`, as one row."""
        return self.slots(group)[:, None] * len(self.written) + places

    def written_at(self, time: int) -> None:
        """A write of that time is noted."""
        self.newest_write = max(self.newest_write, time)

    def reads_of(self, places: I64) -> Iterator[tuple[I64, U32]]:
        """Records of reads of places, and the masks of their lanes: what is kept, column by column,
        and what has been pushed out."""
        yield from zip(self.read[:, places], self.masks[:, places], strict=True)
        yield from self.log.at(places)

    # -- reads -----------------------------------------------------------------------------------

    def note_reads(
        self, places: I64, group: AccessGroup, mine: I64, lowest: int, settled: bool = False
    ) -> None:
        """Lanes read places `[lane, place]` of their accesses; `lowest`: what is settled.

        `settled`: all that has been read there is, for certain.
        """
        index = self.columns_of(group, places)
        read, masks = self.read.reshape(-1), self.masks.reshape(-1)
        seen: tuple[I64, Bools, U32] | None = None
        if not settled:
            before = read[index]
            late = before >> TIME_SHIFT > lowest
            if late.any():
                seen = before, late, masks[index]
        read[index] = mine[:, None]
        bits = group.pick(self.bit_of)[:, None]
        masks[index] = bits
        lost: Bools | np.bool_ = np.False_
        if not group.are_apart:
            lost = read[index] != mine[:, None]
            if lost.any():  # several lanes read one place together
                bits = np.broadcast_to(bits, index.shape)
                np.bitwise_or.at(masks, index[lost], bits[lost])
        if seen is None:
            return
        before, late, masks_before = seen
        other = before & COLUMN_MASK >> 5 << 5 != mine[:, None] & COLUMN_MASK >> 5 << 5
        pushed = late & ~lost & (other | (masks_before & ~masks[index] != 0))
        if pushed.any():
            self.log.push(places[pushed], before[pushed], masks_before[pushed], lowest)


def unit_of(program: Program) -> int:
    """Bytes of the smallest access to shared memory."""
    unit = CHUNK
    for row, words in program.rows():
        if row.bits == "fill":
            unit = min(unit, 8)
        elif (row.access and not row.together) or row.bits == "store later":
            if any(w in words for w in ("global", "param", "local", "const")):
                continue
            if any(w.startswith("param") for w in words):
                continue
            unit = min(unit, width_of(kind_of(words)) // 8 * count_of(words))
        elif row.bits == "copy":
            unit = min(unit, 4)
        elif row.bits in ("mbarrier", "new mbarrier"):
            unit = min(unit, 8)
    return max(unit, 1)
