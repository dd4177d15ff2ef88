"""The common case of an access to shared or global memory, in few calls of numpy.

Nobody else has been at the places that lanes access since a barrier of all. Used where
`CompiledLedgers`, which does more, is not there: what may have to be reported changes nothing and
is for the general way, and both leave the same records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.races.compiled import BY_NUMPY
from fragir.emulator.checks.races.ledger import READ, READ_ELSEWHERE, WRITE, Ledger, LedgerRows
from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT, record
from fragir.emulator.numbers.types import I32, I64, U32

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.groups import AccessGroup
    from fragir.emulator.checks.races.shared_places import SharedPlaces

#: Of a record what names the lane, and what the warp.
_LANE, _WARP = COLUMN_MASK, COLUMN_MASK >> 5 << 5


class UndisputedShared:
    """Accesses to shared memory."""

    def __init__(self, clocks: Clocks, shared: SharedPlaces) -> None:
        self.clocks, self.shared = clocks, shared

    @property
    def _settled(self) -> int:
        """The greatest record that a barrier of all has settled."""
        return (self.clocks.lowest + 1 << TIME_SHIFT) - 1

    def _places(self, group: AccessGroup, size: int) -> I64:
        """The places of a group, `[lane, part]`."""
        places = group.places
        if places is None:
            places = group.places = self.shared.places(group.at, size)
        return places

    def _columns(self, group: AccessGroup, places: I64) -> I64:
        """Where the reads of a group stand in the flat `read`."""
        columns = group.columns
        if columns is None:
            columns = group.columns = self.shared.columns_of(group, places)
        return columns

    def _written(self, places: I64, own: I64) -> bool:
        """Whether what has been written there is settled, or by those who access now."""
        if self.shared.newest_write <= self.clocks.lowest:
            return True
        found = self.shared.written[places]
        late = found > self._settled
        if not np.count_nonzero(late):
            return True
        late &= (found ^ own[:, None]) & _LANE != 0
        return not np.count_nonzero(late)

    def read(self, site: int, group: AccessGroup, size: int, strong: bool) -> bool:
        """A read; whether that was all."""
        shared, clocks = self.shared, self.clocks
        if not group.apart and group.pattern is None:
            return False
        places, own = self._places(group, size), group.pick(clocks.own)
        if not self._written(places, own):
            return False
        index = self._columns(group, places)
        mine = record(clocks.now, own, site, strong)
        if group.apart:
            bits = group.pick(shared.bit_of)
        else:
            which, bits = self._together(group, index)
            index, places, mine = index[which], places[which], mine[which]
        mine, bits = mine[:, None], bits[:, None]
        read, masks = shared.read.reshape(-1), shared.masks.reshape(-1)
        if shared.newest_read > clocks.lowest:
            before = read[index]
            late = before > self._settled
            if np.count_nonzero(late):
                late &= ((before ^ mine) & _WARP | masks[index] & ~bits) != 0
                if np.count_nonzero(late):
                    return False  # a read is pushed out
        read[index], masks[index] = mine, bits
        shared.read_time[places] = shared.newest_read = clocks.now
        return True

    def _together(self, group: AccessGroup, index: I64) -> tuple[I64, U32]:
        """Of lanes that read one place the last one, and the bits of all."""
        assert group.pattern is not None
        if group.pattern.together is None:
            first = index[:, 0]
            order = np.argsort(first, kind="stable")
            new = np.flatnonzero(np.diff(first[order], prepend=-1))
            last = order[np.append(new[1:], len(order)) - 1]
            bits = np.bitwise_or.reduceat(group.pick(self.shared.bit_of)[order], new)
            group.pattern.together = last, bits
        return group.pattern.together

    def write(self, site: int, group: AccessGroup, size: int, strong: bool, time: int) -> int:
        """A write: BY_NUMPY, or 0 where that was all."""
        shared = self.shared
        if strong or shared.log.entries or not group.apart:
            return BY_NUMPY
        places, own = self._places(group, size), group.pick(self.clocks.own)
        if not self._written(places, own) or not self._read(group, places, own):
            return BY_NUMPY
        shared.written[places] = record(time, own, site)[:, None]
        shared.written_at(time)
        return 0

    def _read(self, group: AccessGroup, places: I64, own: I64) -> bool:
        """Whether what has been read there is settled, or by those who write now."""
        shared, lowest = self.shared, self.clocks.lowest
        if shared.newest_read <= lowest:
            return True
        if not np.count_nonzero(shared.read_time[places] > lowest):
            return True
        index, settled = self._columns(group, places), self._settled
        found = shared.read.reshape(-1)[index]
        late = found > settled
        if np.count_nonzero(shared.read[:, places] > settled) > np.count_nonzero(late):
            return False
        alone = shared.masks.reshape(-1)[index] == group.pick(shared.bit_of)[:, None]
        alone &= (found ^ own[:, None]) & _LANE == 0
        return not np.count_nonzero(late & ~alone)


class UndisputedGlobal:
    """Accesses to global memory."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks

    def access(
        self,
        kind: str,
        site: int,
        group: AccessGroup,
        size: int,
        scope: int,
        ledger: Ledger,
        owner_of: I32,
        updates: bool,
    ) -> int:
        """An access to one buffer: BY_NUMPY, or 0 where that was all.

        `updates`: whether it matters which lane of a warp has written.
        """
        how = READ if kind == "load" else WRITE
        if ledger.table is not None or not (
            group.apart or (how == READ and group.pattern is not None and self._one_cluster(group))
        ):
            return BY_NUMPY
        rows = _rows(group, ledger, size)
        if rows is None:
            return BY_NUMPY
        mine = record(self.clocks.now, group.pick(self.clocks.own), site, scope > 0)[:, None]
        owner = group.pick(owner_of)[:, None]
        like = group.like
        again = like is not None and ledger.last[how] == like
        if not _alone(ledger, WRITE, rows, mine, owner, like, _LANE if updates else _WARP):
            return BY_NUMPY
        if how == READ:
            if ledger.noted[READ] and not again:
                before = rows.of(ledger.owners[READ])
                if np.count_nonzero(before) and np.count_nonzero(before ^ owner):
                    return BY_NUMPY  # it may be of another cluster
        elif not (
            _alone(ledger, READ, rows, mine, owner, like, _WARP)
            and _alone(ledger, READ_ELSEWHERE, rows, mine, owner, like, _WARP)
        ):
            return BY_NUMPY
        rows.put(ledger.records[how], mine)
        if not again:
            rows.put(ledger.owners[how], owner)
        ledger.last[how] = like
        return 0

    def _one_cluster(self, group: AccessGroup) -> bool:
        """Whether all lanes, which ascend, are of one cluster."""
        first, last = group.lanes.item(0), group.lanes.item(-1)
        return first // self.clocks.lanes == last // self.clocks.lanes


