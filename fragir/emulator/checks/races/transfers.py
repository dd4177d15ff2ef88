"""Races on global memory with bulk copies: what TMA reads and writes there.

Threads' writes that a bulk copy reads must be ordered before it, and pass a `fence.proxy.async` on
their way, the writer's or the issuer's. What a bulk copy writes is known to who waits for the copy
itself; a wait with `.read` says only that its source has been read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import ASYNC, COLUMN_BITS, SITE_MASK, record
from fragir.emulator.checks.races.global_memory import WRITE, GlobalRecords, Ledger
from fragir.emulator.checks.races.proxy import AsyncProxy
from fragir.emulator.numbers.types import I64

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Transfer


class GlobalTransfers(AsyncProxy):
    globals: GlobalRecords

    def on_transfer_issue(self, transfer: Transfer) -> None:
        now = self.clocks.now
        super().on_transfer_issue(transfer)
        region = transfer.region
        if region is None or not len(region.starts) or region.size <= 0:
            return
        lane = int(transfer.lanes[0])
        if transfer.group >= 0:
            self._stores(lane, now, *region.pieces())
            return
        (ledger, _), *_ = self.globals.by_buffer(region.starts[:1])
        if ledger.too_large:
            return
        column = self.clocks.agent(lane, "mbarrier", transfer.signal)
        rec = record(ASYNC + now, column, self.site)
        ledger.copied.append((region, rec, int(self.globals.owner_of[lane])))
        if ledger.written:
            self._loads(lane, ledger, *region.pieces())
            self.note_copied(ledger)

    def note_copied(self, ledger: Ledger) -> None:
        """Of a buffer that is written: note what bulk copies have read, the latest of them."""
        for region, rec, owner in ledger.copied:
            places = ledger.places(*region.pieces())
            if not ledger.too_large:
                mine = np.full(len(places), rec, np.int64)
                ledger.note_read(places, mine, np.full(len(places), owner, np.int32))
        ledger.copied.clear()

    def _stores(self, lane: int, now: int, at: I64, size: int) -> None:
        column = self.clocks.agent(lane, "stored", lane)
        reduces = self.program.code[self.site].ins.opcode[1] == "reduce"
        rec = record(ASYNC + now, column, self.site, reduces)
        for ledger, which in self.globals.by_buffer(at):
            if not ledger.too_large:
                places = ledger.places(at[which], size)
                mine = np.full(len(places), rec, np.int64)
                owner = np.full(len(places), self.globals.owner_of[lane], np.int32)
                if not ledger.too_large:
                    ledger.note_write(places, mine, owner)

    def _loads(self, lane: int, ledger: Ledger, at: I64, size: int) -> None:
        places = ledger.places(at, size).ravel()
        if ledger.too_large:
            return
        places = places[ledger.records[WRITE, places] != 0]
        if not len(places):
            return
        both = np.stack(
            [ledger.owners[WRITE, places].astype(np.int64), ledger.records[WRITE, places]]
        )
        (owners, recs), first = np.unique(both, axis=1, return_index=True)
        lanes = np.full(len(recs), lane, np.int64)
        here = owners == self.globals.owner_of[lane]
        clocks, world = self.clocks, self.globals.world
        unordered = np.zeros(len(recs), np.bool_)
        hidden = np.zeros(len(recs), np.bool_)
        unordered[here] = clocks.unordered(lanes[here], recs[here])
        hidden[here] = clocks.invisible(lanes[here], recs[here], clocks.proxy_global)
        if not here.all():
            far = ~here
            whose = owners[far].astype(np.int32)
            unordered[far] = world.unknown(lanes[far], recs[far], whose)
            hidden[far] = world.hidden(lane, recs[far], whose)
        for index in (*np.flatnonzero(unordered)[:8], *np.flatnonzero(hidden & ~unordered)[:8]):
            rec, owner = int(recs[index]), int(owners[index])
            position = ledger.start + (int(places[first[index]]) << ledger.shift)
            if unordered[index]:
                self._clash_global(self.site, lane, position, WRITE, rec, owner)
                continue
            text = "the asynchronous proxy does not see what "
            text += f"{self._who_globally(lane, rec, owner)} wrote without fence.proxy.async"
            other = rec >> COLUMN_BITS & SITE_MASK
            self._find_global(self.site, other, lane, position, text, "proxy-fence")

    # -- findings, in `races.py` ------------------------------------------------------------------

    def _clash_global(
        self, site: int, lane: int, position: int, how: int, rec: int, owner: int
    ) -> None:
        raise NotImplementedError

    def _who_globally(self, lane: int, rec: int, owner: int) -> str:
        raise NotImplementedError

    def _find_global(
        self,
        site: int,
        other: int,
        lane: int,
        position: int,
        text: str,
        kind: str = "race",
        letter: str | None = None,
    ) -> None:
        raise NotImplementedError
