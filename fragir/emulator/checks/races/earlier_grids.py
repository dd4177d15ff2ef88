"""What grids have accessed that may still run when this one begins, until it waits for them.

Their accesses stand in the ledgers of this grid, as those of clusters that nobody knows, with
owners below 0 and the sites behind those of the program; griddepcontrol.wait makes them known
(`Clusters.wait_for_grids`). launch_dependents makes nothing known: it says when a grid may begin.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clusters import GRIDS, Clusters, Knowledge
from fragir.emulator.checks.races.ledger import READ, WRITE, Ledger
from fragir.emulator.checks.races.records import SITE_MASK, STRONG, record, site_of

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.memory import Buffer
    from fragir.emulator.machine.past_grids import PastGrid


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
