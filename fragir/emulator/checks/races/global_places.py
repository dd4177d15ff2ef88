"""What of global memory has been accessed last, buffer by buffer, and what that clashes with.

`ledger.py` has what is kept of every place. Blocks of different waves stand beside each other too,
and so do lanes of one warp; of those that have read a place together one is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import (
    BLOCK,
    CLUSTER,
    COLUMN_MASK,
    DEVICE,
    SITE_MASK,
    STRONG,
    record,
    site_of,
)
from fragir.emulator.checks.races.hearsay import GRIDS, Clusters, Knowledge
from fragir.emulator.checks.races.ledger import (
    READ,
    READ_ELSEWHERE,
    ROOM,
    WRITE,
    Ledger,
    LedgerRoom,
)
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.context import AccessGroup
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.memory import Buffer
    from fragir.emulator.machine.state import PastGrid


# -- earlier grids ---------------------------------------------------------------------------------
# What grids have accessed that may still run when this one begins, until it waits for them.
#
# Their accesses stand in the ledgers of this grid, as those of clusters that nobody knows, with
# owners below 0 and the sites behind those of the program; griddepcontrol.wait makes them known
# (`Clusters.wait_for_grids`). launch_dependents makes nothing known: it says when a grid may begin.


@dataclass(frozen=True, slots=True)
class GridAccesses:
    """What the check of a grid has kept, for those that come after it.

    `ledgers`: by the number of the buffer; `strengths`: of its instructions; `published`: of
    `Clusters`; `who`: instruction and thread of a record and its owner, in words; `place`: line
    and column of a site.
    """

    ledgers: dict[int, Ledger]
    strengths: npt.NDArray[np.int8]
    published: dict[int, Knowledge]
    who: Callable[[int, int], str]
    place: Callable[[int], tuple[int | None, int | None]]


class EarlierGrids:
    """`strengths`: of the instructions at all sites, `own` those of the program and one more."""

    def __init__(self, machine: Machine, clusters: Clusters, own: npt.NDArray[np.int8]) -> None:
        self.machine, self.clusters = machine, clusters
        self.grids = [grid for grid in machine.running if grid.accesses is not None]
        parts, first = [own[:-1]], len(own) - 1
        self._first: list[int] = []  # site of each
        for grid in self.grids:
            self._first.append(first)
            first += len(grid.accesses.strengths)
            parts.append(grid.accesses.strengths)
        self.strengths = np.concatenate([*(p[:SITE_MASK] for p in parts), own[-1:]])
        unwaited = sum(grid.accesses is not None for grid in machine.left)
        clusters.expect_grids(len(self.grids) - unwaited)
        for grid in machine.running:
            if grid.accesses is None:
                machine.report.notes.append(
                    f"races: {grid.entry}, which may still run when this grid begins, ran without "
                    "checks: its accesses are not compared"
                )

    def _ledgers(self, grid: PastGrid, buffer: Buffer) -> Iterator[tuple[Buffer, Ledger, int]]:
        """The buffers of a grid that have bytes of a buffer of this one: their ledgers, and what is
        added to a position there to have the one here."""
        home = self.machine.homes.get(buffer.start)
        if home is None:
            return
        ledgers: dict[int, Ledger] = grid.accesses.ledgers
        for index, ledger in ledgers.items():
            theirs = grid.buffers[index]
            there = grid.homes.get(theirs.start)
            if there is not None and there[0] == home[0]:
                yield theirs, ledger, there[1] - theirs.start - home[1] + buffer.start

    def put_into(self, ledger: Ledger, buffer: Buffer) -> None:
        """Notes in a new ledger what was accessed there, by the latest grid last."""
        for number, grid in reversed(list(enumerate(self.grids))):
            for theirs, old, move in self._ledgers(grid, buffer):
                old.note_copied()
                for kind in (READ, WRITE):
                    if old.noted[kind]:
                        self._note(number, ledger, buffer, old, kind, move)
                if number >= self.clusters.waited_for:
                    continue
                for position, shown in grid.accesses.published.items():
                    if not any(cluster > 0 for cluster in shown):
                        continue
                    at = position + move
                    if theirs.start <= position < theirs.start + theirs.size and (
                        buffer.start <= at < buffer.start + buffer.size
                    ):
                        known = self.clusters.published.get(at, {})
                        self.clusters.published[at] = {**known, GRIDS: self.clusters.all_of_them}

    def _note(
        self, number: int, ledger: Ledger, buffer: Buffer, old: Ledger, kind: int, move: int
    ) -> None:
        used = np.flatnonzero(old.owners[kind] > 0)  # its own
        size = 1 << old.shift
        unit = min(move & -move, size) if move else size
        parts = np.arange(0, size, unit)
        at = (old.position(used)[:, None] + (move + parts)).ravel()
        records = np.repeat(old.records[kind][used], len(parts))
        inside = (at >= buffer.start) & (at < buffer.start + buffer.size)
        if not inside.any():
            return
        at, records = at[inside], records[inside]
        sites = np.minimum(self._first[number] + site_of(records), SITE_MASK)
        rows, kept = ledger.rows(at, unit)
        mine = record(1, 0, sites) | records & STRONG
        mine = mine if kept is None else mine[kept]
        ledger.records[kind][rows] = mine[:, None]
        ledger.owners[kind][rows] = -1 - number
        ledger.noted[kind] = True

    def place(self, site: int) -> tuple[int | None, int | None]:
        """Line and column of the instruction at a site of an earlier grid."""
        number = bisect_right(self._first, site) - 1
        return self.grids[number].accesses.place(site - self._first[number])

    def who(self, position: int, kind: int, owner: int) -> str:
        """The instruction and the thread of an access, the last of its kind, for messages."""
        grid = self.grids[-1 - owner]
        kind = WRITE if kind == WRITE else READ
        memory = self.machine.memory
        buffer = memory.buffers[int(memory.buffer_of(np.array([position]))[0])]
        for theirs, old, move in self._ledgers(grid, buffer):
            there = (position - move) >> old.shift << old.shift
            if theirs.start <= there < theirs.start + theirs.size:
                row = old.rows(np.array([there]), 1 << old.shift)[0].item(0)
                rec, by = int(old.records[kind, row]), int(old.owners[kind, row])
                if by > 0:
                    who = grid.accesses.who(rec, by)
                    return f"{who} of the earlier grid {grid.entry}"
        return f"by the earlier grid {grid.entry}"

    def why(self, owner: int) -> str:
        """Why that grid may still run, and what to do."""
        if -1 - owner < self.clusters.waited_for:
            return (
                ", which may not have ended: launch_dependents only lets this grid begin; execute "
                "griddepcontrol.wait first (and a barrier, where another thread has)"
            )
        return (
            ", which may not have ended: the grid between has not executed griddepcontrol.wait, "
            "so that this one's wait does not wait for it"
        )


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

    def by_buffer(self, at: I64) -> list[tuple[Ledger, slice | Bools]]:
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
        apart = (recs ^ mine[:, None]) & COLUMN_MASK != 0
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
