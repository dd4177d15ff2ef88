"""Marks on registers and memory of what depends on which arrays' contents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.planes import Plane
from fragir.emulator.machine.lanes import LANES, Row, Select
from fragir.emulator.numbers.types import U8, Array

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.memory import Arena, ArrayContents
    from fragir.emulator.machine.transfers import Transfer

_ONES = 0x0101_0101_0101_0101
#: Marks that there are. Every byte of memory, and of a register, has one bit of each; the highest
#: bit stays free, so that nothing is made of a sign.
_MARKS = 7


class Marks:
    """A plane whose bytes hold marks: those of memory each its own, those of a register all the
    same ones."""

    def __init__(self, machine: Machine, data: Iterable[ArrayContents]) -> None:
        self.machine = machine
        self.plane = Plane(machine, 0)
        files = self.plane.machine.files
        files[1] = np.zeros(files[1].shape, np.uint8)  # one bit would not do
        self.carry = np.zeros(files[1].shape[1:], np.uint8)
        names = list(dict.fromkeys(one.name for one in data))
        #: What each mark stands for: some arrays; the last one for all that are left.
        self.names = [[name] for name in names[: _MARKS - 1]]
        if len(names) >= _MARKS:
            self.names.append(names[_MARKS - 1 :])
        for one in data:
            mark = 1 << min(names.index(one.name), _MARKS - 1)
            self.plane.memory.globals.bytes[one.start : one.start + one.size] |= np.uint8(mark)

    def start_wave(self) -> None:
        self.plane.reset()
        self.carry[...] = 0

    def of(self, marks: int) -> list[str]:
        """The arrays that marks stand for."""
        found = (names for bit, names in enumerate(self.names) if marks >> bit & 1)
        return [name for names in found for name in names]

    def beside(self, arena: Arena) -> Arena:
        """Where the marks of a memory are."""
        real, memory = self.machine.memory, self.plane.memory
        if arena is real.shared:
            return memory.shared
        return memory.local if arena is real.local else memory.globals

    def join_transfer(self, transfer: Transfer) -> None:
        """A copy that adds to what is there: all its places have what any byte of it had."""
        memory = self.plane.memory
        assert transfer.reads is not None
        read = memory.shared.bytes.reshape(-1, 16)[transfer.reads >> 4]
        marks = np.bitwise_or.reduce(read, axis=None)
        if transfer.into is not None:
            into = transfer.into[:, None] + np.arange(transfer.grain)
            memory.shared.bytes[into] |= marks
        elif transfer.region is not None and len(transfer.region.starts):
            at, size = transfer.region.pieces()
            memory.globals.bytes[at[:, None] + np.arange(size)] |= marks


def folded(row: Array) -> U8:
    """The marks of registers that have them in all their bytes."""
    return row.astype(np.uint8)


def spread(marks: Array, row: Row) -> Array:
    """Marks in every byte of a register like `row`."""
    size = row.dtype.itemsize
    if size == 1:
        return marks
    return marks.astype(row.dtype) * row.dtype.type(_ONES >> 64 - 8 * size)


def even_out(row: Row, sel: Select) -> None:
    """Gives all bytes of a register the marks of any of them."""
    bits = 4 * row.dtype.itemsize
    some = row[sel]
    while bits >= 8:
        some = some | some >> row.dtype.type(bits)
        bits //= 2
    row[sel] = spread(folded(some), row)


def joined(rows: Iterable[Row], sel: Select) -> U8 | None:
    """The marks of some registers together, `[warp, lane]`; None where there are no registers."""
    found: U8 | None = None
    for row in rows:
        part = folded(row[sel])
        found = part if found is None else found | part
    return found


def over_warps(marks: U8) -> U8:
    """Each lane has those of all lanes of its warp."""
    return np.repeat(np.bitwise_or.reduce(marks, axis=1)[:, None], LANES, axis=1)
