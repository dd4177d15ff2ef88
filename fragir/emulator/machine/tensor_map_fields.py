"""The 128 bytes of a tensor map, and which elements of a tensor a tile has (PTX ISA 9.2, 5.5).

The bytes of a map are opaque to a kernel; here they hold the fields of `MapFields`, so that maps
can be copied and changed (tensormap.replace) as on a machine.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.memory import GLOBAL_BASE, DeviceMemory
from fragir.emulator.numbers.types import I64, OOB_NAN, UINT

SIZE = 128  # bytes of a tensor map
_MAGIC = b"fgtm"
_HEAD = struct.Struct("<4s8B")
_BODY = struct.Struct("<Q5I4x4Q5H5Bx6b2H")
_BODY_AT = 16
#: Bytes of a row that the copy engine takes or leaves as a whole (docs/copy-engine.md).
CHUNK = 16
_PADDED_COLUMNS = 128  # of types with padding in shared memory: where a tile may begin


@dataclass(frozen=True, slots=True)
class MapElement:
    """An element type. A unit is what is copied as a whole: `count` elements.

    `bytes` in global, `shared` in shared memory (with its padding); `kind`: what reductions take
    it as, None where there are none; `floating`: whether NaN can fill it.
    """

    name: str
    bytes: int
    kind: str | None
    count: int = 1
    shared: int = 0
    floating: bool = False
    ftz: bool = False

    @property
    def room(self) -> int:
        """Bytes of a unit in shared memory."""
        return self.shared or self.bytes


#: By the number that tensormap.replace uses (section 9.7.9.28, table of the fields).
ELEMENTS: tuple[MapElement, ...] = (
    MapElement("u8", 1, None),
    MapElement("u16", 2, None),
    MapElement("u32", 4, "u32"),
    MapElement("s32", 4, "s32"),
    MapElement("u64", 8, "u64"),
    MapElement("s64", 8, "s64"),
    MapElement("f16", 2, "f16", floating=True),
    MapElement("f32", 4, "f32", floating=True),
    MapElement("f32.ftz", 4, "f32", floating=True, ftz=True),
    MapElement("f64", 8, "f64", floating=True),
    MapElement("bf16", 2, "bf16", floating=True),
    MapElement("tf32", 4, "f32", floating=True),
    MapElement("tf32.ftz", 4, "f32", floating=True, ftz=True),
    MapElement("b4x16", 1, None, 2),
    MapElement("b4x16_p64", 8, None, 16, 16),
    MapElement("b6x16_p32", 12, None, 16, 16),
)


NUMBERS = {e.name: i for i, e in enumerate(ELEMENTS)}


_NANS = {"f16": OOB_NAN, "bf16": OOB_NAN, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class Im2col:
    """What an im2col map has instead of a box; dimensions outermost first, without N and C.

    `lower` and `upper`: offsets of the corners of the box of pixels from those of the array;
    `channels` of each pixel and `pixels` are what one copy moves.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


