"""The bytes of one space of memory: views for every width, accesses like earlier ones."""

from __future__ import annotations

import mmap
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.lanes import Mask, Select
from fragir.emulator.numbers.types import I64, UINT, Array, Bools, every

# -- footprints ------------------------------------------------------------------------------------
# Which bytes of global memory a part of a launch has read and written.
#
# Blocks that run in several processes are those of one run as long as no process has written what
# another has read or written. A footprint is what is compared for that: one mark for each unit of
# memory and each of the two. A unit is the smallest access of the program, or less; where a unit is
# larger than an access, footprints may meet without need, and nothing worse happens.

#: Marks looked at together.
_CHUNK = 1 << 20
_LARGEST = 8  # marks made by one store
READ, WRITTEN = 0, 1


class Footprint:
    """Marks for memory of `size` bytes in units of `unit` bytes, a power of two up to 16.

    `marks`: 2 * `Footprint.room(size, unit)` zeros that it is to use (shared with another
    process, say).
    """

    def __init__(self, size: int, unit: int, marks: npt.NDArray[np.uint8] | None = None) -> None:
        room = self.room(size, unit)
        self.shift = unit.bit_length() - 1
        if marks is None:
            marks = np.zeros(2 * room, np.uint8)
        self.read, self.written = self.halves = marks[:room], marks[room : 2 * room]
        self._views = [
            {width: half.view(UINT[width]) for width in (1, 2, 4, 8)} for half in self.halves
        ]

    @staticmethod
    def room(size: int, unit: int) -> int:
        """Bytes of the marks of one kind."""
        return (size // unit + 64) // 32 * 32

    def note_read(self, at: I64, size: int) -> None:
        """Bytes were read: `size` (a power of two) at each position, a multiple of `size`."""
        self.note(READ, at >> (size.bit_length() - 1), size)

    def note_written(self, at: I64, size: int) -> None:
        """Bytes were written, or both."""
        self.note(WRITTEN, at >> (size.bit_length() - 1), size)

    def note(self, kind: int, index: I64, size: int) -> None:
        """The same of positions counted in accesses of that size."""
        if not index.size:
            return
        more = self.shift + 1 - size.bit_length()
        if more > 0:  # smaller than a unit
            index, size = index >> more, size << more
        count = size >> self.shift  # marks of each access
        low, high = int(index.min()), int(index.max())
        if high - low < index.size:  # as good as all in between, and much faster
            self.halves[kind][low * count : (high + 1) * count] = 1
            return
        width = min(count, _LARGEST)
        marks, ones = self._views[kind][width], 0x0101010101010101 & ((1 << 8 * width) - 1)
        for part in range(count // width):
            marks[index if count == width else index * (count // width) + part] = ones

    def meets(self, other: Footprint) -> bool:
        """Whether one has written what the other has read or written."""
        for start in range(0, len(self.read), _CHUNK):
            part = slice(start, start + _CHUNK)
            mine, others = self.written[part], other.written[part]
            if mine.any() and (mine & (others | other.read[part])).any():
                return True
            if others.any() and (others & self.read[part]).any():
                return True
        return False

    def add(self, other: Footprint) -> None:
        """Marks what the other has marked, too."""
        np.bitwise_or(self.read, other.read, out=self.read)
        np.bitwise_or(self.written, other.written, out=self.written)


def shared_bytes(size: int) -> npt.NDArray[np.uint8]:
    """Zeros that this process and those that it forks share. MemoryError where there are none."""
    try:
        return np.frombuffer(mmap.mmap(-1, max(size, 1)), np.uint8, size)
    except OSError as problem:
        raise MemoryError(str(problem)) from problem


class Arena:
    """Bytes with a view for every access width, kept a multiple of 32 long.

    `shared`: in memory that forked processes share, if there is any. `footprint`: while it is
    there, whoever reads or writes for the kernel notes that in it; `gather` and `scatter` do.
    """

    def __init__(self, size: int, shared: bool = False) -> None:
        size = (size + 31) // 32 * 32
        try:
            self.bytes = shared_bytes(size) if shared else np.zeros(size, np.uint8)
            self.shared = shared
        except MemoryError:
            self.bytes, self.shared = np.zeros(size, np.uint8), False
        self.footprint: Footprint | None = None
        self._views: dict[tuple[int, int], Array] = {}

    def view(self, width: int, count: int = 1) -> Array:
        """The bytes as elements of `width` bytes; rows of `count` where count > 1."""
        key = (width, count)
        found = self._views.get(key)
        if found is None:
            flat = self.bytes
            if self.bytes.size % (width * count):
                flat = self.bytes[: self.bytes.size // (width * count) * (width * count)]
            found = flat.view(UINT[width])
            self._views[key] = found = found if count == 1 else found.reshape(-1, count)
        return found

    def wholes(self, size: int) -> Array:
        """The bytes as elements of `size` bytes, that numbers have or not: those are only moved,
        many times faster than as rows of numbers."""
        if size in UINT:
            return self.view(size)
        found = self._views.get((size, 0))
        if found is None:
            flat = self.bytes[: self.bytes.size // size * size]
            found = self._views[size, 0] = flat.view(np.dtype((np.void, size)))
        return found

    def gather(self, at: I64, width: int, count: int) -> Array:
        """Elements at aligned byte positions; a trailing axis of `count` where count > 1."""
        size = width * count
        index = at >> (size.bit_length() - 1)
        if self.footprint is not None:
            self.footprint.note(READ, index, size)
        if count == 1:
            return self.view(width)[index]
        return self.wholes(size).take(index).view(UINT[width]).reshape(*index.shape, count)

    def scatter(self, at: I64, width: int, count: int, value: Array) -> None:
        size = width * count
        index = at >> (size.bit_length() - 1)
        if self.footprint is not None:
            self.footprint.note(WRITTEN, index, size)
        if count == 1:
            self.view(width)[index] = value
            return
        to, shape = self.wholes(size), (*index.shape, count)
        rows = value if value.shape == shape else np.broadcast_to(value, shape)
        to[index] = np.ascontiguousarray(rows, UINT[width]).view(to.dtype)[..., 0]


# -- patterns --------------------------------------------------------------------------------------
# Accesses that are like earlier ones: to the same places, or to others equally far from them.
#
# Loops make most of their accesses so. What has been found of the first one holds for all.

#: Where accesses go: (arena, byte positions, which lanes; None: all).
Spaces: TypeAlias = "list[tuple[Arena, I64, Bools | None]]"
#: Patterns of which the number is remembered.
KEPT = 1 << 12
#: Lanes of the accesses of a launch of which the positions are kept; some 32 bytes each.
ROOM = 1 << 22


class LocatedBefore(Protocol):
    """The access of the instruction that runs, as a check has located it. `found` is what
    `DeviceMemory.spaces` gives for the same lanes and bytes; None where nobody has asked yet."""

    sel: Select
    mask: Mask
    size: int
    found: Spaces | None


class KnownPatterns:
    """The patterns of a launch: how many positions may be kept, and which are equal but for a
    distance."""

    def __init__(self) -> None:
        self._left = ROOM
        self._numbers: dict[tuple[Hashable, ...], int] = {}
        self._next = 0

    def take(self, lanes: int) -> bool:
        """Whether the positions of so many lanes more may be kept."""
        self._left -= lanes
        return self._left >= 0

    def number(self, *parts: Hashable) -> int:
        """One number for all that is equal: a pattern, in parts."""
        key = tuple(blake2b(p).digest() if isinstance(p, bytes) else p for p in parts)
        found = self._numbers.get(key)
        if found is None:
            if len(self._numbers) == KEPT:
                self._numbers.clear()
            found = self._numbers[key] = self._next
            self._next += 1
        return found


class AccessPattern:
    """Byte positions of some lanes in one arena.

    `at`: those of the first time; `size`: bytes of each. In bounds are those that
    have moved by at least `down` and at most `up` bytes, and by a multiple of their size.
    `number`: see `KnownPatterns`. `low`, `high`: the least and the greatest position, counted from
    the first lane's; `ascends`: whether positions do; `apart`: whether no two lanes access one
    place; `together`: where it is not so, what a check has found of lanes that do.
    """

    __slots__ = (
        *("arena", "at", "size", "down", "up", "changes", "number"),
        *("low", "high", "ascends", "apart", "together"),
    )

    def __init__(
        self, arena: Arena, at: I64, size: int, room: tuple[int, int], changes: int, number: int
    ) -> None:
        self.arena, self.at, self.size, self.changes = arena, at, size, changes
        self.down, self.up = room
        self.number = number
        self.together: Any = None
        flat, first = at.ravel(), at.item(0)
        ascending = flat
        self.ascends = self.apart = every(flat[1:] > flat[:-1])
        if not self.ascends:
            ascending = np.sort(flat)
            self.apart = every(ascending[1:] > ascending[:-1])
        self.low, self.high = ascending.item(0) - first, ascending.item(-1) - first

    def moved_positions(self, by: int) -> I64:
        """The positions that far from the first ones."""
        return self.at + by if by else self.at

    def allows(self, by: int, changes: int) -> bool:
        """Whether those are in bounds; `changes`: `DeviceMemory.changes` now."""
        return self.down <= by <= self.up and not by % self.size and changes == self.changes
