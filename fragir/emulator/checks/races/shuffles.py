"""What one lane of a warp has acquired, and tells the others by a shuffle or a vote.

A shuffle orders no memory: only bar.warp.sync does. But one lane of a warp that looks at a flag,
and shuffles what it saw, is how cooperative groups synchronise, and works on every machine known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fragir.emulator.checks.races.clocks import later
from fragir.emulator.checks.races.clusters import Knowledge, Vector
from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, distinct

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks


@dataclass(frozen=True, slots=True, eq=False)
class Acquired:
    """What strong reads have brought: times in the lane's own cluster, and of other clusters."""

    vector: Vector | None = None
    known: Knowledge = field(default_factory=dict[int, Vector])

    def with_more(self, vector: Vector | None, known: Knowledge) -> Acquired:
        """This, and what else is known."""
        if vector is not None:
            vector = later(vector, self.vector)
        both = dict(self.known)
        for cluster, times in known.items():
            both[cluster] = later(times, both.get(cluster))
        return Acquired(self.vector if vector is None else vector, both)

    def knows(self, rec: int, cluster: int | None, plane: int = 0) -> bool:
        """Whether an access of its own cluster (None), or of another one, is known.

        `plane`: of `Clocks`, of its own cluster; of others 0, or else that of a proxy.
        """
        times = self.vector if cluster is None else self.known.get(cluster)
        if times is None:
            return False
        column, plane = rec & COLUMN_MASK, plane if cluster is None else min(plane, 1)
        return column < times.shape[1] and rec >> TIME_SHIFT <= int(times[plane, column])


class ToldByShuffle:
    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.start_wave()

    def start_wave(self) -> None:
        self.acquired: dict[int, Acquired] = {}  # by lane, as all of these
        self.told: dict[int, Acquired] = {}
        #: What lanes had been told at their last fence of the asynchronous proxy.
        self.fenced: dict[tuple[int, int], Acquired] = {}
        #: By lane: what it has acquired last, in the words of `acquire`.
        self._latest: dict[int, tuple[object, object]] = {}

    def acquire(self, vector: Vector | None, known: Knowledge | None, lanes: I64) -> None:
        """Lanes have learned something by a strong read."""
        made: dict[Acquired | None, Acquired] = {}  # lanes that knew the same share what they know
        for lane in lanes.tolist():
            seen = self._latest.get(lane, (None, None))
            if seen[0] is vector and seen[1] is known:
                continue  # a poll that finds the same again
            self._latest[lane] = vector, known
            before = self.acquired.get(lane)
            if before not in made:
                made[before] = (before or Acquired()).with_more(vector, known or {})
            self.acquired[lane] = made[before]

    def tell(self, lanes: I64) -> None:
        """A shuffle, or the like, among lanes."""
        if not self.acquired:
            return
        for warp in distinct(lanes // LANES).tolist():
            group = lanes[lanes // LANES == warp].tolist()
            known = [self.told.get(lane) for lane in group]
            both = (*known, *(self.acquired.get(lane) for lane in group))
            sources = list(dict.fromkeys(each for each in both if each is not None))
            if not sources or (len(sources) == 1 and None not in known):
                continue
            all_of = sources[0]
            for other in sources[1:]:
                all_of = all_of.with_more(other.vector, other.known)
            for lane in group:
                self.told[lane] = self.acquired[lane] = all_of

    def fence(self, lanes: I64, plane: int) -> None:
        """Lanes fence what they were told for the asynchronous proxy."""
        for lane in lanes.tolist() if self.told else ():
            if (found := self.told.get(lane)) is not None:
                self.fenced[lane, plane] = found

    def knows(self, lane: int, rec: int, cluster: int | None) -> bool:
        """Whether a lane was told of an access: of its own cluster (None), or of another one."""
        found = self.told.get(lane)
        return found is not None and found.knows(rec, cluster)

    def hides(self, lane: int, rec: int, cluster: int | None, plane: int) -> bool:
        """Whether it was told of an access that nobody has fenced for the asynchronous proxy."""
        if (
            not plane
            or rec & COLUMN_MASK >= self.clocks.lanes
            or not self.knows(lane, rec, cluster)
        ):
            return False
        fenced = self.fenced.get((lane, plane))
        if fenced is not None and fenced.knows(rec, cluster):
            return False
        return not self.told[lane].knows(rec, cluster, plane)
