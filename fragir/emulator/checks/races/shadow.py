"""The last accesses to every place of shared memory.

A place is `unit` bytes, the smallest access that the kernel makes. Of writes the last one is kept.
Of reads the last one of every warp of the block is kept (of all warps together, where that would
take too much memory), the last one from another block, and of the asynchronous proxy the last one
of every warpgroup and the last bulk copy. A record of reads stands for the lanes of its mask, which
read in one instruction. A read that pushes out one of other lanes puts it into the log, unless a
barrier of the block has settled it: no read is forgotten that a later write might not know of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import COLUMN_BITS, COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.issues import WARPGROUP
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, U32

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine

CHUNK = 16  # bytes: what the asynchronous proxy accesses is made of these
LIMIT = 1 << 26  # records of reads
COMPACT = 1 << 12  # entries of the log before it is looked through


class RaceShadow:
    def __init__(self, machine: Machine, unit: int, asynchronous: bool) -> None:
        self.unit, self.shift = unit, unit.bit_length() - 1
        self.stride = machine.memory.shared_stride
        self.warps = machine.warps_per_block
        count = machine.memory.shared.bytes.size
        places = -(-count // unit)
        self.written: I64 = np.zeros(places, np.int64)
        self.alone = machine.cluster_size == 1
        self.slot_of = np.arange(machine.warps * LANES) // LANES % self.warps
        self.apart = places * (self.warps + 1) <= LIMIT
        self.columns = self.warps + 1 if self.apart else 2
        self.read: npt.NDArray[np.int64] = np.zeros((places, self.columns), np.int64)
        self.masks: U32 = np.zeros((places, self.columns), np.uint32)
        self.read_time: npt.NDArray[np.int32] = np.zeros(places, np.int32)
        slots = self.warps // WARPGROUP + 1 if asynchronous else 0
        self.chunk_read: npt.NDArray[np.int64] = np.zeros((-(-count // CHUNK), slots), np.int64)
        self.bit_of: U32 = np.uint32(1) << (
            np.arange(machine.warps * LANES, dtype=np.uint32) % np.uint32(LANES)
        )
        self.fresh = True  # nothing to reset: untouched pages cost nothing
        self.clear_log()

    def reset(self) -> None:
        if self.fresh:
            self.fresh = False
            return
        self.written[...] = 0
        self.read_time[...] = 0
        self.read[...] = 0
        self.masks[...] = 0
        self.chunk_read[...] = 0
        self.clear_log()

    def places(self, at: I64, size: int) -> I64:
        """Where accesses of `size` bytes at byte positions lie: one more axis."""
        return (at[..., None] >> self.shift) + np.arange(max(size >> self.shift, 1))

    def slots(self, at: I64, lanes: I64) -> I64:
        """The column of `read` for accesses of lanes at positions."""
        slot = self.slot_of[lanes]
        if not self.apart:
            slot = np.zeros_like(slot)
        if self.alone:
            return slot
        block = lanes // LANES // self.warps
        return np.where(at // max(self.stride, 1) == block, slot, self.columns - 1)

    # -- reads -----------------------------------------------------------------------------------

    def note_reads(self, places: I64, at: I64, lanes: I64, mine: I64, lowest: int) -> None:
        """Lanes read places `[lane, place]` of their accesses; `lowest`: what is settled."""
        index = places * self.columns + self.slots(at, lanes)[:, None]
        read, masks = self.read.reshape(-1), self.masks.reshape(-1)
        before = read[index]
        late = before >> TIME_SHIFT > lowest
        masks_before = masks[index] if late.any() else None
        read[index] = mine[:, None]
        bits = np.broadcast_to(self.bit_of[lanes][:, None], index.shape)
        masks[index] = bits
        lost = read[index] != mine[:, None]
        if lost.any():  # several lanes read one place together
            np.bitwise_or.at(masks, index[lost], bits[lost])
        if masks_before is None:
            return
        other = before & COLUMN_MASK >> 5 << 5 != mine[:, None] & COLUMN_MASK >> 5 << 5
        pushed = late & ~lost & (other | (masks_before & ~masks[index] != 0))
        if pushed.any():
            self._push(places[pushed], before[pushed], masks_before[pushed], lowest)

    def clear_log(self) -> None:
        self.entries = 0
        self.log: list[tuple[I64, I64, U32]] = []
        self.logged: npt.NDArray[np.bool_] = np.zeros(len(self.written), np.bool_)
        self.limit = COMPACT

    def _push(self, places: I64, records: I64, masks: U32, lowest: int) -> None:
        self.log.append((places, records, masks))
        self.logged[places] = True
        self.entries += len(places)
        if self.entries > self.limit:
            self._compact(lowest)
            self.limit = max(COMPACT, 2 * self.entries)

    def _whole_log(self) -> tuple[I64, I64, U32]:
        if len(self.log) != 1:
            places, records, masks = (np.concatenate(part) for part in zip(*self.log, strict=True))
            self.log = [(places, records, masks)]
        return self.log[0]

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
        self.log = [(places[last], records[last], masks[last])]
        self.entries = int(last.sum())

    def forgotten(self, places: I64) -> tuple[I64, I64] | None:
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
        base: Any = records[hit][entry] & ~np.int64(LANES - 1)
        self.log = [(found[~hit], records[~hit], masks[~hit])]
        self.entries = len(self.log[0][0])
        return which[hit][entry], base | lane


assert COLUMN_BITS > 5  # the lane is the lowest bits of a record
