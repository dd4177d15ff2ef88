"""Which arrays of a launch lie in the same host memory: these share one buffer on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Storage:
    """Host memory [start, end) that arrays of one launch share; `arrays` count from 0."""

    start: int
    end: int
    arrays: list[int]

    @property
    def size(self) -> int:
        return self.end - self.start


def address_of(array: Array) -> int:
    """Where an array's first element lies on the host."""
    return int(array.__array_interface__["data"][0])


def bytes_of(array: Array) -> npt.NDArray[np.uint8]:
    """The bytes of a C-contiguous array, in place."""
    return array.reshape(-1).view(np.uint8)


_PIECE = 1 << 24  # bytes looked at together
_LARGE = 1 << 28  # bytes from which on it pays to look: untouched pages take no memory


def copy_into_zeros(source: npt.NDArray[np.uint8], target: npt.NDArray[np.uint8]) -> None:
    """Copy bytes over zeros. Of much memory only what is not zero: the rest stays untouched."""
    if source.size < _LARGE:
        target[...] = source
        return
    for piece in _pieces(source):
        if _any(source[piece]):
            target[piece] = source[piece]


def copy_back(source: npt.NDArray[np.uint8], target: npt.NDArray[np.uint8]) -> None:
    """Copy bytes. Of much memory only where one of both is not zero."""
    if source.size < _LARGE:
        target[...] = source
        return
    for piece in _pieces(source):
        if _any(source[piece]) or _any(target[piece]):
            target[piece] = source[piece]


def are_equal(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> bool:
    """Whether bytes are the same, in little memory."""
    return all(np.array_equal(one[piece], other[piece]) for piece in _pieces(one))


def _any(array: npt.NDArray[np.uint8]) -> bool:
    return bool(array.view(np.bool_).any())  # of bytes as truth values it ends at the first


def _pieces(array: npt.NDArray[np.uint8]) -> Iterator[slice]:
    for first in range(0, array.size, _PIECE):
        yield slice(first, first + _PIECE)


NATIVE = "array.astype(array.dtype.newbyteorder('=')) has the right one"
"""What to do about an array of the other byte order."""


def unfit(array: Array) -> tuple[str, str | None] | None:
    """Why an array's bytes cannot go to a device, and what helps; None where they can."""
    if not array.flags.c_contiguous:
        return "the array must be C-contiguous", "numpy.ascontiguousarray makes one"
    if array.dtype.hasobject or not array.dtype.itemsize:
        return f"an array of {array.dtype} has no bytes to pass", None
    if not array.dtype.isnative:
        return f"the array has the other byte order ({array.dtype})", NATIVE
    return None


def storages(arrays: Sequence[Array]) -> list[Storage]:
    """The storages of C-contiguous arrays, in the order of the first array of each.

    Arrays that overlap share one, so that what a kernel writes through one is read through the
    other. Those that are all read-only share one where they are the same bytes only: nothing can
    tell the difference, and each is aligned as if it were alone. Empty arrays share nothing.
    """
    spans = [(address_of(a), address_of(a) + a.nbytes) for a in arrays]
    found: list[Storage] = []
    together: list[Storage] = []  # those that touch, the lowest first
    written = False

    def close() -> None:
        if written:
            members = sorted(i for one in together for i in one.arrays)
            found.append(Storage(together[0].start, max(s.end for s in together), members))
        else:
            found.extend(together)
        together.clear()

    for index in sorted(range(len(arrays)), key=lambda i: spans[i]):
        start, end = spans[index]
        if start == end:
            found.append(Storage(start, end, [index]))
            continue
        if together and start >= max(s.end for s in together):
            close()
            written = False
        same = next((s for s in together if (s.start, s.end) == (start, end)), None)
        if same is None:
            together.append(Storage(start, end, [index]))
        else:
            same.arrays.append(index)
        written = written or bool(arrays[index].flags.writeable)
    close()
    return sorted(found, key=lambda s: s.arrays[0])
