"""Bulk copies to global memory where others have written, and nothing orders the two.

They are no race where both leave the same bytes, as at the edges of tiles that overlap. What a copy
leaves is known when it is done: a suspicion waits for the later of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.ledger import WRITE
from fragir.emulator.checks.races.records import site_of
from fragir.emulator.numbers.types import I64

if TYPE_CHECKING:
    from fragir.emulator.checks.races.global_races import GlobalRaces
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Transfer


@dataclass(slots=True)
class OverwriteSuspicion:
    """Two writes of the bytes at `at`: what each has left there, None while it is under way."""

    at: I64
    site: int
    lane: int
    rec: int  # of the first
    owner: int
    mine: int  # the record of the second
    first: npt.NDArray[np.uint8] | None
    second: npt.NDArray[np.uint8] | None = None


class Overwrites:
    def __init__(self, machine: Machine, races: GlobalRaces) -> None:
        self.machine, self.races = machine, races
        self.start_wave()

    def start_wave(self) -> None:
        self._under_way: dict[int, tuple[Transfer, int]] = {}  # by identity: with its record
        self._records: set[int] = set()  # of these
        self._suspicions: list[OverwriteSuspicion] = []

    def started(self, transfer: Transfer, rec: int) -> None:
        """A copy with that record writes to global memory, later."""
        self._under_way[id(transfer)] = transfer, rec
        self._records.add(rec)

    def suspect(
        self, at: I64, size: int, site: int, lane: int, rec: int, owner: int, mine: int
    ) -> None:
        """Nothing orders the write in `rec` of places of `size` bytes, and the copy that begins."""
        if self.races.findings.said("global", "race", None, site, int(site_of(rec))):
            return
        cells = (at[:, None] + np.arange(size)).ravel()
        first = None if rec in self._records else self._bytes(cells)
        self._suspicions.append(OverwriteSuspicion(cells, site, lane, rec, owner, mine, first))

    def complete(self, transfer: Transfer) -> None:
        """A copy has written."""
        _, rec = self._under_way.pop(id(transfer), (None, 0))
        if not rec:
            return
        self._records.discard(rec)
        kept: list[OverwriteSuspicion] = []
        for one in self._suspicions:
            if one.rec == rec:
                one.first = self._bytes(one.at)
            elif one.mine == rec:
                one.second = self._bytes(one.at)
            if one.first is None or one.second is None:
                kept.append(one)
                continue
            differ = np.flatnonzero(one.first != one.second)
            if len(differ):
                position = int(one.at[differ[0]])
                self.races.clash(one.site, one.lane, position, WRITE, one.rec, one.owner)
        self._suspicions = kept

    def _bytes(self, at: I64) -> Any:
        return self.machine.memory.globals.bytes[at]
