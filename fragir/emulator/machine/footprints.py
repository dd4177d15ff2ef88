"""Which bytes of global memory a part of a launch has read and written.

Blocks that run in several processes are those of one run as long as no process has written what
another has read or written. A footprint is what is compared for that: one mark for each unit of
memory and each of the two. A unit is the smallest access of the program, or less; where a unit is
larger than an access, footprints may meet without need, and nothing worse happens.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import I64, UINT

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
