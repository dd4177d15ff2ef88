"""Device memory: address spaces, bounds and alignment, gathers and scatters of whole warps.

Every space is one flat byte array. Addresses that a kernel sees:

* global: 64-bit, buffers lie apart with unmapped gaps between them;
* const and param: offset in the same bytes, whose first they are, so that it has 32 bits;
* shared: rank of the block in its cluster << 24 | offset (as `mapa.shared::cluster` gives);
* local: offset in the lane's own stack;
* generic: global addresses as they are; those of the others inside a window each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.arena import Arena, KnownPatterns, LocatedBefore, Spaces
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select
from fragir.emulator.numbers.types import I64, U64, UINT, Array, every

# -- outside ---------------------------------------------------------------------------------------
# What is said of accesses to shared memory that is not there.

CLUSTER_SHIFT = 24
"""Above it stand the bits of an address of shared memory that name the block of the cluster."""

MOST_BLOCKS = 16
"""Of a cluster (CUDA C++ Programming Guide, non-portable cluster sizes)."""


def outside_shared_reason(at: int, size: int, room: int, cluster: int) -> str:
    """Why `size` bytes at an address are in no block's `room` of a cluster of so many."""
    block, offset = at >> CLUSTER_SHIFT, at & (1 << CLUSTER_SHIFT) - 1
    if at < 0 or (cluster == 1 and block >= MOST_BLOCKS):  # no block is meant
        return f"{size} bytes at shared offset {at}; the block has {room}"
    if block >= cluster:
        return f"the address is of {no_block(block, cluster)}"
    return f"{size} bytes at shared offset {offset}; the block has {room}"


def no_block(block: int, cluster: int) -> str:
    """A block that a cluster does not have."""
    if cluster == 1:
        return f"block {block} of a cluster, and this launch has clusters of one block (--cluster)"
    return f"block {block}, and the cluster has {cluster} blocks"


GLOBAL_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x0100_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000
WINDOW = 1 << 32
GUARD = 4096
ALIGNMENT = 256
HEAP_GAP = 32  # what malloc's buffers are aligned to, and are apart at least

_BASE = np.array(GLOBAL_BASE, np.uint64)
#: What an address must have none of, by the bytes of an access.
_REST = {size: np.array(size - 1, np.uint64) for size in (2, 4, 8, 16, 32)}


class AccessFault(Exception):
    """One lane's address cannot be accessed. `index` counts the lanes handed in (flat); `lane` is
    the machine's, where what was handed in are not lanes."""

    def __init__(self, reason: str, address: int, index: int, kind: str = "stopped") -> None:
        super().__init__(reason)
        self.reason, self.address, self.index, self.kind = reason, address, index, kind
        self.lane: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """One allocation in the global arena, [start, start + size) as offsets from GLOBAL_BASE."""

    name: str
    start: int
    size: int

    @property
    def address(self) -> int:
        return GLOBAL_BASE + self.start


@dataclass(frozen=True, slots=True)
class ArrayContents:
    """Bytes of the global arena, [start, start + size), that a caller's array or an earlier launch
    has filled: those of the parameter or variable `name`."""

    name: str
    start: int
    size: int


