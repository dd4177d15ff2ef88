"""Order by barriers of all kinds and by the ends of blocks; mbarriers as objects in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from fragir.emulator.checks.races.clocks import (
    BLOCK,
    CLUSTER,
    COLUMN_MASK,
    MBARRIER,
    PENDING,
    TIME_SHIFT,
    Clocks,
    distinct,
    later,
    record,
    site_of,
)
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.shared_places import SharedPlaces
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.checks.races.block_exits import BlockExits
    from fragir.emulator.checks.races.hearsay import Acquired
    from fragir.emulator.checks.races.strong_accesses import StrongAccesses
    from fragir.emulator.machine.events import BarrierEvent, Event
    from fragir.emulator.machine.machine import Machine


# -- mbarrier objects ------------------------------------------------------------------------------
# Mbarriers as objects in memory: initialised before they are used, and left alone while in use.


class MbarrierObjects:
    def __init__(self, context: Context, places: SharedPlaces) -> None:
        self.clocks, self.sites = context.clocks, context.sites
        self.findings, self.places = context.findings, places
        self.start_wave()

    def start_wave(self) -> None:
        """New blocks: there is no mbarrier."""
        self.live: dict[int, int] = {}  # position -> the record of its initialisation
        self.used: set[int] = set()  # those that anybody has arrived at, or looked at
        self.lost: dict[int, int] = {}  # overwritten before any use -> by which instruction
        #: Initialised, and not yet known to be visible to the asynchronous proxy: its record, lane.
        self.unfenced: dict[int, tuple[int, int]] = {}

    def initialise(self, position: int, lane: int) -> None:
        """mbarrier.init."""
        clocks = self.clocks
        if position in self.live:
            rec = self.live[position]
            harmless = self.is_unused(position, lane)
            text = "this mbarrier is in use; mbarrier.inval it before another mbarrier.init"
            if harmless:
                text = "this mbarrier is valid, though nobody has used it"
            letter = "mbarrier.init" if harmless else None
            self._say("mbarrier", site_of(rec), lane, position, text, letter)
        self._follow_accesses(position, lane)
        self.used.discard(position)
        self.lost.pop(position, None)
        self.live[position] = record(clocks.now, int(clocks.own[lane]), self.sites.current)
        self.unfenced[position] = self.live[position], lane
        if self.places.unit <= 8:
            self._hold(position, record(PENDING, MBARRIER, self.sites.current))
        clocks.now += 1

    def invalidate(self, position: int, lane: int) -> None:
        """mbarrier.inval."""
        self.live.pop(position, None)
        rec = record(self.clocks.now, int(self.clocks.own[lane]), self.sites.current)
        self._hold(position, rec)

    def _follow(self, position: int, lane: int, records: I64, text: str) -> None:
        """What threads did must be known to the lane that begins an mbarrier."""
        records = records[(records > 0) & (records & COLUMN_MASK < self.clocks.lanes)]
        bad = self.clocks.unordered(np.full(records.shape, lane), records)
        if bad.any():
            found = records[bad]
            apart = (found & COLUMN_MASK) // LANES != self.clocks.own[lane] // LANES
            rec = int(found[np.argmax(apart)])  # one of another warp, if there is
            text = f"{text}: {self.findings.who(lane, rec)}"
            self._say("mbarrier", site_of(rec), lane, position, text)

    def _follow_accesses(self, position: int, lane: int) -> None:
        """An mbarrier begins where data have been: those who read or wrote them are done."""
        places = self.places
        if places.unit > 8:
            return  # a place holds more than the mbarrier
        at = np.arange(position >> places.shift, (position + 7 >> places.shift) + 1)
        text = "nothing orders this after the {} of the same bytes"
        self._follow(position, lane, places.written[at], text.format("write"))
        for records, masks in places.reads_of(at):
            those = masks[:, None] >> np.arange(LANES, dtype=np.uint32) & np.uint32(1) != 0
            those &= records[:, None] > 0
            entry, number = np.nonzero(those)
            read: I64 = records[entry] & ~np.int64(LANES - 1) | number
            self._follow(position, lane, read, text.format("read"))

    def _hold(self, position: int, rec: int) -> None:
        places = self.places
        places.written_at(rec >> TIME_SHIFT)
        for at in range(position >> places.shift, (position + 7 >> places.shift) + 1):
            places.written[at] = rec

    def is_unused(self, position: int, lane: int) -> bool:
        """Whether a lane knows of an mbarrier's initialisation and nobody has used it since."""
        rec = self.live.get(position)
        if rec is None or position in self.used:
            return False
        return not self.clocks.unordered(np.array([lane]), np.array([rec])).any()

    def is_harmless_write(self, site: int, lane: int, at: int) -> bool:
        """An ordinary write to a live mbarrier; whether it does no harm, as long as it is so."""
        position = at & ~7
        if not self.is_unused(position, lane):
            return False
        del self.live[position]
        self.lost[position] = site
        return True

    def use(self, position: int, lanes: I64) -> None:
        """Those who use an mbarrier must know that it has been initialised."""
        self.used.add(position)
        if (site := self.lost.pop(position, None)) is not None:
            where = self.findings.what_at(record(0, 0, site))
            text = f"this mbarrier has been overwritten by {where}"
            self._say("mbarrier", site, int(lanes[0]), position, text)
        rec = self.live.get(position)
        if rec is None:
            return
        bad = self.clocks.unordered(lanes, np.full(lanes.shape, rec, np.int64))
        if bad.any():
            lane = int(lanes[bad][0])
            who = self.findings.who(lane, rec)
            text = f"nothing orders this after the mbarrier's initialisation: {who}"
            self._say("mbarrier", site_of(rec), lane, position, text)

    # -- the asynchronous proxy must see the initialisation ------------------------------------

    def note_fenced_initialisations(self, lanes: I64) -> None:
        """fence.mbarrier_init, or the cluster's barrier: what these lanes have initialised."""
        if self.unfenced:
            these = {int(lane) for lane in lanes}
            self.unfenced = {p: x for p, x in self.unfenced.items() if x[1] not in these}

    def fence(self, lanes: I64) -> None:
        """fence.mbarrier_init: others will see which mbarriers these lanes have initialised."""
        self.note_fenced_initialisations(lanes)
        clocks = self.clocks
        for scope in clocks.levels:
            if scope <= CLUSTER:
                clocks.known[clocks.fenced_plane(scope), lanes, clocks.own[lanes]] = clocks.now
        clocks.now += 1

    def note_signal(self, position: int, lane: int) -> None:
        """A bulk copy is issued that will signal an mbarrier."""
        rec, _ = self.unfenced.pop(position, (0, 0))
        if not rec or not self.clocks.invisible(np.array([lane]), np.array([rec])).any():
            return
        who = self.findings.who(lane, rec)
        text = f"it signals an mbarrier, and nothing makes {who} visible to the "
        text += "asynchronous proxy (fence.mbarrier_init or fence.proxy.async)"
        self._say("proxy-fence", site_of(rec), lane, position, text, "proxies")

    def _say(
        self, kind: str, other: int, lane: int, position: int, text: str, letter: str | None = None
    ) -> None:
        self.findings.shared(kind, self.sites.current, other, lane, position, text, letter)


