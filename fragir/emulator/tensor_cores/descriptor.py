"""Shared-memory operands of wgmma: from a matrix descriptor to the bytes that are read.

The descriptor (PTX ISA 9.7.15.5.1.2.2) holds, in units of 16 bytes, the start address (bits 13:0)
and two strides (29:16 "leading", 45:32 "stride"), a base offset (51:49) and the swizzle mode
(63:62: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes). Memory is addressed in chunks of 16 bytes; in
the swizzled modes, W = 2, 4 or 8 chunks form a row of the pattern, and the chunk number is XORed
with the number of the 128-byte line it lies in. The XOR acts on the final address, so that it does
not matter where in a pattern the start address lies; the base offset says by how many lines the
pattern itself is displaced from a multiple of 1024 bytes (of 512, 256 for the narrower modes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import U8, U32, U64

Ints: TypeAlias = npt.NDArray[np.int64]

# Swizzle field -> chunks of 16 bytes in a row of the pattern.
_WIDTH = np.array([1, 8, 4, 2], np.int64)
# Shared addresses in a descriptor have 18 bits.
_WINDOW = 0x3FFFF


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The fields of G descriptors, in bytes; `width` in chunks of 16 bytes: 1, 2, 4 or 8."""

    start: Ints
    leading: Ints
    stride: Ints
    base: Ints
    width: Ints

    @staticmethod
    def read(words: U64) -> Descriptors:
        """`words`: any shape; the fields get one more dimension of extent 1 at the end, twice."""
        bits = words[:, None, None]

        def field(low: int, count: int) -> Ints:
            return (bits >> np.uint64(low) & np.uint64((1 << count) - 1)).astype(np.int64)

        return Descriptors(
            field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4, field(49, 3),
            _WIDTH[field(62, 2)],
        )  # fmt: skip


def chunk_addresses(
    words: U64, rows: int, depth_bytes: int, *, element_bytes: int, transposed: bool
) -> U32:
    """Addresses of the 16-byte chunks of an operand: `u32[G, A, B]`.

    `rows`: M or N. K-major (not `transposed`): chunk [row, j] holds the row's bytes 16j.. along K,
    of `depth_bytes` in all. MN-major (16-bit elements): chunk [k, j] holds elements 8j.. of the
    MN dimension at k. The 16-byte steps follow the canonical layouts of PTX ISA 9.7.15.5.1.2.
    """
    return _chunk_addresses(words.tobytes(), rows, depth_bytes, element_bytes, transposed)


@lru_cache(maxsize=64)
def _chunk_addresses(
    words: bytes, rows: int, depth_bytes: int, element_bytes: int, transposed: bool
) -> U32:
    """The same, once for what comes again: a ring's slots."""
    fields = Descriptors.read(np.frombuffer(words, np.uint64))
    width, leading, stride = fields.width, fields.leading, fields.stride
    plain = width == 1
    if not transposed:
        row = np.arange(rows)[None, :, None]
        chunk = np.arange(depth_bytes // 16)[None, None, :]
        # Without swizzle a core matrix is 8 rows of 16 bytes, and `leading` goes to the next 16
        # bytes of K. With swizzle a row of the pattern holds all of K, and `leading` is unused.
        offset = np.where(
            plain,
            16 * (row % 8) + stride * (row // 8) + leading * chunk,
            16 * width * (row % 8) + stride * (row // 8) + 16 * chunk,
        )
    else:
        depth = depth_bytes // element_bytes
        k = np.arange(depth)[None, :, None]
        chunk = np.arange(rows * element_bytes // 16)[None, None, :]
        offset = np.where(
            plain,
            stride * chunk + 16 * (k % 8) + leading * (k // 8),
            16 * (chunk % width)
            + leading * (chunk // width)
            + 16 * width * (k % 8)
            + stride * (k // 8),
        )
    address = fields.start + offset
    line = (address >> 7) - fields.base
    address = address ^ ((line & (width - 1)) << 4)
    result = (address & _WINDOW).astype(np.uint32)
    result.flags.writeable = False
    return result


# The fields that say where bytes lie, by their lowest bits; each has 14.
_PLACES = {"start address": 0, "leading dimension": 16, "stride dimension": 32}


def descriptor_text(word: int) -> str:
    """The fields of a descriptor in words, in bytes."""
    fields = Descriptors.read(np.array([word], np.uint64))
    start, leading, stride, base, width = (
        int(field.item())
        for field in (fields.start, fields.leading, fields.stride, fields.base, fields.width)
    )
    swizzle = f"swizzle {16 * width}" if width > 1 else "no swizzle"
    offset = f", base offset {base}" if base else ""
    return (
        f"descriptor {word:#018x}: start {start}, leading {leading}, stride {stride}, "
        f"{swizzle}{offset}"
    )


def leads_beyond(word: int, size: int, addresses: Callable[[U64], U32]) -> list[str]:
    """The fields that alone lead beyond `size` bytes: with one of them zero all lies inside.

    `addresses` gives the chunks of descriptors, as `chunk_addresses` does.
    """

    def inside(bit: int) -> bool:
        other = word & ~(0x3FFF << bit)
        return other != word and int(addresses(np.array([other], np.uint64)).max()) + 16 <= size

    return [name for name, bit in _PLACES.items() if inside(bit)]


def elements(data: U8, bits: int, *, transposed: bool) -> npt.NDArray[np.uint32]:
    """Bytes of the chunks `[G, A, B, 16]` -> element bits `[G, k, mn]` (`bits` 1, 8, 16, 32)."""
    groups, first = data.shape[:2]
    flat = np.ascontiguousarray(data).reshape(groups, first, -1)
    match bits:
        case 1:
            units = np.unpackbits(flat, axis=-1, bitorder="little")
        case 8:
            units = flat
        case 16:
            units = flat.view(np.uint16)
        case _:
            units = flat.view(np.uint32)
    return (units if transposed else units.transpose(0, 2, 1)).astype(np.uint32)