class DeviceMemory:
    """All spaces of one launch.

    `shared_home` [warp, lane] is the first byte of the shared memory of the lane's cluster;
    `local_home` that of the lane's stack.
    """

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.windowed = 0  # how many of them are constants and parameters
        #: What a kernel finds that is data, and the names of what is part of its launch instead;
        #: None where nobody asks.
        self.data: list[ArrayContents] = []
        self.structure: list[str] | None = None
        self._end = 0
        self._starts: list[int] = []
        #: By place and bytes of an access: its start, and the last offset from there.
        self._rooms: dict[tuple[int, int], tuple[U64, U64]] = {}
        self._ends: list[int] = []
        self._heap = [-1, -1]
        self._fresh = 0
        self._given: list[Buffer] = []  # of the heap, by address
        self.changes = 0  # how often the places that can be accessed have changed
        self.located: LocatedBefore | None = None
        self.patterns = KnownPatterns()
        self.globals = Arena(0)
        self.shared = Arena(0)
        self.local = Arena(0)
        self.shared_size = 0  # bytes of one block
        self.shared_stride = 0
        self.local_size = 0
        self.cluster = 1
        #: One byte for four of shared memory: set while an asynchronous write to it is pending.
        self.poison: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self.poisoned = 0  # pending asynchronous writes
        self.pending: Callable[[int], str] = lambda _: ""  # to be said of one at a position
        self.shared_home: I64 = np.zeros((0, LANES), np.int64)
        self.local_home: I64 = np.zeros((0, LANES), np.int64)

    # -- allocation --------------------------------------------------------------------------

    def allocate(self, name: str, size: int, alignment: int = ALIGNMENT) -> Buffer:
        """Reserve global memory; call `commit` before the first access."""
        alignment = max(alignment, ALIGNMENT)
        start = (self._end + GUARD + alignment - 1) // alignment * alignment
        buffer = Buffer(name, start, size)
        self.buffers.append(buffer)
        self._end = start + size
        return buffer

    def commit(
        self,
        warps: int,
        blocks: int,
        shared: int,
        local: int,
        cluster: int,
        heap: int = 0,
        *,
        forks: bool = False,
    ) -> None:
        """Make the arrays: `blocks` resident blocks of `shared` bytes, `local` bytes a lane.

        `heap`: bytes behind all buffers that `heap_take` gives out. `forks`: whether processes
        that are forked later shall write to the same global memory.
        """
        self._heap = [(self._end + GUARD + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT, 0]
        self._heap[1] = self._heap[0] + heap
        self.globals = Arena(self._heap[1] + GUARD, forks)
        self._fresh = self._heap[0]
        if heap:
            self.buffers.append(Buffer("the heap", self._heap[0], heap))
        self._list_places()
        self.shared_size = shared
        self.shared_stride = (shared + 1023) // 1024 * 1024
        self.shared = Arena(self.shared_stride * blocks)
        self.poison = np.zeros(self.shared.bytes.size // 4, np.uint8)
        self.local_size = (local + 15) // 16 * 16
        self.local = Arena(self.local_size * warps * LANES)
        self.cluster = cluster
        per = warps // blocks if blocks else warps
        block_of = np.arange(warps) // max(per, 1)
        first = block_of // cluster * cluster * self.shared_stride
        self.shared_home = np.repeat(first[:, None], LANES, axis=1).astype(np.int64)
        lanes = np.arange(warps * LANES, dtype=np.int64).reshape(warps, LANES)
        self.local_home = lanes * self.local_size

    def buffer_of(self, at: I64) -> I64:
        """The index in `buffers` of what lies at positions of the global arena."""
        starts = np.array([b.start for b in self.buffers] or [0], np.int64)
        return np.searchsorted(starts, at, side="right") - 1

    def heap_take(self, size: int) -> Buffer | None:
        """malloc: a new piece of the heap, None where it has no room.

        What was given back is used again only when there is nothing else.
        """
        start = self._fresh
        if start + size <= self._heap[1]:
            self._fresh = (start + size + HEAP_GAP) // HEAP_GAP * HEAP_GAP
        else:
            first, end = Buffer("", self._heap[0] - HEAP_GAP, 0), Buffer("", self._heap[1], 0)
            for one, other in pairwise([first, *self._given, end]):
                start = (one.start + one.size + HEAP_GAP) // HEAP_GAP * HEAP_GAP
                if start + size <= other.start:
                    break
            else:
                return None
        piece = Buffer("a piece of the heap", start, size)
        self._given[:] = sorted([*self._given, piece], key=lambda b: b.start)
        self._list_places()
        return piece

    def heap_give(self, start: int) -> bool:
        """free: whether a piece of the heap begins there."""
        found = next((b for b in self._given if b.start == start), None)
        if found is None:
            return False
        self._given.remove(found)
        self._list_places()
        return True

    @property
    def places(self) -> list[Buffer]:
        """What can be accessed: the buffers, and the pieces of the heap in place of the heap."""
        return [b for b in self.buffers if b.start != self._heap[0]] + self._given

    def _list_places(self) -> None:
        """In place: planes beside this memory share the lists."""
        self._starts[:] = [b.start for b in self.places]
        self._ends[:] = [b.start + b.size for b in self.places]
        self._rooms.clear()
        self.changes += 1

    def bytes_of(self, buffer: Buffer) -> npt.NDArray[np.uint8]:
        return self.globals.bytes[buffer.start : buffer.start + buffer.size]

    # -- address translation -------------------------------------------------------------------

    def locate_global(self, address: Array, size: int) -> I64:
        """Byte positions in the global arena of accesses of `size` bytes."""
        offset = address - _BASE
        at = offset.view(np.int64)
        found = bisect_right(self._starts, at.item(0)) - 1
        if found < 0 or not self._are_all_within(offset, found, size):
            self._check_global(address, at, size)
        self._check_alignment(address, size)
        return at

    def _are_all_within(self, offset: npt.NDArray[np.uint64], place: int, size: int) -> bool:
        """Whether `size` bytes from each offset lie in one place, in few numpy calls."""
        room = self._ends[place] - self._starts[place] - size
        known = self._rooms.get((place, size))
        if known is None:
            start = np.array(self._starts[place], np.uint64)
            known = self._rooms[place, size] = start, np.array(max(room, 0), np.uint64)
        return room >= 0 and every(offset - known[0] <= known[1])

    def place_at(self, position: int) -> tuple[int, int]:
        """Where the place begins and ends in which a position of the global arena lies."""
        found = bisect_right(self._starts, position) - 1
        return self._starts[found], self._ends[found]

    def rest_of_buffer(self, address: int, most: int) -> bytes:
        """What lies from a global address to the end of its buffer, at most so many bytes."""
        at = int(self.locate_global(np.array([address], np.uint64), 1)[0])
        end = self._ends[bisect_right(self._starts, at) - 1]
        return self.globals.bytes[at : min(end, at + most)].tobytes()

    def _check_global(self, address: Array, at: I64, size: int) -> None:
        starts = np.array(self._starts or [0], np.int64)
        ends = np.array(self._ends or [0], np.int64)
        which = np.searchsorted(starts, at, side="right") - 1
        bad = (which < 0) | (at + size > ends[np.maximum(which, 0)]) | (not self.buffers)
        if bad.any():
            index = int(np.flatnonzero(bad)[0])
            where = int(address.flat[index])
            reason = self._describe_global(int(at.flat[index]), size) + self.astray(where)
            raise AccessFault(reason, where, index, "out-of-bounds")

    def astray(self, address: int) -> str:
        """What to say of a generic address that is one of a state space; empty if it is not."""
        for buffer in self.buffers[: self.windowed]:
            if buffer.start <= address < buffer.start + buffer.size:
                return (
                    f"; it is that of {buffer.name} in its own space, cvta makes it a generic one"
                )
        return ""

    def _describe_global(self, at: int, size: int) -> str:
        near = min(
            self.places,
            key=lambda b: max(b.start - at, at - (b.start + b.size), 0),
            default=None,
        )
        if near is None or abs(at - near.start) > near.size + (1 << 30):
            return f"{size} bytes outside every buffer"
        if at < near.start:
            return f"{size} bytes, {near.start - at} bytes before {near.name}"
        return f"{size} bytes at offset {at - near.start} of {near.name}, which has {near.size}"

    def _check_alignment(self, address: Array, size: int) -> None:
        if size == 1:
            return
        rest = _REST.get(size)
        if rest is None:
            rest = np.array(size - 1, np.uint64)
        if np.count_nonzero(address & rest.astype(address.dtype, copy=False)):
            index = int(np.flatnonzero(address & address.dtype.type(size - 1))[0])
            reason = f"an access of {size} bytes needs an address that is a multiple of {size}"
            raise AccessFault(reason, int(address.flat[index]), index, "misaligned")

    def locate_shared(self, address: Array, home: I64, size: int) -> I64:
        """Byte positions in the shared arena; `address` as the kernel sees it."""
        at = address.astype(np.int64)
        if self.cluster > 1:
            rank = at >> CLUSTER_SHIFT
            offset = at & ((1 << CLUSTER_SHIFT) - 1)
            bad_rank = rank >= self.cluster
        else:
            rank, offset, bad_rank = None, at, None
        if offset.size and (int(offset.max()) + size > self.shared_size or int(offset.min()) < 0):
            self._fail_shared(at, (offset + size > self.shared_size) | (offset < 0), size)
        if bad_rank is not None and bad_rank.any():
            self._fail_shared(at, bad_rank, size)
        self._check_alignment(address, size)
        if rank is None:
            return offset + home
        return offset + home + rank * self.shared_stride

    def shared_position(self, address: Array, home: I64, size: int, room: int = 0) -> int:
        """That of one access of `size` bytes, where `room` bytes from there are the block's too."""
        at, last = address.item(0), max(room, size) - size
        if self.cluster == 1 and 0 <= at <= self.shared_size - size - last and not at % size:
            return at + home.item(0)
        if last:
            self.locate_shared(address + address.dtype.type(last), home, size)
        return int(self.locate_shared(address, home, size)[0])

    def _fail_shared(self, at: I64, bad: npt.NDArray[np.bool_], size: int) -> None:
        index = int(np.flatnonzero(bad)[0])
        where = int(at.flat[index])
        reason = outside_shared_reason(where, size, self.shared_size, self.cluster)
        raise AccessFault(reason, where, index, "out-of-bounds")

    def locate_local(self, address: Array, home: I64, size: int) -> I64:
        at = address.astype(np.int64)
        if at.size and (int(at.max()) + size > self.local_size or int(at.min()) < 0):
            bad = (at + size > self.local_size) | (at < 0)
            index = int(np.flatnonzero(bad)[0])
            where = int(at.flat[index])
            reason = f"{size} bytes at local offset {where}; the lane has {self.local_size}"
            raise AccessFault(reason, int(address.flat[index]), index, "out-of-bounds")
        self._check_alignment(address, size)
        return at + home

    def spaces(self, space: str, address: Array, sel: Select, mask: Mask, size: int) -> Spaces:
        """Where lanes' accesses of `size` bytes go: (arena, byte positions, which lanes).

        `address` holds the active lanes only (compressed where there is a mask). "Which lanes"
        is None where one space serves all of them; generic addresses may need several.
        """
        known = self.located
        if known is not None and known.sel is sel and known.mask is mask and known.size == size:
            if known.found is not None:
                return known.found
        if space == "global":
            return [(self.globals, self.locate_global(address, size), None)]
        if space == "shared":
            home = self._home(self.shared_home, sel, mask)
            return [(self.shared, self.locate_shared(address, home, size), None)]
        if space == "local":
            home = self._home(self.local_home, sel, mask)
            return [(self.local, self.locate_local(address, home, size), None)]
        return self._generic(address.astype(np.uint64), sel, mask, size)

    @staticmethod
    def _home(home: I64, sel: Select, mask: Mask) -> I64:
        return home[sel] if mask is None else home[sel][mask]

    def _generic(
        self, address: npt.NDArray[np.uint64], sel: Select, mask: Mask, size: int
    ) -> Spaces:
        low, high = int(address.min()), int(address.max())
        if low >= GLOBAL_BASE:
            return [(self.globals, self.locate_global(address, size), None)]
        home = self._home(self.shared_home, sel, mask)
        if low >= SHARED_WINDOW and high < SHARED_WINDOW + WINDOW:
            at = self.locate_shared(address - np.uint64(SHARED_WINDOW), home, size)
            return [(self.shared, at, None)]
        in_shared = (address >= SHARED_WINDOW) & (address < SHARED_WINDOW + WINDOW)
        in_local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW)
        result: Spaces = []
        where = rest = ~(in_shared | in_local)
        try:
            if rest.any():
                result.append((self.globals, self.locate_global(address[rest], size), rest))
            where = in_shared
            if in_shared.any():
                part = address[in_shared] - np.uint64(SHARED_WINDOW)
                at = self.locate_shared(part, home[in_shared], size)
                result.append((self.shared, at, in_shared))
            where = in_local
            if in_local.any():
                part = address[in_local] - np.uint64(LOCAL_WINDOW)
                stack = self._home(self.local_home, sel, mask)[in_local]
                result.append((self.local, self.locate_local(part, stack, size), in_local))
        except AccessFault as fault:
            fault.index = int(np.flatnonzero(where)[fault.index])
            raise
        return result

    def set_poison(self, at: I64, size: int, value: int) -> None:
        """Mark (1) or clear (0) `size` bytes, 4, 8 or 16, at byte positions of shared memory."""
        kind = UINT[size // 4]
        self.poison.view(kind)[at >> (size.bit_length() - 1)] = value * (
            0x01010101 >> (32 - 2 * size)
        )

    def check_poison(self, arena: Arena, at: I64, size: int) -> None:
        """Refuse accesses to bytes that an asynchronous copy has yet to write."""
        if arena is not self.shared or not self.poisoned:
            return
        if size >= 8:
            bad = self.poison.view(UINT[min(size, 16) // 4])[at >> (min(size, 16).bit_length() - 1)]
        else:
            bad = self.poison[at >> 2]
        if np.count_nonzero(bad):
            index = int(np.flatnonzero(bad)[0])
            offset = int(at.flat[index]) % max(self.shared_stride, 1)
            reason = "an asynchronous copy to these bytes is still pending; wait for it first"
            reason += self.pending(int(at.flat[index]))
            raise AccessFault(reason, offset, index, "pending-copy")

    def load(
        self, space: str, address: Row, sel: Select, mask: Mask, width: int, count: int
    ) -> Array:
        """Load per lane; `address` as `spaces` wants it. A trailing axis where count > 1."""
        parts = self.spaces(space, address, sel, mask, width * count)
        arena, at, which = parts[0]
        if which is None:
            if self.poisoned:
                self.check_poison(arena, at, width * count)
            return arena.gather(at, width, count)
        shape = address.shape if count == 1 else (*address.shape, count)
        result = np.empty(shape, UINT[width])
        for arena, at, which in parts:
            result[which] = arena.gather(at, width, count)
        return result

    def save(
        self,
        space: str,
        address: Row,
        sel: Select,
        mask: Mask,
        width: int,
        count: int,
        value: Array,
    ) -> None:
        """Store per lane, the highest lane last where several write one place."""
        for arena, at, which in self.spaces(space, address, sel, mask, width * count):
            if self.poisoned:
                self.check_poison(arena, at, width * count)
            arena.scatter(at, width, count, value if which is None else value[which])