def _rows(group: AccessGroup, ledger: Ledger, size: int) -> LedgerRows | None:
    """Those of a group in a ledger without pages; None where some lie elsewhere, or places would
    have to be smaller."""
    known: tuple[Ledger, int, LedgerRows] | None = group.rows
    if known is not None and known[0] is ledger and known[1] == ledger.shift:
        return known[2]
    (low, high), count = group.ends, len(group.at)
    if low < ledger.start or high + size > ledger.start + ledger.size:
        return None
    if size & (1 << ledger.shift) - 1:
        return None
    shape = count, size >> ledger.shift
    if group.ascends and high - low == (count - 1) * size:
        first = low - ledger.start >> ledger.shift
        rows = LedgerRows(shape, slice(first, first + count * shape[1]))
    else:
        rows = LedgerRows(shape, None, ledger.places(group.at, size))
    group.rows = ledger, ledger.shift, rows
    return rows


def _alone(
    ledger: Ledger,
    kind: int,
    rows: LedgerRows,
    mine: Any,
    owner: Any,
    like: tuple[int, int] | None,
    part: int,
) -> bool:
    """Whether the last accesses of a kind are of those who access now, or of nobody: `part`: of
    a record what is compared."""
    if not ledger.noted[kind] or (like is not None and ledger.last[kind] == like):
        return True
    owners = rows.of(ledger.owners[kind])
    if not np.count_nonzero(owners):
        return True
    differ = (rows.of(ledger.records[kind]) ^ mine) & part
    differ |= owners ^ owner
    return not np.count_nonzero(differ)
