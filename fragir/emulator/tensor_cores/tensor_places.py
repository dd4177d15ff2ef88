"""Where tcgen05 finds what in tensor memory: 128 lanes of 512 columns of 32 bits for each block.

The maps are written out of the PTX ISA (9.1, section 9.7.16; figures of layouts A to G read with
the help of CUTLASS) and share nothing with the compiler's tables, with which tests compare them.
Lanes and columns count from those of the address, unless something else is said.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

LANES, COLUMNS = 128, 512
PARTITION = 32  # lanes that a warp reaches


class RegisterShape(NamedTuple):
    """A shape of ld and st: lanes that a warp accesses, registers and columns of `.x1`."""

    lanes: int
    registers: int
    columns: int


SHAPES: dict[str, RegisterShape] = {
    "32x32b": RegisterShape(32, 1, 1),
    "16x64b": RegisterShape(16, 1, 2),
    "16x128b": RegisterShape(16, 2, 4),
    "16x256b": RegisterShape(16, 4, 8),
    "16x32bx2": RegisterShape(16, 1, 1),
}


@cache
def register_places(shape: str, count: int, packed: bool, half: int = 0) -> tuple[Ints, Ints]:
    """(lane, column) of every element of the registers of ld and st: `[elements, 32]`.

    `count`: the N of `.xN`; `packed`: of pack::16b and unpack::16b, with two elements of 16 bits a
    register, in columns beside each other; `half`: the columns of immHalfSplitoff of 16x32bx2
    (section 9.7.16.2.3.1).
    """
    width = SHAPES[shape]
    r = np.arange(width.registers * count, dtype=np.int64)[:, None]
    t = np.arange(32, dtype=np.int64)[None, :]
    match shape:
        case "32x32b":
            lane, column = t + 0 * r, r + 0 * t
        case "16x64b":
            lane, column = t // 4 + 8 * (t % 2) + 0 * r, 2 * r + t // 2 % 2
        case "16x128b":
            lane, column = t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
        case "16x256b":
            lane, column = t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
        case _:
            lane, column = t % 16 + 0 * r, r + 0 * t
    if packed:
        lane = np.repeat(lane, 2, axis=0)
        column = (2 * column[:, None, :] + np.arange(2)[None, :, None]).reshape(lane.shape)
    if shape == "16x32bx2":
        column = column + half * (t // 16)
    return lane, column


# -- accumulators ----------------------------------------------------------------------------------


class Banks(NamedTuple):
    """The layout of D: row m of a block, and of A in tensor memory, lies in lane `lanes[b][m]`,
    where bank b holds the b-th part of the columns of D and a copy of A (section 9.7.16.10.5).
    """

    name: str
    lanes: tuple[Ints, ...]


def banks(rows: int, *, group: int, separate: bool, sparse: bool) -> Banks:
    """`rows`: of D that a block has; `separate`: the .ws form."""
    m = np.arange(rows, dtype=np.int64)
    match rows:
        case 128:
            return Banks("A" if group == 2 else "D", (m,))
        case 64 if separate or (group == 2 and not sparse):
            return Banks("E" if separate else "B", (m, m + 64))
        case 64:
            return Banks("C" if group == 2 else "F", (32 * (m // 16) + m % 16,))
        case _:
            return Banks("G", tuple(m + 32 * b for b in range(4)))


# -- scales and metadata ---------------------------------------------------------------------------


def scale_columns(rows: int, first: int, blocks: int) -> int:
    """Columns that the scales of so many rows take, `blocks` of each from byte `first` on."""
    return -(-rows // 32) + 4 * -(-rows // 128) * ((first + blocks - 1) // 4)


@cache
def scale_places(
    rows: int, first: int, blocks: int, *, halved: bool = False
) -> tuple[Ints, Ints, Ints]:
    """(lane, column, bit) of the scales of rows of A, or of columns of B: `[copies, rows, blocks]`.

    All copies must hold the same. `halved`: those of B where two blocks have M = 128: its halves
    lie in halves of the lanes (section 9.7.16.10.7).
    """
    r, b = np.arange(rows, dtype=np.int64)[:, None], first + np.arange(blocks)[None, :]
    step = 4 * -(-rows // 128)
    base = 0 * r
    copies = 4
    if halved:
        half = rows // 2
        base, r, copies, step = 64 * (r // half), r % half, 2, 4 * -(-half // 128)
    lanes = [base + r % 32 + 32 * copy + 0 * b for copy in range(copies)]
    column, bit = r // 32 + b // 4 * step, 8 * (b % 4) + 0 * r
    lane = np.stack(lanes)
    return lane, np.broadcast_to(column, lane.shape), np.broadcast_to(bit, lane.shape)


@cache
def metadata_places(lanes: bytes, chunks: int, selector: int) -> tuple[Ints, Ints, Ints]:
    """(lane, column, bit) of the nibble of every row and chunk: `[rows, chunks]`.

    `lanes`: int64, where the rows of A lie (`Banks`). 8 chunks are those of 16-bit and tf32
    elements, of which the selector of the instruction descriptor chooses one of several columns
    (section 9.7.16.10.8).
    """
    p = np.frombuffer(lanes, np.int64)[:, None]
    c = np.arange(chunks, dtype=np.int64)[None, :]
    if chunks == 8:
        lane = (p & ~31) | (p & 16) | p % 8 | 8 * (c // 4)
        return lane, np.full(lane.shape, selector), 16 * (p % 16 // 8) + 4 * (c % 4)
    lane = p + 0 * c
    return lane, c // 8 + 0 * p, 4 * (c % 8) + 0 * p


# -- copies ----------------------------------------------------------------------------------------


class CopyShape(NamedTuple):
    """Of cp: rows and 32-bit words of the source, and the lanes that each row goes to."""

    rows: int
    words: int
    lanes: tuple[Ints, ...]


@cache
def copy_shape(shape: str, multicast: str) -> CopyShape:
    """Section 9.7.16.9.2."""
    r = np.arange(128, dtype=np.int64)
    match shape, multicast:
        case "128x256b", _:
            return CopyShape(128, 8, (r,))
        case "128x128b", _:
            return CopyShape(128, 4, (r,))
        case "4x256b", _:
            return CopyShape(4, 8, (32 * r[:4],))
        case "64x128b", "warpx2::02_13":
            return CopyShape(64, 4, (r[:64], r[:64] + 64))
        case "64x128b", _:
            first = r[:64] % 32 + 64 * (r[:64] // 32)
            return CopyShape(64, 4, (first, first + 32))
        case _:
            return CopyShape(32, 4, tuple(r[:32] + 32 * w for w in range(4)))
