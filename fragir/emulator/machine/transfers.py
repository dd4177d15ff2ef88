"""What is on its way: cp.async of many lanes, bulk copies of one, a wgmma as it was issued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.arena import Footprint
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.numbers.types import I64, distinct
from fragir.emulator.tensor_cores import Wgmma
from fragir.ptx import tree

_PIECE = 16  # bytes: bulk copies are made of these


@dataclass(slots=True)
class Copy:
    """One cp.async of many lanes: `size` bytes each from `source` to `into` (byte positions).

    `lanes`: flat lane numbers; `groups`: the cp.async group of each (their own numbering);
    `given`: bytes that are really read, the rest is zero (None: all).
    """

    source: I64
    into: I64
    size: int
    given: npt.NDArray[np.int64] | None
    lanes: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int32]
    low: int
    high: int
    number: int = 0  # in the order of issue

    def part(self, which: npt.NDArray[np.bool_]) -> Copy:
        groups = self.groups[which]
        given = None if self.given is None else self.given[which]
        low, high = int(groups.min()), int(groups.max())
        return Copy(
            self.source[which],
            self.into[which],
            self.size,
            given,
            self.lanes[which],
            groups,
            low,
            high,
            self.number,
        )

    def move(self, memory: DeviceMemory) -> None:
        """Copy the bytes within a memory."""
        width = min(self.size, 8)
        count = self.size // width
        if self.given is None:
            data = memory.globals.gather(self.source, width, count)
        else:
            whole = self.given == self.size
            source = np.where(whole, self.source, self.source[whole][0] if whole.any() else 0)
            data = memory.globals.gather(source, width, count)
            data = np.where(whole[..., None] if count > 1 else whole, data, data.dtype.type(0))
            for index in np.flatnonzero(~whole & (self.given > 0)):
                number = int(self.given.flat[index])
                start = int(self.source.flat[index])
                part = np.zeros(self.size, np.uint8)
                part[:number] = memory.globals.bytes[start : start + number]
                if (footprint := memory.globals.footprint) is not None:
                    footprint.note_read(self.source.flat[index : index + 1], self.size)
                where = np.unravel_index(index, self.given.shape)
                data[where] = part.view(data.dtype) if count > 1 else part.view(data.dtype)[0]
        memory.shared.scatter(self.into, width, count, data)


@dataclass(slots=True)
class Arrival:
    """An mbarrier arrival that waits for the earlier cp.async of its lanes."""

    at: I64
    lanes: npt.NDArray[np.int64]
    raise_first: bool
    number: int  # copies with lower numbers were issued before


@dataclass(frozen=True, slots=True)
class Region:
    """What a bulk copy accesses of global memory: runs of `size` bytes (byte positions)."""

    starts: I64
    size: int

    def pieces(self) -> tuple[I64, int]:
        """(positions, bytes of each): pieces of up to 16 bytes that are multiples of their size."""
        starts, size = self.starts, self.size
        if size < _PIECE:
            breaks = np.flatnonzero(np.diff(starts) != size) + 1
            begin = starts[np.concatenate([[0], breaks])]
            ends = starts[np.concatenate([breaks - 1, [len(starts) - 1]])] + size
        else:
            begin, ends = starts, starts + size
        bits = int(np.bitwise_or.reduce(begin) | np.bitwise_or.reduce(ends) | _PIECE)
        unit = bits & -bits
        if size >= unit:
            starts = (starts[:, None] + np.arange(0, size, unit)).ravel()
        return distinct(starts // unit) * unit, unit


@dataclass(frozen=True, slots=True)
class RowOverrun:
    """`size` bytes behind the end of each row, the first at `first` (a byte position).

    `owned`: whether some lie in a buffer, not only behind its end.
    """

    first: int
    size: int
    owned: bool


@dataclass(slots=True)
class Transfer:
    """A bulk copy of one lane.

    `move` moves the bytes of a memory (the machine's own, or one that stands beside it); `into`
    and `reads` are the chunks of shared memory that it writes (`grain` bytes each) or reads (16).
    `exact`: where it reads only some bytes of these chunks, which (positions). `region`: what it
    reads or writes of global memory.
    A load signals `size` bytes to the mbarrier at `signal`; a store belongs to bulk group `group`
    of its thread. `generic`: not of the asynchronous proxy (st.async, red.async). `atomic`: adds
    to what is there, in any order with others that do. `reduction`: what it does with what is
    there, and the type of its elements. `shares`: the region that one copy of a multicast stands
    for, where that is not this one.
    """

    move: Callable[[DeviceMemory], None]
    lanes: npt.NDArray[np.int64]
    into: I64 | None
    what: str
    group: int = -1  # -1: completes on an mbarrier
    reads: I64 | None = None
    signal: int = -1
    size: int = 0
    grain: int = 16
    generic: bool = False
    atomic: bool = False
    reduction: tuple[str, str] | None = None
    exact: I64 | None = None
    region: Region | None = None
    shares: Region | None = None
    overrun: RowOverrun | None = None

    def note(self, footprint: Footprint | None) -> None:
        """Notes what it reads or writes of global memory."""
        region = self.region or self.shares
        if footprint is None or region is None or not len(region.starts) or region.size <= 0:
            return
        write = self.group >= 0
        (footprint.note_written if write else footprint.note_read)(*region.pieces())

    @property
    def poisons(self) -> bool:
        """Whether its destination must not be touched while it is pending."""
        return self.into is not None and not self.atomic


# -- issues ----------------------------------------------------------------------------------------
# One wgmma on its way: what is constant in the text, and what was given at its issue.

WARPGROUP = 4
_EACH = np.arange(WARPGROUP)


@dataclass(frozen=True, slots=True)
class WgmmaStatement:
    """What is constant in one wgmma of the text."""

    op: Wgmma
    d: npt.NDArray[np.intp]  # rows of the 32-bit register file
    a: npt.NDArray[np.intp] | None  # None: A is in shared memory
    options: dict[str, Any]
    place: tuple[str | None, int | None, int | None]  # file, line, column in the PTX
    instruction: tree.Instruction
    names: dict[int, str]  # row -> the register's name in the text

    @property
    def touched(self) -> npt.NDArray[np.intp]:
        """The rows of all its registers."""
        return self.d if self.a is None else np.concatenate([self.d, self.a])

    def name(self, row: int) -> str:
        return self.names.get(row, "a register")


@dataclass(frozen=True, slots=True)
class Issue:
    """One wgmma of some warpgroups, not executed yet. Arrays run along the warpgroups."""

    form: WgmmaStatement
    warps: npt.NDArray[np.intp]  # the first warp of each warpgroup
    groups: npt.NDArray[np.int64]  # number of the commit group it belongs to
    a: npt.NDArray[np.uint64] | None
    b: npt.NDArray[np.uint64]
    scale: npt.NDArray[np.bool_]
    meta: npt.NDArray[np.uint32] | None

    def part(self, which: npt.NDArray[np.bool_]) -> Issue:
        return replace(
            self,
            warps=self.warps[which],
            groups=self.groups[which],
            a=None if self.a is None else self.a[which],
            b=self.b[which],
            scale=self.scale[which],
            meta=None if self.meta is None else self.meta[:, which],
        )


def expand(first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """All warps of the warpgroups that begin at `first`."""
    return (first[:, None] + _EACH).ravel()
