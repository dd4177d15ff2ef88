"""Order by mbarriers: from the arrivals and copies of a phase to those who see it complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import later
from fragir.emulator.checks.races.context import Context
from fragir.emulator.numbers.types import I32, I64

if TYPE_CHECKING:
    from fragir.emulator.checks.races.barriers import Arrivals
    from fragir.emulator.checks.races.block_exits import BlockExits
    from fragir.emulator.checks.races.mbarrier_objects import MbarrierObjects
    from fragir.emulator.machine.events import Event


class MbarrierPhases:
    """`objects` is told of every use, `exits` of arrivals at other blocks."""

    def __init__(
        self, context: Context, arrivals: Arrivals, objects: MbarrierObjects, exits: BlockExits
    ) -> None:
        self.clocks, self.arrivals = context.clocks, arrivals
        self.objects, self.exits = objects, exits
        self.start_wave()

    def start_wave(self) -> None:
        self._arrived: dict[int, I32] = {}  # in the phase that runs
        self._phases: dict[int, I32] = {}  # up to the last one complete
        self._landed: dict[int, tuple[int, int]] = {}  # mbarrier -> its column, latest copy

    def copied(self, position: int, column: int, time: int) -> None:
        """A bulk copy of that time has moved its bytes, and signalled an mbarrier."""
        before = self._landed.get(position, (column, 0))[1]
        self._landed[position] = column, max(before, time)

    def event(self, kind: Event, position: int, lanes: I64) -> None:
        clocks = self.clocks
        if kind == "init":
            self.objects.initialise(position, int(lanes[0]))
            self._phases.pop(position, None)
            self._arrived.pop(position, None)
            return
        if kind == "inval":
            self.objects.invalidate(position, int(lanes[0]))
            return
        if kind in ("arrive", "expect", "test", "wait"):
            self.objects.use(position, lanes)
        if kind in ("arrive", "expect"):
            self.exits.arrives(position, lanes)
        if kind == "arrive":
            published = self.arrivals.published(lanes)
            self._arrived[position] = later(published, self._arrived.get(position))
        elif kind == "phase":
            vector = later(
                np.zeros((clocks.planes, clocks.width), np.int32), self._arrived.pop(position, None)
            )
            if position in self._landed:
                column, time = self._landed[position]
                vector[0, column] = time
            self._phases[position] = later(vector, self._phases.get(position))
        elif kind == "wait" and position in self._phases:
            clocks.acquire(lanes, self._phases[position])