@dataclass(frozen=True, slots=True)
class MapFields:
    """The fields of a tensor map, innermost dimension first; `strides` of all but that one."""

    address: int
    element: int
    rank: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    atom: int = 0
    interleave: int = 0
    fill: int = 0
    im2col: Im2col | None = None

    def pack(self) -> bytes:
        """The 128 bytes."""
        how = self.im2col or Im2col((), (), 0, 0)
        head = _HEAD.pack(
            _MAGIC,
            self.im2col is not None,
            self.element,
            self.rank - 1,
            self.interleave,
            self.swizzle,
            self.atom,
            self.fill,
            0,
        )
        body = _BODY.pack(
            self.address,
            *self.sizes,
            *self.strides,
            *self.box,
            *self.steps,
            *padded(how.lower, 3, 0),
            *padded(how.upper, 3, 0),
            how.channels,
            how.pixels,
        )
        return (head.ljust(_BODY_AT, b"\0") + body).ljust(SIZE, b"\0")

    @staticmethod
    def unpack(data: bytes) -> MapFields | None:
        """The fields of 128 bytes; None where they are no tensor map."""
        if not data.startswith(_MAGIC):
            return None
        _, mode, element, rank, interleave, swizzle, atom, fill, _ = _HEAD.unpack_from(data)
        values = _BODY.unpack_from(data, _BODY_AT)
        spatial = rank - 1
        im2col = None
        if mode:
            lower, upper = values[20 : 20 + spatial], values[23 : 23 + spatial]
            im2col = Im2col(tuple(lower), tuple(upper), values[26], values[27])
        return MapFields(
            values[0],
            element,
            rank + 1,
            values[1:6],
            values[6:10],
            values[10:15],
            values[15:20],
            swizzle,
            atom,
            interleave,
            fill,
            im2col,
        )

    # -- tiles -------------------------------------------------------------------------------------

    @property
    def unit(self) -> MapElement:
        return ELEMENTS[self.element]

    def why_not(self) -> str | None:
        """What about the map is not supported or not allowed."""
        if self.interleave:
            return "interleaved layouts are not supported"
        if self.swizzle >= len(SWIZZLES):
            return "swizzle of 96 bytes is not supported"
        if self.atom == 2:
            return "swizzle with flipped halves of 8 bytes is not supported"
        return None

    def counts(self) -> tuple[int, ...]:
        """Units of a tile in every dimension, innermost first."""
        if self.im2col is not None:
            return self.im2col.channels // self.unit.count, self.im2col.pixels
        box = (self.box[0] // self.unit.count, *self.box[1 : self.rank])
        return tuple(-(-b // max(s, 1)) for b, s in zip(box, self.steps, strict=False))

    def bytes(self, rows: int | None = None) -> int:
        """What an mbarrier counts: the data without padding. `rows`: of a gather."""
        counts = self.counts()
        number = int(np.prod(counts)) if rows is None else counts[0] * rows
        return number * self.unit.bytes

    def room(self, rows: int | None = None) -> int:
        """Bytes of a tile in shared memory."""
        return self.bytes(rows) // self.unit.bytes * self.unit.room

    def tile(self, corner: Sequence[int]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """(generic addresses, which are inside) of the units of a tile, the innermost last."""
        counts = self.counts()
        axes: list[npt.NDArray[np.int64]] = []
        for axis in range(self.rank):
            start = self._first(corner[axis]) if axis == 0 else corner[axis]
            axes.append(start + self.steps[axis] * np.arange(counts[axis], dtype=np.int64))
        return self._at(np.meshgrid(*reversed(axes), indexing="ij")[::-1])

    def rows(self, corner: Sequence[int]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """The same of a gather: a column and some rows of a matrix."""
        inner = self._first(corner[0]) + np.arange(self.counts()[0], dtype=np.int64)
        return self._at(np.meshgrid(np.array(corner[1:], np.int64), inner, indexing="ij")[::-1])

    def pixels(
        self, corner: Sequence[int], offsets: Sequence[int]
    ) -> tuple[I64, npt.NDArray[np.bool_]]:
        """The same of im2col (section 5.5.4): pixels of the box one after the other."""
        assert self.im2col is not None
        how = self.im2col
        number = np.arange(how.pixels, dtype=np.int64)
        spatial = self.rank - 2
        places: list[npt.NDArray[np.int64]] = []
        carry = number
        for axis in range(spatial):
            step = max(self.steps[axis + 1], 1)
            width = self.sizes[axis + 1] + how.upper[axis] - how.lower[axis]
            extent = max(-(-width // step), 1)
            carry = carry + (corner[axis + 1] - how.lower[axis]) // step
            carry, digit = np.divmod(carry, extent)
            places.append(how.lower[axis] + digit * step + offsets[axis])
        places.append(corner[-1] + carry)
        inner = self._first(corner[0]) + np.arange(self.counts()[0], dtype=np.int64)
        shape = how.pixels, len(inner)
        full = [np.broadcast_to(inner, shape)]
        full += [np.broadcast_to(p[:, None], shape) for p in places]
        return self._at(full)

    def why_not_at(self, coordinate: int) -> str | None:
        """Why a copy cannot begin at an innermost coordinate: "the address of the bounding Box must
        also be aligned to 16 bytes" (section 5.5.3.1; of padded types see 9.7.9.27.1.2)."""
        unit = self.unit
        step, words = CHUNK * unit.count // unit.bytes, f" ({CHUNK} bytes)"
        if unit.bytes != unit.room:
            step, words = _PADDED_COLUMNS, ""
        if coordinate % step == 0:
            return None
        return (
            f"the innermost coordinate is {coordinate}, of .{unit.name} it is a multiple of "
            f"{step}{words}; machines stop at others with an illegal instruction"
        )

    def in_chunks(self) -> MapFields | None:
        """The array as far as a store writes it: to the end of a row's last chunk.

        None where rows end with a whole chunk.
        """
        row = self.sizes[0] // self.unit.count * self.unit.bytes
        if row % CHUNK == 0 or CHUNK % self.unit.bytes:
            return None
        end = -(-row // CHUNK) * CHUNK // self.unit.bytes * self.unit.count
        return replace(self, sizes=(end, *self.sizes[1:]))

    def _first(self, coordinate: int) -> int:
        return coordinate // self.unit.count

    def _at(self, index: Sequence[Any]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Addresses and bounds of units at indices, innermost dimension first."""
        sizes = (self.sizes[0] // self.unit.count, *self.sizes[1:])
        inside = np.ones(index[0].shape, np.bool_)
        address = self.address + index[0] * self.unit.bytes
        for axis, places in enumerate(index):
            inside &= (places >= 0) & (places < sizes[axis])
            if axis:
                address = address + places * self.strides[axis - 1]
        return address, inside

    def swizzled(self, start: int, count: int) -> I64:
        """Byte positions of `count` units in shared memory, beginning at `start`."""
        at = start + self.unit.room * np.arange(count, dtype=np.int64)
        if self.swizzle:
            shift = {0: 4, 1: 5, 3: 6}[self.atom]
            mask = (SWIZZLES[self.swizzle] >> shift) - 1
            at ^= ((at >> 7) & mask) << shift
        return at

    def filler(self) -> int:
        """The bits of an element outside the array."""
        kind = self.unit.kind
        return _NANS[kind] if self.fill and kind is not None and self.unit.floating else 0


def read(memory: DeviceMemory, address: int) -> MapFields | None:
    """The tensor map whose bytes lie at a generic address of global memory."""
    start = address - GLOBAL_BASE
    if start < 0:
        return None
    if memory.globals.footprint is not None:
        memory.globals.footprint.note_read(np.arange(start, start + SIZE, 16), 16)
    return MapFields.unpack(memory.globals.bytes[start : start + SIZE].tobytes())


def unit_view(bytes_: int) -> np.dtype[Any] | None:
    """The dtype that holds a unit, None where it is moved byte by byte."""
    return UINT.get(bytes_)


def padded(values: Sequence[int], count: int, filler: int) -> tuple[int, ...]:
    return (*values, *[filler] * (count - len(values)))