class Arrivals:
    """What the arrival that happens, at an mbarrier or the cluster's barrier, hands on."""

    def __init__(self, context: Context) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites

    def is_relaxed(self) -> bool:
        """Whether the arrival that happens says that it orders nothing."""
        return "relaxed" in self.sites.words()

    def published_records(self, lanes: I64) -> I32:
        """What lanes publish that arrive at an mbarrier or the cluster's barrier."""
        if not self.is_relaxed():
            return self.clocks.publish(lanes)
        scope = CLUSTER if self.machine.cluster_size > 1 else BLOCK
        vector = self.clocks.handed_on(lanes, scope)
        self.clocks.now += 1
        return vector


class ClusterPhases:
    """Which arrivals at the barrier of a cluster, and which waits for it, are of one phase."""

    def __init__(self, clocks: Clocks) -> None:
        self._lanes = clocks.lanes
        self._counts = np.zeros((2, len(clocks.own)), np.int64)  # arrivals, waits of each lane

    def of(self, kind: str, lanes: I64) -> Iterator[tuple[int, int, I64]]:
        """(cluster, phase, lanes of it): the next arrival of each, or its next wait."""
        counts = self._counts[0 if kind == "arrive" else 1]
        groups = np.stack([lanes // self._lanes, counts[lanes]])
        counts[lanes] += 1
        for cluster, phase in np.unique(groups, axis=1).T.tolist():
            yield cluster, phase, lanes[(groups[0] == cluster) & (groups[1] == phase)]


def are_whole(machine: Machine, blocks: I64) -> Bools:
    """Of each lane, given by its block: whether all that is alive of that block is among them."""
    alive = machine.alive.reshape(machine.blocks, -1).sum(axis=1)
    return (np.bincount(blocks, minlength=machine.blocks) == alive)[blocks]


class Barriers:
    """`exits` is told who has come to a relaxed barrier of the cluster, `mbarriers` whose
    initialisations an arrival fences, `strong` who stands at a barrier."""

    def __init__(
        self,
        context: Context,
        arrivals: Arrivals,
        strong: StrongAccesses,
        mbarriers: MbarrierObjects,
        exits: BlockExits,
    ) -> None:
        self.machine, self.clocks = context.machine, context.clocks
        self.arrivals, self.strong = arrivals, strong
        self.mbarriers, self.exits = mbarriers, exits
        self.start_wave()

    def start_wave(self) -> None:
        """New blocks: nobody has arrived anywhere."""
        self._blocks: dict[tuple[int, int], I32] = {}  # by block and barrier
        self._clusters: dict[tuple[int, int], I32] = {}  # by cluster and phase
        #: The same of all that those know who have arrived relaxed.
        self._whole: dict[tuple[int, int], I32] = {}
        #: By block and barrier, or by cluster, from -1 down, and phase: what those who have
        #: arrived have heard.
        self._heard: dict[tuple[int, int], list[Acquired]] = {}
        self._phases = ClusterPhases(self.clocks)

    def event(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        if kind == "wait":
            return
        clocks, machine = self.clocks, self.machine
        if kind != "release":
            self.strong.arrive(lanes)
        if kind == "sync":
            return
        if scope == "cluster":
            self._cluster(kind, lanes)
            return
        per = machine.warps_per_block * LANES
        if self.strong.meets:
            self._tell(kind, number, lanes)
        if kind == "release" and machine.cluster_size == 1 and len(lanes) % per == 0 and len(lanes):
            first, last = int(lanes[0]), int(lanes[-1])  # lanes ascend
            if first % per == 0 and last - first + 1 == len(lanes):
                clocks.join_whole_blocks(first, last + 1)
                return
        blocks = lanes // per
        if kind == "release" and machine.cluster_size == 1:
            all_of = are_whole(machine, blocks)
            if all_of.any():
                clocks.join_blocks(lanes[all_of])
            lanes, blocks = lanes[~all_of], blocks[~all_of]
        for block in distinct(blocks) if len(blocks) else ():
            part = lanes[blocks == block]
            key = int(block), number
            vector = clocks.publish(part)
            before = self._blocks.pop(key, None) if kind == "release" else self._blocks.get(key)
            vector = later(vector, before)
            if kind == "release":
                clocks.acquire(part, vector)
            else:
                self._blocks[key] = vector

    def _tell(self, kind: str, number: int, lanes: I64) -> None:
        """What somebody has heard of who comes to a block's barrier, for those who leave it."""
        blocks = lanes // (self.machine.warps_per_block * LANES)
        alive = self.machine.alive.reshape(self.machine.blocks, -1).sum(axis=1)
        for block in distinct(blocks).tolist():
            part = lanes[blocks == block]
            key = block, number
            if kind == "arrive":
                self._heard.setdefault(key, []).extend(self.strong.told.looked.of(part))
            else:
                whole = len(part) == alive[block]
                self.strong.meet(part, self._heard.pop(key, ()), block if whole else None)

    def _cluster(self, kind: str, lanes: I64) -> None:
        clocks = self.clocks
        for cluster, phase, part in self._phases.of(kind, lanes):
            key = cluster, phase
            if kind == "arrive":
                self._clusters.pop((cluster, phase - 2), None)
                if self.arrivals.is_relaxed():
                    full = clocks.publish(part)
                    self._whole[key] = later(full, self._whole.get(key))
                else:
                    self.mbarriers.note_fenced_initialisations(part)
                published = self.arrivals.published_records(part)
                self._clusters[key] = later(published, self._clusters.get(key))
                if self.strong.meets:
                    heard = self._heard.setdefault((-1 - cluster, phase), [])
                    heard.extend(self.strong.told.looked.of(part))
            elif key in self._clusters:
                clocks.acquire(part, self._clusters[key])
                if heard := self._heard.get((-1 - cluster, phase)):
                    self.strong.meet(part, heard)
                self.exits.may_exit(part, self._whole.get(key))


# -- mbarrier phases -------------------------------------------------------------------------------
# Order by mbarriers: from the arrivals and copies of a phase to those who see it complete.


class MbarrierPhases:
    """`objects` is told of every use, `exits` of arrivals at other blocks."""

    def __init__(
        self, context: Context, arrivals: Arrivals, objects: MbarrierObjects, exits: BlockExits
    ) -> None:
        self.clocks, self.arrivals = context.clocks, arrivals
        self.objects, self.exits = objects, exits
        #: What is left of what a relaxed wait makes known, to these lanes.
        self.defers: Callable[[I32, I64], I32] | None = None
        self.start_wave()

    def start_wave(self) -> None:
        self._arrived: dict[int, I32] = {}  # in the phase that runs
        self._phases: dict[int, I32] = {}  # up to the last one complete
        self._landed: dict[int, tuple[int, int]] = {}  # mbarrier -> its column, latest copy
        #: What the arrival that happens hands on, where that was known before.
        self.handing_on: I32 | None = None

    def note_copied(self, position: int, column: int, time: int) -> None:
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
        if kind in ("arrive", "expect") and self.handing_on is None:
            self.exits.arrives(position, lanes)
        if kind == "arrive":
            published, self.handing_on = self.handing_on, None
            if published is None:
                published = self.arrivals.published_records(lanes)
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
            vector = self._phases[position]
            if self.defers is not None and self.arrivals.is_relaxed():
                vector = self.defers(vector, lanes)
            clocks.acquire(lanes, vector)
