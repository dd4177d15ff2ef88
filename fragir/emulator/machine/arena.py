"""The bytes of one space of memory, in a view for every access width."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.footprints import READ, WRITTEN, Footprint
from fragir.emulator.numbers.types import I64, UINT


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
        self._views: dict[tuple[int, int], npt.NDArray[Any]] = {}

    def view(self, width: int, count: int = 1) -> npt.NDArray[Any]:
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

    def gather(self, at: I64, width: int, count: int) -> npt.NDArray[Any]:
        """Elements at aligned byte positions; a trailing axis of `count` where count > 1."""
        index = at >> ((width * count).bit_length() - 1)
        if self.footprint is not None:
            self.footprint.note(READ, index, width * count)
        return self.view(width, count)[index]

    def scatter(self, at: I64, width: int, count: int, value: Any) -> None:
        index = at >> ((width * count).bit_length() - 1)
        if self.footprint is not None:
            self.footprint.note(WRITTEN, index, width * count)
        self.view(width, count)[index] = value
