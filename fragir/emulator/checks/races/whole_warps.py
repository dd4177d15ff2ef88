"""The common case of an access to shared or global memory, in few calls of numpy.

All lanes of neighbouring warps access places of their own, and nobody else has been there since a
barrier of all. Used where `CompiledLedgers`, which does more, is not there: what may have to be
reported changes nothing and is for the general way, and both leave the same records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.races.compiled import BY_NUMPY
from fragir.emulator.checks.races.ledger import READ, READ_ELSEWHERE, WRITE, Ledger, LedgerRows
from fragir.emulator.checks.races.records import COLUMN_MASK, record
from fragir.emulator.numbers.types import I32, I64

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.groups import AccessGroup
    from fragir.emulator.checks.races.shared_places import SharedPlaces

#: Of a record what names the lane, and what the warp.
_LANE, _WARP = COLUMN_MASK, COLUMN_MASK >> 5 << 5


class WholeWarpsShared:
    """Accesses to shared memory."""

    def __init__(self, clocks: Clocks, shared: SharedPlaces) -> None:
        self.clocks, self.shared = clocks, shared

    def _settled(self, places: I64) -> bool:
        """Whether a barrier has made all that was done there known to everybody."""
        shared, lowest = self.shared, self.clocks.lowest
        if shared.newest_write > lowest and not self.clocks.settled(shared.written[places]):
            return False
        late = shared.newest_read > lowest
        return not late or not np.count_nonzero(shared.read_time[places] > lowest)

    def _places(self, group: AccessGroup, size: int) -> I64:
        """The places of a group, `[lane, part]`."""
        places = group.places
        if places is None:
            places = group.places = self.shared.places(group.at, size)
        return places

    def read(self, site: int, group: AccessGroup, size: int, strong: bool) -> bool:
        """A read; whether that was all."""
        shared, clocks = self.shared, self.clocks
        if group.whole is None or not group.apart:
            return False
        places = self._places(group, size)
        if not self._settled(places):
            return False
        index = group.columns
        if index is None:
            index = group.columns = shared.columns_of(group, places)
        mine = record(clocks.now, group.pick(clocks.own), site, strong)
        shared.read.reshape(-1)[index] = mine[:, None]
        shared.masks.reshape(-1)[index] = group.pick(shared.bit_of)[:, None]
        shared.read_time[places] = shared.newest_read = clocks.now
        return True

    def write(self, site: int, group: AccessGroup, size: int, strong: bool, time: int) -> int:
        """A write: BY_NUMPY, or 0 where that was all."""
        shared = self.shared
        if strong or group.whole is None or shared.log.entries or not group.apart:
            return BY_NUMPY
        places = self._places(group, size)
        if not self._settled(places):
            return BY_NUMPY
        mine = record(time, group.pick(self.clocks.own), site)
        shared.written[places] = mine[:, None]
        shared.written_at(time)
        return 0


class WholeWarpsGlobal:
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
        if group.whole is None or ledger.table is not None or not group.apart:
            return BY_NUMPY
        rows = _rows(group, ledger, size)
        if rows is None:
            return BY_NUMPY
        mine = record(self.clocks.now, group.pick(self.clocks.own), site, scope > 0)[:, None]
        owner = group.pick(owner_of)[:, None]
        like, how = group.like, READ if kind == "load" else WRITE
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


def _rows(group: AccessGroup, ledger: Ledger, size: int) -> LedgerRows | None:
    """Those of a group that is apart, in a ledger without pages; None where some lie elsewhere, or
    places would have to be smaller."""
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
