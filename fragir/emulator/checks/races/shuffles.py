"""What one lane of a warp has acquired, and tells the others by a shuffle or a vote.

A shuffle orders no memory: only bar.warp.sync does. But one lane of a warp that looks at a flag,
and shuffles what it saw, is how cooperative groups synchronise, and works on every machine known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fragir.emulator.checks.races.clocks import later
from fragir.emulator.checks.races.clusters import Knowledge, Vector
from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, distinct


@dataclass(slots=True)
class Acquired:
    """What strong reads have brought: times in the lane's own cluster, and of other clusters."""

    vector: Vector | None = None
    known: Knowledge = field(default_factory=dict[int, Vector])
    last: tuple[Any, Any] = (None, None)  # what was added last


class ToldByShuffle:
    def __init__(self) -> None:
        self.start_wave()

    def start_wave(self) -> None:
        self.acquired: dict[int, Acquired] = {}  # by warp
        self.told: dict[int, Acquired] = {}  # by lane

    def acquire(self, vector: Any, known: Knowledge | None, lanes: I64) -> None:
        """Lanes have learned something by a strong read."""
        for warp in distinct(lanes // LANES):
            before = self.acquired.setdefault(int(warp), Acquired())
            if before.last[0] is vector and before.last[1] is known:
                continue
            after = Acquired(before.vector, dict(before.known), (vector, known))
            if vector is not None:
                after.vector = later(vector[:1], before.vector)
            for cluster, times in (known or {}).items():
                after.known[cluster] = later(times, before.known.get(cluster))
            self.acquired[int(warp)] = after

    def tell(self, lanes: I64) -> None:
        """A shuffle, or the like, among lanes."""
        for lane in lanes if self.acquired else ():
            if (found := self.acquired.get(int(lane) // LANES)) is not None:
                self.told[int(lane)] = found

    def knows(self, lane: int, rec: int, cluster: int | None) -> bool:
        """Whether a lane was told of an access: of its own cluster (None), or of another one."""
        found = self.told.get(lane)
        if found is None:
            return False
        times = found.vector if cluster is None else found.known.get(cluster)
        column = rec & COLUMN_MASK
        return (
            times is not None
            and column < times.shape[1]
            and (rec >> TIME_SHIFT <= int(times[0, column]))
        )
