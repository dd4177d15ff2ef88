"""What clusters know of each other, and what lanes know only by letting each other know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fragir.emulator.checks.races.clocks import COLUMN_MASK, PENDING, TIME_SHIFT, Clocks, later
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Array, Bools, distinct

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine


# -- clusters --------------------------------------------------------------------------------------
# What clusters know of each other: they share global memory only.
#
# Within a cluster the clocks order accesses (`clocks.py`). Between clusters only strong accesses
# do, behind fences: what a lane learns of another cluster is an event in its own time, known to
# whoever knows the lane up to then.

Vector: TypeAlias = I32
#: cluster of the grid -> times of its lanes and agents; and, in a second row, of what fences have
#: shown to the asynchronous proxy.
Knowledge = dict[int, Vector]
#: In what is known: the grids before this one. Clusters are counted from 1; an access of the i-th
#: of those grids, the latest first, has the owner -1 - i.
GRIDS = 0


class Events:
    """At `times[i]` the lane of `columns[i]` learned `learned[i]` of other clusters."""

    def __init__(self) -> None:
        self.learned: list[Knowledge] = []
        self._room: I64 = np.zeros((2, 32), np.int64)

    def add(self, time: int, column: int, known: Knowledge) -> None:
        count = len(self.learned)
        if count == self._room.shape[1]:
            self._room = np.concatenate([self._room, np.zeros_like(self._room)], axis=1)
        self._room[:, count] = time, column
        self.learned.append(known)

    @property
    def times(self) -> I64:
        return self._room[0, : len(self.learned)]

    @property
    def columns(self) -> I64:
        return self._room[1, : len(self.learned)]


class Clusters:
    """What clusters know of each other. Clusters are numbered over the grid, from 1."""

    def __init__(self, machine: Machine, clocks: Clocks) -> None:
        self.machine, self.clocks = machine, clocks
        blocks = machine.grid[0] * machine.grid[1] * machine.grid[2]
        self.alone = blocks == machine.cluster_size and not machine.chained
        self.published: dict[int, Knowledge] = {}
        self.events: dict[int, Events] = {}
        # What a lane has learned once: a poll that reads the same again is no event.
        self._learned: set[tuple[int, int, int]] = set()
        self._merged: dict[tuple[int, bytes], Knowledge] = {}
        self._of_lane: dict[tuple[int, int, bool], tuple[Bools, Knowledge]] = {}
        self.first = 1
        self.waited_for = 0  # of the grids before: so many griddepcontrol.wait waits for
        self.all_of_them: Vector = np.full((2, 1), PENDING, np.int32)
        self._past: Knowledge = {GRIDS: self.all_of_them}
        self._reached: Bools = np.zeros(0, np.bool_)  # lanes that know of them

    def start_wave(self, first: int) -> None:
        """`first`: the grid's number of the first resident cluster."""
        self.first = first
        self._reached[...] = False

    def expect_grids(self, waited_for: int) -> None:
        """Grids before this one may still run: the latest `waited_for` until one waits."""
        self.waited_for = waited_for
        self._reached = np.zeros(self.machine.warps * LANES, np.bool_)

    def wait_for_grids(self, lanes: I64) -> None:
        """griddepcontrol.wait: the lanes know what the grids before have done."""
        for cluster in distinct(lanes // self.clocks.lanes).tolist():
            self.acquire(self._past, lanes[lanes // self.clocks.lanes == cluster])

    def _by_grids(self, lanes: I64, owners: I32) -> Bools:
        """Which accesses of grids before this one the lanes do not know."""
        waiting = ~self._reached[lanes]
        if self.events and waiting.any():
            for lane in distinct(lanes[waiting]).tolist():
                self._reached[lane] = GRIDS in self.knowledge(lane)
        return ~self._reached[lanes] | (owners < -self.waited_for)

    def publish(self, position: int, cluster: int, vector: Array) -> None:
        """A resident cluster hands on times by a strong write to a place."""
        if self.alone:
            return
        number = self.first + cluster
        known = dict(self.published.get(position, {}))
        rows = vector[[0, self.clocks.proxy_global]]
        known[number] = later(rows, known.get(number))
        self.published[position] = known

    def acquire(self, known: Knowledge, lanes: I64) -> None:
        """Lanes of one cluster learn what was published at a place."""
        cluster = int(lanes[0]) // self.clocks.lanes
        number = self.first + cluster
        events = self.events.setdefault(number, Events())
        for lane in lanes:
            column = int(self.clocks.own[lane])
            key = (number, column, id(known))  # an event keeps `known`, so no other has its id
            if key not in self._learned:
                self._learned.add(key)
                events.add(self.clocks.now, column, known)
        self.clocks.now += 1

    def knowledge(self, lane: int, proxy: bool = False) -> Knowledge:
        """What a lane knows of other clusters; `proxy`: at its last fence of that proxy."""
        cluster = lane // self.clocks.lanes
        number = self.first + cluster
        events = self.events.get(number)
        if events is None:
            return {}
        if proxy:
            mine = self.clocks.known[self.clocks.proxy_global, lane]
        else:
            mine = self.clocks.rows(np.array([lane]))[0, 0]
        heard: Bools = mine[events.columns] >= events.times
        key = number, np.packbits(heard).tobytes()
        if (found := self._merged.get(key)) is not None:
            self._of_lane[number, lane, proxy] = heard, found
            return found
        # A lane forgets nothing, and what it knew brings nothing new: only what it heard since.
        old, known = self._of_lane.get((number, lane, proxy), (heard[:0], {}))
        since = heard.copy()
        since[: len(old)] &= ~old
        best: Knowledge = dict(known)
        work = [events.learned[i] for i in np.flatnonzero(since)]
        while work:
            for other, vector in work.pop().items():
                before = best.get(other)
                if before is not None and covers(before, vector):
                    continue
                merged = best[other] = later(vector, before)
                if (theirs := self.events.get(other)) is None:
                    continue
                times, columns = theirs.times, theirs.columns
                now = times <= merged[0, columns]
                if before is not None:
                    now &= times > before[0, columns]
                work += [theirs.learned[i] for i in np.flatnonzero(now)]
        self._merged[key] = best
        self._of_lane[number, lane, proxy] = heard, best
        return best

    def unknown(self, lanes: I64, records: I64, owners: I32) -> Bools:
        """Which accesses of lanes of other clusters the lanes do not know (flat arrays)."""
        bad: Bools = np.ones(len(lanes), np.bool_)
        if (past := owners < 0).any():
            bad[past] = self._by_grids(lanes[past], owners[past])
        if not self.events:
            return bad
        time, column = records >> TIME_SHIFT, records & COLUMN_MASK
        for lane in distinct(lanes):
            known = self.knowledge(int(lane))
            if not known:
                continue
            mine = np.flatnonzero(lanes == lane)
            for owner in distinct(owners[mine]):
                vector = known.get(int(owner))
                if vector is not None:
                    which = mine[owners[mine] == owner]
                    bad[which] = time[which] > at(vector[0], column[which])
        return bad

    def hidden(self, lane: int, records: I64, owners: I32) -> Bools:
        """Which writes of other clusters no fence has shown to the asynchronous proxy."""
        time, column = records >> TIME_SHIFT, records & COLUMN_MASK
        bad: Bools = (column < self.clocks.lanes) & (owners > 0)
        for row, known in enumerate((self.knowledge(lane, proxy=True), self.knowledge(lane))):
            for owner in distinct(owners[bad]):
                vector = known.get(int(owner))
                if vector is not None:
                    which = np.flatnonzero(bad & (owners == owner))
                    bad[which] = time[which] > at(vector[row], column[which])
        return bad


def at(times: Vector, columns: I64) -> Array:
    """The times of columns; never, of columns that came later."""
    return np.where(columns < len(times), times[np.minimum(columns, len(times) - 1)], 0)


def covers(a: Vector, b: Vector) -> bool:
    """Whether `a` has all that `b` has."""
    width = min(a.shape[1], b.shape[1])
    return bool((b[:, :width] <= a[:, :width]).all()) and not b[:, width:].any()


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
    def is_any_told(self) -> bool:
        """Whether anybody was told anything."""
        return self.shuffled.ever or self.looked.ever

    def fence(self, lanes: I64, plane: int) -> None:
        for told in self.each:
            told.fence(lanes, plane)

    def knows(self, lane: int, rec: int, cluster: int | None) -> Told | None:
        """How a lane was told of an access, if it was."""
        if not self.is_any_told:
            return None
        return next((told for told in self.each if told.knows(lane, rec, cluster)), None)

    def hides(self, lane: int, rec: int, cluster: int | None, plane: int) -> bool:
        """Whether it was told of an access that nobody has fenced for the asynchronous proxy."""
        return any(told.hides(lane, rec, cluster, plane) for told in self.each if told.ever)
