"""The last accesses to every place of shared memory.

A place is `unit` bytes, the smallest access that the kernel makes. Of writes the last one is kept;
of reads the last one of every warp of the block (of all warps together, where that would take too
much memory), the last one from another block, and of the asynchronous proxy the last one of every
warpgroup and the last bulk copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.common import I64, LANES
from fragir.emulator.wgmma import WARPGROUP

if TYPE_CHECKING:
    from fragir.emulator.state import Machine

CHUNK = 16  # bytes: what the asynchronous proxy accesses is made of these
LIMIT = 1 << 26  # records of reads


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
        columns = self.warps + 1 if self.apart else 2
        self.read: npt.NDArray[np.int64] = np.zeros((places, columns), np.int64)
        self.read_time: npt.NDArray[np.int32] = np.zeros(places, np.int32)
        slots = self.warps // WARPGROUP + 1 if asynchronous else 0
        self.chunk_read: npt.NDArray[np.int64] = np.zeros((-(-count // CHUNK), slots), np.int64)

    def reset(self) -> None:
        self.written[...] = 0
        self.read_time[...] = 0
        self.read[...] = 0
        self.chunk_read[...] = 0

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
        return np.where(at // max(self.stride, 1) == block, slot, self.read.shape[1] - 1)
