"""Operands of tcgen05 in shared memory: from a matrix descriptor to elements.

The descriptor (PTX ISA 9.1, section 9.7.16.4.1) holds, in units of 16 bytes, the start (13:0), the
leading (29:16) and the stride (45:32) offset; 0b001 (48:46), a base offset (51:49), how the leading
offset is meant (52) and the swizzle (63:61: 0 none, 1 128 bytes in atoms of 32, 2 128 bytes, 4 64,
6 32). Its XOR acts on absolute addresses. Memory is read in chunks of 16 bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import U8, U32
from fragir.emulator.tensor_cores.matrix import unpack_elements

CHUNK = 16
_WINDOW = 0x3FFFF  # shared addresses in a descriptor have 18 bits
#: By the swizzle field: bits that are exchanged, and bytes of an atom.
_MODES: dict[int, tuple[int, int]] = {0: (0, 16), 1: (2, 32), 2: (3, 16), 4: (2, 16), 6: (1, 16)}


class MatrixFields(NamedTuple):
    """A descriptor taken apart, in bytes."""

    start: int
    leading: int
    stride: int
    version: int
    base: int
    absolute: int
    reserved: int
    swizzle: int

    @classmethod
    def read(cls, word: int) -> MatrixFields:
        def field(low: int, count: int) -> int:
            return word >> low & ((1 << count) - 1)

        offsets = field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4
        reserved = field(14, 2) | field(30, 2) | field(53, 8)
        return cls(*offsets, field(46, 3), field(49, 3), field(52, 1), reserved, field(61, 3))

    @property
    def problem(self) -> str:
        """Why it has no meaning; "" where it has one."""
        if self.swizzle not in _MODES:
            return f"the swizzle mode {self.swizzle} means nothing"
        if self.version != 1:
            return f"bits 48:46 are {self.version}, and must be 1"
        if self.reserved:
            return "reserved bits are set"
        return ""

    def __str__(self) -> str:
        bits, atom = _MODES.get(self.swizzle, (0, 16))
        swizzle = f"swizzle {atom << bits}" if bits else "no swizzle"
        swizzle += " in atoms of 32 bytes" if atom == 32 else ""
        return f"start {self.start}, leading {self.leading}, stride {self.stride}, {swizzle}"


@lru_cache(maxsize=256)
def chunk_addresses(word: int, outer: int, inner: int, *, mn_major: bool, width: int) -> U32:
    """Offsets in the window of shared memory of an operand's chunks: `u32[outer, inner]`.

    K-major: rows of M or N by chunks along K. MN-major: elements along K, of `width` bytes, by
    chunks along M or N.
    """
    fields = MatrixFields.read(word)
    bits, atom = _MODES[fields.swizzle]
    line = atom << bits  # bytes of a row of the pattern
    row = np.arange(outer, dtype=np.int64)[:, None]
    at = CHUNK * np.arange(inner, dtype=np.int64)[None, :]
    if not mn_major:
        along = at if bits else fields.leading * (at // CHUNK)
        offset = row % 8 * line + row // 8 * fields.stride + along
    else:
        group = 4 if fields.swizzle == 1 else 8
        across, deep = (fields.leading, fields.stride) if bits else (fields.stride, fields.leading)
        offset = at % line + at // line * across + row % group * line + row // group * deep
    address = fields.start + offset
    turn = (address >> 7) - fields.base & ((1 << bits) - 1)
    address = address ^ turn * atom
    result = (address & _WINDOW).astype(np.uint32)
    result.flags.writeable = False
    return result


def elements(data: U8, bits: int, *, mn_major: bool, padded: bool) -> npt.NDArray[np.uint32]:
    """Chunks `[outer, inner, 16]` as element codes `[k, m or n]`.

    `padded`: 16 elements of `bits` bits fill a chunk, whatever their size; else they are dense.
    """
    if padded:
        units = data if bits == 8 else unpack_elements(data, bits)
    elif bits == 4:
        units = np.stack([data & 15, data >> 4], axis=-1)
    else:
        units = np.ascontiguousarray(data).view(f"u{bits // 8}")
    flat = units.reshape(len(data), -1)
    return np.ascontiguousarray(flat if mn_major else flat.T).astype(np.uint32)


def decompressed(data: U8, bits: int) -> U8:
    """Chunks `[..., 16]` as cp writes them with b4x16_p64 (4 bits) or b6x16_p32: a byte an element,
    those of 4 bits two bits up."""
    found = unpack_elements(data, bits)
    return found << np.uint8(2) if bits == 4 else found
