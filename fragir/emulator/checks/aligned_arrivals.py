"""Aligned barrier instructions at which lanes do not wait for the rest of their warp.

bar.arrive, barrier.arrive.aligned, and barrier.cluster.arrive and .wait with .aligned: a warp's
lanes may come to them one after the other here, and so it shows only at the end whether all have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.state import PARKED
from fragir.emulator.numbers.types import I64, Bools, distinct
from fragir.emulator.program.flow import leaves
from fragir.emulator.program.program import Program


@dataclass(frozen=True, slots=True)
class Missing:
    """Of a warp `lane` has come to the instruction at `site`, and `absent` has not as often.

    `instead`: where that one has come, to another of the kind, when those here had not; or None.
    """

    site: int
    lane: int
    absent: int
    instead: int | None


class AlignedArrivals:
    """How often each lane has come to each of these instructions, and how often it should have."""

    def __init__(self, machine: Machine, program: Program, born: Bools) -> None:
        self.machine, self.program, self.born = machine, program, born
        self._came: dict[int, I64] = {}
        self._due: dict[int, I64] = {}

    def start_wave(self) -> None:
        self._came.clear()
        self._due.clear()

    def leave(self, warps: I64) -> None:
        """Warps go on elsewhere."""
        for counts in (*self._came.values(), *self._due.values()):
            counts[warps] = 0

    def note(self, site: int, lanes: I64) -> None:
        """Lanes come to the instruction at a site. Whoever of their warps has not left, nor has
        nothing to do any more but to exit, is to come as often."""
        shape = self.born.shape
        came = self._came.setdefault(site, np.zeros(shape, np.int64))
        due = self._due.setdefault(site, np.zeros(shape, np.int64))
        came.reshape(-1)[lanes] += 1
        warps = distinct(lanes // LANES)
        most = np.broadcast_to(came[warps].max(axis=1, keepdims=True), (len(warps), LANES))
        wanted = self.machine.alive[warps] & self.born[warps]
        absent = wanted & (came[warps] < most)
        if absent.any():
            places = self.machine.key[warps] & (PARKED - 1)
            for at in distinct(places[absent]).tolist():
                if leaves(self.program, at):
                    wanted &= ~(absent & (places == at))
        due[warps] = np.where(wanted, np.maximum(due[warps], most), due[warps])

    def missing(self) -> Iterator[Missing]:
        """One of each instruction to which a part of a warp has not come."""
        short = {site: due > self._came[site] for site, due in self._due.items()}
        for site, lacks in short.items():
            for warp in np.flatnonzero(lacks.any(axis=1))[:1].tolist():
                absent = int(np.flatnonzero(lacks[warp])[0])
                here = int(np.flatnonzero(~lacks[warp] & (self._came[site][warp] > 0))[0])
                others = (
                    other
                    for other, came in self._came.items()
                    if came[warp, absent] > came[warp, here]
                )
                flat = warp * LANES
                yield Missing(site, flat + here, flat + absent, next(others, None))
