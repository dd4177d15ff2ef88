"""What of global memory has been accessed last, buffer by buffer, and what that clashes with.

`ledger.py` has what is kept of every place. Blocks of different waves stand beside each other too.
Lanes of one warp are left alone, but for updates that get lost (`lost_updates.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.earlier_grids import EarlierGrids
from fragir.emulator.checks.races.ledger import (
    READ,
    READ_ELSEWHERE,
    ROOM,
    WRITE,
    Ledger,
    LedgerRoom,
)
from fragir.emulator.checks.races.records import COLUMN_MASK, STRONG, site_of
from fragir.emulator.checks.races.scopes import BLOCK, CLUSTER, DEVICE
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.clusters import Clusters
    from fragir.emulator.checks.races.groups import AccessGroup
    from fragir.emulator.machine.machine import Machine

#: Of a column, the part that names the warp.
_WARP = COLUMN_MASK >> 5 << 5

__all__ = ["READ", "READ_ELSEWHERE", "WRITE", "Clash", "GlobalPlaces", "Ledger"]


@dataclass(frozen=True, slots=True)
class Clash:
    """Accesses of one instruction that nothing orders after earlier ones of a kind: of each its
    index among the accesses, the row of the ledger, the record of the earlier one and its owner.
    """

    kind: int
    index: I64
    rows: I64
    records: I64
    owners: I32

    def some(self, which: Bools) -> Clash:
        """Those of a mask."""
        if which.all():
            return self
        return Clash(
            self.kind,
            *(self.index[which], self.rows[which], self.records[which], self.owners[which]),
        )


class GlobalPlaces:
    """The ledgers of all buffers."""

    def __init__(
        self, machine: Machine, clocks: Clocks, clusters: Clusters, strengths: npt.NDArray[np.int8]
    ) -> None:
        self.machine, self.clocks, self.clusters = machine, clocks, clusters
        self.earlier = EarlierGrids(machine, clusters, strengths) if machine.running else None
        #: Of the instruction at each site.
        self.strengths = strengths if self.earlier is None else self.earlier.strengths
        self.ledgers: dict[int, Ledger] = {}
        self.room = LedgerRoom()
        self._starts = [buffer.start for buffer in machine.memory.buffers] + [1 << 62]
        self.owner_of: I32 = np.zeros(machine.warps * LANES, np.int32)

    def start_wave(self, first: int) -> None:
        self.clusters.start_wave(first)
        lanes = np.arange(len(self.owner_of))
        self.owner_of = (first + lanes // self.clocks.lanes).astype(np.int32)
        for ledger in self.ledgers.values():
            ledger.forget_last()

    def by_buffer(self, at: I64) -> list[tuple[Ledger, Any]]:
        """The ledgers of the buffers in which positions lie, and which of them: a mask or all."""
        starts = self._starts
        first = bisect_right(starts, int(at.min())) - 1
        if int(at.max()) < starts[first + 1]:
            return [(self._ledger(first), slice(None))]
        which = self.machine.memory.buffer_of(at)
        return [(self._ledger(int(b)), which == b) for b in distinct(which)]

    def _ledger(self, index: int) -> Ledger:
        found = self.ledgers.get(index)
        if found is None:
            buffer = self.machine.memory.buffers[index]
            found = self.ledgers[index] = Ledger(
                buffer.start,
                buffer.size,
                self.room,
                partial(self._full, buffer.name),
                partial(self._forgets, buffer.name),
            )
            if self.earlier is not None:
                self.earlier.put_into(found, buffer)
        return found

    def _full(self, name: str) -> None:
        self.machine.report.notes.append(
            f"races: not all of {name} is followed; accesses to {ROOM:,} places are remembered "
            "in a launch"
        )

    def _forgets(self, name: str, count: int) -> None:
        self.machine.report.notes.append(
            f"races: {count:,} early bulk copies that read {name} are not compared with later "
            "writes to it"
        )

    def clash(
        self,
        ledger: Ledger,
        kind: int,
        rows: I64,
        group: AccessGroup,
        mine: I64,
        owner: I32,
        scope: int,
    ) -> Clash | None:
        """The accesses that nothing orders after the last ones of a kind.

        `mine`, `owner`: the records and owners of the accesses. Two strong accesses do not race
        where the scope of each (`scope` of these) has the other.
        """
        owners, recs = ledger.owners[kind][rows], ledger.records[kind][rows]
        apart = (recs ^ mine[:, None]) & _WARP != 0  # from another warp
        apart |= owners != owner[:, None]
        apart &= owners != 0
        if not apart.any():
            return None
        index, part = np.nonzero(apart)
        recs, owners = recs[index, part], owners[index, part]
        who = group.lanes[index]
        own = self.clocks.own[who]
        here = owners == owner[index]
        far = ~here
        bad = np.zeros(len(who), np.bool_)
        if here.any():
            bad[here] = self.clocks.unordered(who[here], recs[here])
        if scope:
            strong = self._both_strong(recs, own, here, scope)
            bad &= ~strong
            far &= ~strong
        if far.any():
            bad[far] = self.clusters.unknown(who[far], recs[far], owners[far])
        if not bad.any():
            return None
        return Clash(kind, index[bad], rows[index, part][bad], recs[bad], owners[bad])

    def beyond(self, ledger: Ledger, rows: I64, lanes: I64, scope: int) -> Clash:
        """Writes in one step that a strong write's scope has not.

        Behind `Ledger.note_write`: of all lanes that write a place the last one is there.
        """
        recs, owner = ledger.records[WRITE][rows], ledger.owners[WRITE][rows]
        here = owner == self.owner_of[lanes][:, None]
        own = np.broadcast_to(self.clocks.own[lanes][:, None], recs.shape)
        bad = ~self._both_strong(recs, own, here, scope)
        return Clash(WRITE, np.nonzero(bad)[0], rows[bad], recs[bad], owner[bad])

    def strong_others(self, ledger: Ledger, rows: I64, owner: I32, own: I64, scope: int) -> Bools:
        """Where the last write is another thread's, strong, and in the scope of both."""
        recs, owners = ledger.records[WRITE][rows], ledger.owners[WRITE][rows]
        here = owners == owner
        found = recs & STRONG != 0
        found &= ~here | (recs & COLUMN_MASK != own)
        if found.any():
            found &= self._both_strong(recs, own, here, scope)
        return found

    def _both_strong(self, recs: I64, own: I64, here: Bools, scope: int) -> Bools:
        """Which records are of strong accesses whose scope, as the one given, has both threads."""
        sites = np.minimum(site_of(recs), len(self.strengths) - 1)
        reach = np.minimum(self.strengths[sites], scope)
        per = self.machine.warps_per_block * LANES
        same_block = (recs & COLUMN_MASK) // per == own // per
        needed = np.where(here, np.where(same_block, BLOCK, CLUSTER), DEVICE)
        return (recs & STRONG != 0) & (reach >= needed)
