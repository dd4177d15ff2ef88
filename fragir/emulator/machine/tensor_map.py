"""Tensor maps as a launch gives them (PTX ISA 9.2, section 5.5; cuTensorMapEncodeTiled)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.memory import GLOBAL_BASE, DeviceMemory
from fragir.emulator.numbers.types import I64, OOB_NAN, Array
from fragir.emulator.report import EmulationError
from fragir.errors import check_one_of, kind_of, require_whole_number

# -- tensor map fields -----------------------------------------------------------------------------
# The 128 bytes of a tensor map, and which elements of a tensor a tile has (PTX ISA 9.2, 5.5).
#
# The bytes of a map are opaque to a kernel; here they hold the fields of `MapFields`, so that maps
# can be copied and changed (tensormap.replace) as on a machine.

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


@dataclass(frozen=True)
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
            *pad(how.lower, 3, 0),
            *pad(how.upper, 3, 0),
            how.channels,
            how.pixels,
        )
        return (head.ljust(_BODY_AT, b"\0") + body).ljust(SIZE, b"\0")

    @staticmethod
    @lru_cache(maxsize=64)
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

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Units of a tile in every dimension, innermost first."""
        if self.im2col is not None:
            return self.im2col.channels // self.unit.count, self.im2col.pixels
        box = (self.box[0] // self.unit.count, *self.box[1 : self.rank])
        return tuple(-(-b // max(s, 1)) for b, s in zip(box, self.steps, strict=False))

    def bytes(self, rows: int | None = None) -> int:
        """What an mbarrier counts: the data without padding. `rows`: of a gather."""
        number = prod(self.counts) if rows is None else self.counts[0] * rows
        return number * self.unit.bytes

    def room(self, rows: int | None = None) -> int:
        """Bytes of a tile in shared memory."""
        return self.bytes(rows) // self.unit.bytes * self.unit.room

    def tile(self, corner: Sequence[int]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """(generic addresses, which are inside) of the units of a tile, the innermost last."""
        counts = self.counts
        axes: list[npt.NDArray[np.int64]] = []
        for axis in range(self.rank):
            start = self._first(corner[axis]) if axis == 0 else corner[axis]
            axes.append(start + self.steps[axis] * np.arange(counts[axis], dtype=np.int64))
        return self._at(np.meshgrid(*reversed(axes), indexing="ij")[::-1])

    def whole_tile(self, corner: Sequence[int]) -> tuple[int, I64, int] | None:
        """(generic address of the first chunk of a tile, how far from it its chunks lie, bytes from
        there to the end of the last), where all of it is inside and whole chunks; else None."""
        offsets = self._chunk_offsets
        if offsets is None:
            return None
        starts = (self._first(corner[0]), *corner[1:])
        for start, count, step, size in zip(
            starts, self.counts, self.steps, self._sizes(), strict=False
        ):
            if start < 0 or start + step * (count - 1) >= size:
                return None
        address = self.address + starts[0] * self.unit.bytes
        address += sum(start * stride for start, stride in zip(starts[1:], self.strides))
        return address, offsets, int(offsets[-1]) + CHUNK

    @cached_property
    def _chunk_offsets(self) -> I64 | None:
        """How far the chunks of a tile lie from its first; None where tiles may not be chunks."""
        row, strides = self.counts[0] * self.unit.bytes, self.strides[: self.rank - 1]
        if self.unit.bytes != self.unit.room or self.steps[0] != 1 or min(self.counts) < 1:
            return None
        if any(place % CHUNK for place in (self.address, row, *strides)):
            return None
        offsets = np.arange(0, row, CHUNK, dtype=np.int64)
        for count, step, stride in zip(self.counts[1:], self.steps[1:], strides, strict=False):
            places = step * stride * np.arange(count, dtype=np.int64)
            offsets = (places[:, None] + offsets).ravel()
        return offsets

    def rows(self, corner: Sequence[int]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """The same of a gather: a column and some rows of a matrix."""
        inner = self._first(corner[0]) + np.arange(self.counts[0], dtype=np.int64)
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
        inner = self._first(corner[0]) + np.arange(self.counts[0], dtype=np.int64)
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

    def _sizes(self) -> tuple[int, ...]:
        """Units of the array in every dimension, innermost first."""
        return self.sizes[0] // self.unit.count, *self.sizes[1:]

    def _first(self, coordinate: int) -> int:
        return coordinate // self.unit.count

    def _at(self, index: Sequence[Array]) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Addresses and bounds of units at indices, innermost dimension first."""
        sizes = self._sizes()
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
        return _swizzle(at, self.swizzle, self.atom)

    def chunk_places(self, start: int, count: int) -> I64:
        """Byte positions of `count` chunks in shared memory, beginning at `start`."""
        phase = start % _PATTERN
        return _places_from(self.swizzle, self.atom, count, phase) + (start - phase)

    def filler(self) -> int:
        """The bits of an element outside the array."""
        kind = self.unit.kind
        return _NANS[kind] if self.fill and kind is not None and self.unit.floating else 0


_PATTERN = 1024  # bytes after which every swizzle begins anew


def _swizzle(at: I64, swizzle: int, atom: int) -> I64:
    """Where a map's swizzle puts what would lie at byte positions of shared memory."""
    if not swizzle:
        return at
    shift = {0: 4, 1: 5, 3: 6}[atom]
    mask = (SWIZZLES[swizzle] >> shift) - 1
    return at ^ ((at >> 7) & mask) << shift


@lru_cache(maxsize=64)
def _places_from(swizzle: int, atom: int, count: int, first: int) -> I64:
    """Byte positions of so many chunks one after the other, the first one's given."""
    return _swizzle(first + CHUNK * np.arange(count, dtype=np.int64), swizzle, atom)


def read(memory: DeviceMemory, address: int) -> MapFields | None:
    """The tensor map whose bytes lie at a generic address of global memory."""
    start = address - GLOBAL_BASE
    if start < 0:
        return None
    if memory.globals.footprint is not None:
        memory.globals.footprint.note_read(np.arange(start, start + SIZE, 16), 16)
    return MapFields.unpack(memory.globals.bytes[start : start + SIZE].tobytes())


def pad(values: Sequence[int], count: int, filler: int) -> tuple[int, ...]:
    return (*values, *[filler] * (count - len(values)))


_BY_DTYPE = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "int32": "s32",
    "int64": "s64",
}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What `cuTensorMapEncodeTiled` makes: how tiles of `array` are copied.

    Dimensions go outermost first, as in numpy. `box`: the tile. `swizzle`: width of the pattern in
    bytes, 0 for none; `atom`: bytes that it keeps together (16, 32 or 64). `strides`: bytes, for
    all dimensions (default: the array's own). `element_strides`: every how many elements one is
    taken. `fill`: what elements outside the array read as; NaN needs a floating-point type.
    `kind`: the element type as tensormap.replace calls it (default: by dtype); of `b4x16`,
    `b4x16_p64` and `b6x16_p32` the array holds the packed bytes, and the box counts elements.
    `im2col`: as `cuTensorMapEncodeIm2col` (then `box` counts for nothing). `shape`: elements along
    each dimension, where `array` is the memory from the first of them on, in any shape; with it,
    `strides` and `kind` are given. `promotion`: bytes that the L2 cache fetches at least, of which
    the emulator knows nothing.
    """

    array: Array
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    strides: tuple[int, ...] | None = None
    element_strides: tuple[int, ...] | None = None
    fill: Literal["zero", "nan"] = "zero"
    kind: str | None = None
    atom: Literal[16, 32, 64] = 16
    im2col: Im2col | None = None
    shape: tuple[int, ...] | None = None
    promotion: Literal[0, 64, 128, 256] = 0

    def __repr__(self) -> str:
        size, box = ("x".join(map(str, each)) for each in (self.extents, self.box))
        pattern = f", swizzle {self.swizzle}" if self.swizzle else ""
        return f"<tensor map of {size} {self.kind or self.array.dtype}, box {box}{pattern}>"

    def __post_init__(self) -> None:
        self._check_kinds()
        rank = len(self.extents)
        if not 1 <= rank <= 5 or len(self.box) != rank:
            raise EmulationError(
                f"a tensor map has 1 to 5 dimensions and a box of as many, not {rank} and "
                f"{len(self.box)}"
            )
        if any(not 1 <= b <= 256 for b in self.box):
            raise EmulationError(f"the sides of a box are 1 to 256, not {self.box}")
        if self.kind is not None and self.kind not in NUMBERS:
            raise EmulationError(
                f"{self.kind!r} is no element type of tensor maps", hint=", ".join(NUMBERS)
            )
        element = self.element
        if self.array.itemsize * max(element.count // 2, 1) > max(element.bytes, 1):
            raise EmulationError(f"the array's elements are no .{element.name}")
        if self.atom != 16 and self.swizzle != 128:
            raise EmulationError("atoms of 32 and 64 bytes need swizzle 128")
        if self.im2col is not None:
            self._check_im2col(self.im2col)
            return
        inner = self.box[-1] * element.room // element.count
        if inner % 16 or self.box[-1] % element.count:
            raise EmulationError(f"the inner side of a box is a multiple of 16 bytes, not {inner}")
        if element.count == 16 and (self.box[-1] != 128 or self.swizzle not in (0, 128)):
            raise EmulationError(f"a box of .{element.name} is 128 wide, with swizzle 0 or 128")
        if self.swizzle and inner > self.swizzle:
            raise EmulationError(
                f"the inner side of the box has {inner} bytes, more than swizzle {self.swizzle}"
            )

    def _check_kinds(self) -> None:
        """That everything is of the type it should have."""
        if not isinstance(cast("object", self.array), np.ndarray):
            raise EmulationError(f"a tensor map is of a numpy array, not of {kind_of(self.array)}")
        for name, numbers in (
            ("box", self.box),
            ("strides", self.strides),
            ("element_strides", self.element_strides),
            ("shape", self.shape),
        ):
            if numbers is None and name != "box":
                continue
            if not isinstance(cast("object", numbers), tuple | list):
                raise EmulationError(f"{name} is a tuple of numbers, not {kind_of(numbers)}")
            for number in cast("tuple[object, ...]", numbers):
                require_whole_number(number, f"a number of {name}")
        for name, word in (("fill", self.fill), ("kind", self.kind)):
            if word is not None and not isinstance(cast("object", word), str):
                raise EmulationError(f"{name} is a str, not {kind_of(word)}")
        check_one_of(self.fill, ("zero", "nan"), "fill")
        check_one_of(
            str(require_whole_number(self.swizzle, "swizzle")), ("0", "32", "64", "128"), "swizzle"
        )
        check_one_of(
            str(require_whole_number(self.promotion, "promotion")),
            ("0", "64", "128", "256"),
            "promotion",
        )
        if self.shape is not None and (self.strides is None or self.kind is None):
            raise EmulationError("with a shape, strides and kind are given")
        if len({len(self.extents), len(self.pitches), len(self.steps)}) != 1:
            raise EmulationError("there are a size, a stride and a step for each dimension")
        check_one_of(str(require_whole_number(self.atom, "atom")), ("16", "32", "64"), "atom")
        if self.im2col is not None and not isinstance(cast("object", self.im2col), Im2col):
            raise EmulationError(f"im2col is an Im2col, not {type(self.im2col).__name__}")

    def _check_im2col(self, how: Im2col) -> None:
        rank = len(self.extents)
        if not 3 <= rank <= 5 or len(how.lower) != rank - 2 or len(how.upper) != rank - 2:
            raise EmulationError(
                "an im2col map has 3 to 5 dimensions and corners of two fewer, not "
                f"{rank}, {len(how.lower)} and {len(how.upper)}"
            )
        if not 1 <= how.channels <= 256 or not 1 <= how.pixels <= 1024:
            raise EmulationError("an im2col map moves 1 to 256 channels of 1 to 1024 pixels")
        inner = how.channels * self.element.bytes // self.element.count
        if inner % 16 or (self.swizzle and inner > self.swizzle):
            raise EmulationError(
                f"the channels of a pixel are a multiple of 16 bytes, at most the swizzle: {inner}"
            )

    @property
    def element(self) -> MapElement:
        if self.kind is not None:
            return ELEMENTS[NUMBERS[self.kind]]
        name = _BY_DTYPE.get(self.array.dtype.name, f"u{8 * self.array.itemsize}")
        if name not in NUMBERS:
            raise EmulationError(f"a tensor map has no elements of numpy's {self.array.dtype}")
        return ELEMENTS[NUMBERS[name]]

    @property
    def steps(self) -> tuple[int, ...]:
        return self.element_strides or (1,) * len(self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        return self.array.shape if self.shape is None else self.shape

    @property
    def pitches(self) -> tuple[int, ...]:
        return self.strides or self.array.strides

    def fields(self, address: int) -> MapFields:
        """What the map holds where the array lies at a generic address."""
        element = self.element
        sizes = [*reversed(self.extents)]
        if self.shape is None:
            sizes[0] = sizes[0] * self.array.itemsize * element.count // element.bytes
        return MapFields(
            address=address,
            element=NUMBERS[element.name],
            rank=len(self.extents),
            sizes=pad(sizes, 5, 1),
            strides=pad([*reversed(self.pitches)][1:], 4, 0),
            box=pad([*reversed(self.box)], 5, 1),
            steps=pad([*reversed(self.steps)], 5, 1),
            swizzle=SWIZZLES.index(self.swizzle),
            atom={16: 0, 32: 1, 64: 3}[self.atom],
            fill=int(self.fill == "nan"),
            im2col=None
            if self.im2col is None
            else Im2col(
                tuple(reversed(self.im2col.lower)),
                tuple(reversed(self.im2col.upper)),
                self.im2col.channels,
                self.im2col.pixels,
            ),
        )
