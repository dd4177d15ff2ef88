"""Updates of global memory that get lost within a warp: read, change, store, without an atomic.

Lanes of one warp that read a place, and store there what they have made of it, overwrite each
other: in one store, or one after the other once both have read. Whether what is stored comes from
what was read is looked up in the program, through arithmetic, not through collectives: what a warp
has agreed on is the same in every lane.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fragir.emulator.checks.races.clocks import Clocks
from fragir.emulator.checks.races.ledger import READ, WRITE, Ledger
from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT, site_of
from fragir.emulator.numbers.types import I32, I64, Bools
from fragir.emulator.program.dataflow import Dataflow, dataflow

if TYPE_CHECKING:
    from fragir.emulator.program.program import Program


#: Indices of accesses, rows, records of the others.
Lost: TypeAlias = tuple[I64, I64, I64]
NONE: Lost = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


_ELSEWHERE = frozenset({"shared", "local", "param", "const"})  # not in global memory


class LostUpdates:
    """`loads`: whether global memory is read at all."""

    def __init__(self, program: Program, clocks: Clocks) -> None:
        self.program, self.clocks = program, clocks
        self._from: dict[int, set[Any]] = {}
        self.loads = any(
            row.access == "load" and not _ELSEWHERE.intersection(words)
            for row, words in program.rows()
        )

    @cached_property
    def _flow(self) -> Dataflow:
        return dataflow(self.program)

    def derives(self, store: int, load: int) -> bool:
        """Whether the store at a site stores what comes of the load at another."""
        code = self.program.code
        row = self.program.opcode
        from_, to = row(code[load].ins), row(code[store].ins)
        if from_.access != "load" or to.access != "store" or from_.together or to.together:
            return False
        flow = self._flow
        if load not in self._from:
            start = flow.of(code[load].ins).written
            self._from[load] = flow.closure(start, lambda ins: not row(ins).apart)
        each = flow.of(code[store].ins)
        return any(r in self._from[load] for operand in each.operands[1:] for r in operand)

    def before(
        self, ledger: Ledger, site: int, rows: I64, lanes: I64, mine: I64, owner: I32
    ) -> Lost:
        """(index of the access, row, record of the other) where another lane came between.

        A lane has read the place, another one of its warp has written there since, and now the
        lane stores. Before the store is noted. Of several lanes that read together one is known:
        for the others it must be that nothing orders the two writes.
        """
        last = ledger.records[WRITE][rows]
        apart = (last ^ mine[:, None]) & COLUMN_MASK
        bad = (apart != 0) & (apart < 32)
        if not bad.any():
            return NONE
        bad &= ledger.owners[WRITE][rows] == owner[:, None]
        if not bad.any():
            return NONE
        read = ledger.records[READ][rows]
        who = np.broadcast_to(lanes[:, None], bad.shape)
        reader = (read ^ mine[:, None]) & COLUMN_MASK == 0
        bad &= reader | self.clocks.unordered(who, last)
        bad &= (read ^ mine[:, None]) & COLUMN_MASK < 32
        bad &= ledger.owners[READ][rows] == owner[:, None]
        bad &= read >> TIME_SHIFT < last >> TIME_SHIFT
        return self._derived(site, bad, rows, read, last)

    def together(self, ledger: Ledger, site: int, rows: I64, mine: I64, owner: I32) -> Lost:
        """The same where lanes of one store have read the place; after the store is noted."""
        last, read = ledger.records[WRITE][rows], ledger.records[READ][rows]
        apart = (last ^ mine[:, None]) & COLUMN_MASK
        bad = (apart != 0) & (apart < 32) & (ledger.owners[WRITE][rows] == owner[:, None])
        if not bad.any():
            return NONE
        bad &= ledger.owners[READ][rows] == owner[:, None]
        reader = read & COLUMN_MASK
        stores = (reader == last & COLUMN_MASK) | (reader == mine[:, None] & COLUMN_MASK)
        return self._derived(site, bad & stores, rows, read, last)

    def _derived(self, site: int, bad: Bools, rows: I64, read: I64, last: I64) -> Lost:
        """Of those the ones that store what they have read."""
        for load in distinct_sites(read[bad]):
            if not self.derives(site, load):
                bad &= site_of(read) != load
        return np.nonzero(bad)[0], rows[bad], last[bad]


def distinct_sites(records: I64) -> list[int]:
    """The sites of records, each once."""
    return np.unique(site_of(records)).tolist()
