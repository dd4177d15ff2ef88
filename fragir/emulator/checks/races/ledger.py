"""The last accesses to every place of one buffer of global memory.

Of every place the last write, the last read, and the last read by another cluster are kept. Small
buffers have a row for each place. Of large ones only pages that somebody has touched have rows: a
*row* is what accesses are noted in, a place is where they lie.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import COLUMN_MASK
from fragir.emulator.numbers.types import I32, I64, Array, Bools

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Region

#: What of a place is kept: the last write, the last read, the last read of another cluster.
WRITE, READ, READ_ELSEWHERE = range(3)
#: Rows of all buffers of a launch together; a row has 36 bytes.
ROOM = 1 << 26
#: Places of a buffer that has a row for each of them.
SMALL = 1 << 22
#: A page is 64 KiB of a buffer.
PAGE_SHIFT = 16
#: Bulk copies of a buffer whose reads are kept until somebody writes to it.
LATEST = 4096


class LedgerRoom:
    """How many rows a launch may still have."""

    def __init__(self, rows: int = ROOM) -> None:
        self.left = rows

    def take(self, rows: int) -> bool:
        """Whether there are so many; then they are taken."""
        if rows > self.left:
            return False
        self.left -= rows
        return True


class LedgerRows:
    """The rows `[access, part]` of a ledger: neighbours, or by number."""

    __slots__ = ("index", "shape", "span")

    def __init__(
        self, shape: tuple[int, int], span: slice | None, index: I64 | None = None
    ) -> None:
        self.shape, self.span, self.index = shape, span, index

    def of(self, values: Array) -> Array:
        """What an array has for them."""
        if self.span is None:
            return values[self.index]
        return values[self.span].reshape(self.shape)

    def put(self, values: Array, new: npt.ArrayLike) -> None:
        """Write into an array, for every access or every part."""
        if self.span is None:
            values[self.index] = new
        else:
            values[self.span].reshape(self.shape)[...] = new


class Ledger:
    """A place is the smallest access so far. Positions are those of the global arena.

    `full` is called once, when there is no room for a page: what is accessed there is followed no
    more. `forgets`: when reads of bulk copies are forgotten that a write should have known of, with
    their number.
    """

    def __init__(
        self,
        start: int,
        size: int,
        room: LedgerRoom | None = None,
        full: Callable[[], None] | None = None,
        forgets: Callable[[int], None] | None = None,
    ) -> None:
        self.start, self.size, self.shift = start, size, 4
        self.room = room or LedgerRoom()
        self._full, self._forgets = full, forgets
        #: Of what kinds anything has been noted.
        self.noted = [False, False, False]
        #: By kind `AccessGroup.like` of the last access, where it has noted all that is there of it
        #: in this wave.
        self.last: list[tuple[int, int] | None] = [None, None, None]
        #: What bulk copies have read while nothing was written: region, record, owner.
        self.copied: deque[tuple[Region, int, int]] = deque(maxlen=LATEST)
        self._copies = 0  # so many were put there
        self._begin()

    # -- rows --------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Rows of nothing."""
        count = (self.size >> self.shift) + 1
        self.forget_last()
        #: Of every page its first row, in pages; -1: it has none. None: a row is a place.
        self.table: I64 | None = None
        self.pages: I64 = np.zeros(0, np.int64)  # and the page of every one that has
        if count > SMALL or not self.room.take(count):
            self.table = np.full((self.size >> PAGE_SHIFT) + 1, -1, np.int64)
            count = 0
        self._allocate(count)
        self.rows_taken = count

    def _allocate(self, count: int) -> None:
        self.records: I64 = np.zeros((3, count), np.int64)
        self.owners: I32 = np.zeros((3, count), np.int32)

    def forget_last(self) -> None:
        """What was done last is not known, or is another wave's."""
        self.last[:] = None, None, None

    @property
    def is_written(self) -> bool:
        """Whether anybody has written there."""
        return self.noted[WRITE]

    @property
    def page_rows(self) -> int:
        """The rows of a page."""
        return 1 << PAGE_SHIFT - self.shift

    def refine(self, shift: int) -> None:
        """Make places smaller."""
        times = 1 << (self.shift - shift)
        if not any(self.noted):
            self.room.left += self.rows_taken
            self.shift = shift
            self._begin()
            return
        if self.table is None and (self.size >> shift) + 1 > SMALL:
            self._become_pages()
        more = self.rows_taken * (times - 1)
        if self.room.take(more):
            self.records = np.repeat(self.records, times, axis=1)
            self.owners = np.repeat(self.owners, times, axis=1)
            self.shift = shift
            self.rows_taken += more
            return
        # No room for finer places: what was known of coarse ones would accuse the innocent.
        self._refuse()
        self.room.left += self.rows_taken
        self.shift, self.noted = shift, [False, False, False]
        self._begin()

    def _become_pages(self) -> None:
        """From a row for each place to pages of those that have been accessed."""
        rows = self.page_rows
        count = (self.size >> PAGE_SHIFT) + 1
        used = np.flatnonzero(self.owners.any(axis=0))
        self.pages = np.unique(used // rows)
        self.table = np.full(count, -1, np.int64)
        self.table[self.pages] = np.arange(len(self.pages))
        records, owners = self.records, self.owners
        self._allocate(len(self.pages) * rows)
        there = self.table[used // rows] * rows + used % rows
        self.records[:, there] = records[:, used]
        self.owners[:, there] = owners[:, used]
        self.room.left += self.rows_taken
        self.rows_taken = self.records.shape[1]
        self.room.left -= self.rows_taken

    def _refuse(self) -> None:
        if self._full is not None:
            self._full()
            self._full = None

    def _make_pages(self, wanted: I64) -> None:
        """Rows for pages that have none; as many as there is room for."""
        assert self.table is not None
        rows = self.page_rows
        fit = min(len(wanted), self.room.left // rows)
        if fit < len(wanted):
            self._refuse()
        if not fit:
            return
        self.room.take(fit * rows)
        used = len(self.pages) * rows
        self.rows_taken = used + fit * rows
        if self.rows_taken > self.records.shape[1]:  # twice as many: fewer copies
            records, owners = self.records, self.owners
            self._allocate(max(self.rows_taken, 2 * used))
            self.records[:, :used] = records[:, :used]
            self.owners[:, :used] = owners[:, :used]
        self.table[wanted[:fit]] = len(self.pages) + np.arange(fit)
        self.pages = np.concatenate([self.pages, wanted[:fit]])

    def rows(self, at: I64, size: int) -> tuple[I64, Bools | None]:
        """The rows `[access, part]` of accesses of `size` bytes, and which accesses have any.

        None: all of them. An access lies in one page: its address is a multiple of its size.
        """
        shift = (size & -size).bit_length() - 1
        if shift < self.shift:
            self.refine(shift)
        offset = at - self.start
        table, kept = self.table, None
        if table is None:
            first = offset >> self.shift
        else:
            page = offset >> PAGE_SHIFT
            slot = table[page]
            if (slot < 0).any():
                self._make_pages(np.unique(page[slot < 0]))
                slot = table[page]
                if (slot < 0).any():
                    kept = slot >= 0
                    slot, offset = slot[kept], offset[kept]
            inside = offset & (1 << PAGE_SHIFT) - 1
            first = (slot << PAGE_SHIFT - self.shift) + (inside >> self.shift)
        parts = size >> self.shift
        if parts <= 1:
            return first[:, None], kept
        return first[:, None] + np.arange(parts), kept

    def places(self, at: I64, size: int) -> I64:
        """The rows of accesses that all have some."""
        return self.rows(at, size)[0]

    def position(self, row: I64) -> I64:
        """The byte positions where the places of rows begin."""
        if self.table is None:
            return self.start + (row << self.shift)
        rows = self.page_rows
        return self.start + (self.pages[row // rows] << PAGE_SHIFT) + (row % rows << self.shift)

    def accessed_places(self, kind: int) -> tuple[I64, int]:
        """(byte positions, bytes of each) of the places with an access of a kind."""
        return self.position(np.flatnonzero(self.owners[kind])), 1 << self.shift

    # -- accesses ----------------------------------------------------------------------------------

    def note_read(self, rows: I64, mine: I64, owner: I32, apart: bool = False) -> None:
        """`mine`, `owner`: one for each access; `apart`: no two access one place."""
        self.last[READ] = None
        records, owners = self.records[READ], self.owners[READ]
        who, rec = owner[:, None], mine[:, None]
        if self.noted[READ]:
            before = owners[rows]
            moved = before != who
            moved &= before != 0
            if moved.any():
                there = rows[moved]
                self._elsewhere(there, records[there], before[moved])
        self.noted[READ] = True
        records[rows] = rec
        owners[rows] = who
        if apart:
            return
        lost = owners[rows] != who
        if lost.any():
            there = rows[lost]
            rec, who = np.broadcast_to(rec, rows.shape), np.broadcast_to(who, rows.shape)
            self._elsewhere(there, rec[lost], who[lost])

    def _elsewhere(self, rows: I64, records: I64, owners: I32) -> None:
        self.noted[READ_ELSEWHERE] = True
        self.records[READ_ELSEWHERE, rows] = records
        self.owners[READ_ELSEWHERE, rows] = owners

    def note_write(self, rows: I64, mine: I64, owner: I32, apart: bool = False) -> bool:
        """Whether several lanes write one place."""
        self.noted[WRITE], self.last[WRITE] = True, None
        records, owners = self.records[WRITE], self.owners[WRITE]
        records[rows] = mine[:, None]
        owners[rows] = owner[:, None]
        if apart:
            return False
        differ = (records[rows] ^ mine[:, None]) & COLUMN_MASK != 0
        return bool((differ | (owners[rows] != owner[:, None])).any())

    def note_copy(self, region: Region, rec: int, owner: int) -> None:
        """A bulk copy reads; `note_copied` notes it where it may matter."""
        self.copied.append((region, rec, owner))
        self._copies += 1

    def note_copied(self) -> None:
        """Before the buffer is written: note what bulk copies have read, the latest of them."""
        if self._forgets is not None and self._copies > len(self.copied):
            self._forgets(self._copies - len(self.copied))
        for region, rec, owner in self.copied:
            rows, _ = self.rows(*region.pieces())
            mine = np.full(len(rows), rec, np.int64)
            self.note_read(rows, mine, np.full(len(rows), owner, np.int32))
        self.copied.clear()
        self._copies = 0

    def others(self, rows: I64, mine: I64, owner: I32) -> Bools:
        """Which accesses have written places where another lane was the last to write."""
        last, by = self.records[WRITE, rows], self.owners[WRITE, rows]
        apart = (last ^ mine[:, None]) & COLUMN_MASK != 0
        return (apart | (by != owner[:, None])).any(axis=1)
