"""What lanes know only by letting each other know, where the ISA wants more.

- One lane of a warp acquires, and tells the others by a shuffle or a vote. These order no memory:
  only bar.warp.sync does. But this is how cooperative groups synchronise, and it works on every
  machine known.
- One thread sees by a relaxed access what has been released, and tells its block by a barrier.
  Only an acquire, or a fence of that thread, lets others' writes be seen: without it an L1 cache
  may have what was there before, if its block has read it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fragir.emulator.checks.races.clocks import Clocks, later
from fragir.emulator.checks.races.clusters import Knowledge, Vector
from fragir.emulator.checks.races.records import COLUMN_MASK, TIME_SHIFT
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, distinct


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


class Told:
    """`sentence`: of `SENTENCES`; `words`: how a message goes on."""

    def __init__(self, clocks: Clocks, sentence: str, words: str) -> None:
        self.clocks, self.sentence, self.words = clocks, sentence, words
        self.start_wave()

    def start_wave(self) -> None:
        lanes = len(self.clocks.own)
        #: By lane, what it may tell, and what it was told: None or `Acquired`.
        self.acquired: Any = np.full(lanes, None, np.object_)
        self.told: Any = np.full(lanes, None, np.object_)
        self.ever = False  # whether anybody was told anything
        #: Lanes that may know something that not all of their block were told.
        self.news: set[int] = set()
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
            before: Acquired | None = self.acquired[lane]
            if before not in made:
                made[before] = (before or Acquired()).with_more(vector, known or {})
            self.acquired[lane] = made[before]
            self.news.add(lane)

    def of(self, lanes: I64) -> Iterator[Acquired]:
        """What some of the lanes may tell, and were told."""
        yield from dict.fromkeys((*self.acquired[lanes].tolist(), *self.told[lanes].tolist()))

    def tell(self, lanes: I64, others: Iterable[Acquired | None] = ()) -> None:
        """Each of the lanes is told what any of them, or those of `others`, know."""
        sources = [each for each in dict.fromkeys((*self.of(lanes), *others)) if each is not None]
        if not sources:
            return
        all_of = sources[0]
        for other in sources[1:]:
            all_of = all_of.with_more(other.vector, other.known)
        self.told[lanes] = self.acquired[lanes] = all_of
        self.ever = True

    def tell_warps(self, lanes: I64) -> None:
        """A shuffle, or the like, among lanes of some warps."""
        if self.news:
            for warp in distinct(lanes // LANES).tolist():
                self.tell(lanes[lanes // LANES == warp])

    def fence(self, lanes: I64, plane: int) -> None:
        """Lanes fence what they were told for the asynchronous proxy."""
        for lane in lanes.tolist() if self.ever else ():
            found: Acquired | None = self.told[lane]
            if found is not None:
                self.fenced[lane, plane] = found

    def knows(self, lane: int, rec: int, cluster: int | None) -> bool:
        """Whether a lane was told of an access: of its own cluster (None), or of another one."""
        found: Acquired | None = self.told[lane]
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


class Hearsay:
    """What was told by shuffles, and what by barriers."""

    def __init__(self, clocks: Clocks) -> None:
        text = "; a lane of this warp knows of it, and has told the others by a shuffle"
        self.shuffled = Told(clocks, "warp", text)
        text = "; a thread here has seen by a relaxed access that it is done, and neither acquires "
        self.looked = Told(clocks, "acquire", text + "nor has a fence behind that")
        self.each = (self.shuffled, self.looked)

    def start_wave(self) -> None:
        for told in self.each:
            told.start_wave()

    @property
    def ever(self) -> bool:
        """Whether anybody was told anything."""
        return self.shuffled.ever or self.looked.ever

    def fence(self, lanes: I64, plane: int) -> None:
        for told in self.each:
            told.fence(lanes, plane)

    def knows(self, lane: int, rec: int, cluster: int | None) -> Told | None:
        """How a lane was told of an access, if it was."""
        if not self.ever:
            return None
        return next((told for told in self.each if told.knows(lane, rec, cluster)), None)

    def hides(self, lane: int, rec: int, cluster: int | None, plane: int) -> bool:
        """Whether it was told of an access that nobody has fenced for the asynchronous proxy."""
        return any(told.hides(lane, rec, cluster, plane) for told in self.each if told.ever)
