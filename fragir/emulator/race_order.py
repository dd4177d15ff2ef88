"""What puts accesses in an order: barriers, mbarriers, strong accesses behind fences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fragir.emulator.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    SITE_MASK,
    TIME_SHIFT,
    Clocks,
    distinct,
    record,
)
from fragir.emulator.common import I64, LANES
from fragir.emulator.hooks import Access, Event
from fragir.emulator.race_global import Knowledge, World
from fragir.emulator.race_mbarriers import Mbarriers
from fragir.emulator.race_shadow import RaceShadow

if TYPE_CHECKING:
    from fragir.emulator.program import Program
    from fragir.emulator.state import Machine

STRONG_WORDS = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}
_RELEASING = {"release", "acq_rel", "sc"}
_ACQUIRING = {"acquire", "acq_rel", "sc"}


class Order(Mbarriers):
    """`by_memory`: whether plain memory is used to synchronise (PTX ISA 9.2, section 8.9)."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        clocks: Clocks,
        shadow: RaceShadow,
        strong_writes: bool,
        by_memory: bool,
    ) -> None:
        super().__init__(machine, program, clocks, shadow, strong_writes)
        self.by_memory = by_memory
        self.world = World(machine, clocks)
        self.forget()

    def forget(self) -> None:
        """New blocks: nobody has arrived anywhere."""
        super().forget()
        self.arrived: dict[tuple[str, int, int], npt.NDArray[np.int32]] = {}
        self.phases: dict[int, npt.NDArray[np.int32]] = {}
        self.places: dict[tuple[int, str, int], npt.NDArray[np.int32]] = {}
        self.landed: dict[int, tuple[int, int]] = {}  # mbarrier -> its column, latest copy
        #: What lanes have read relaxed and not learned yet: lane -> place -> knowledge.
        self.heard: dict[int, dict[tuple[int, str, int], tuple[Any, Knowledge | None]]] = {}
        #: What blocks of a cluster know when they exit, besides what their lanes do.
        self.exit_known: dict[int, npt.NDArray[np.int32]] = {}
        self.whole: dict[tuple[int, int], npt.NDArray[np.int32]] = {}
        #: Arrivals at mbarriers of other blocks: (position, column) -> the latest record.
        self.remote: dict[tuple[int, int], int] = {}
        #: Of the cluster's barrier, by lane: arrivals and waits so far.
        self.cluster_counts = np.zeros((2, self.machine.warps * LANES), np.int64)
        clusters = self.machine.warps * LANES // self.clocks.lanes
        #: Whether some lane of the cluster has fenced anything that relaxed accesses hand on.
        self.fences_in = np.zeros(clusters, np.bool_)

    def _relaxed(self) -> bool:
        """Whether the arrival that happens says that it orders nothing."""
        return "relaxed" in self.program.code[self.site].ins.opcode

    def _arrival(self, lanes: I64) -> npt.NDArray[np.int32]:
        """What lanes publish that arrive at an mbarrier or the cluster's barrier."""
        if not self._relaxed():
            return self.clocks.publish(lanes)
        vector = self.clocks.handed_on(lanes)
        self.clocks.now += 1
        return vector

    def fence_memory(self, lanes: I64) -> None:
        """fence, membar: what was read takes effect, what is known can be handed on."""
        self.deliver(lanes)
        self._release(lanes)

    def _release(self, lanes: I64) -> None:
        self.clocks.fence(lanes, self.clocks.fenced)
        self.fences_in[lanes // self.clocks.lanes] = True

    def fence_init(self, lanes: I64) -> None:
        """fence.mbarrier_init: others will see which mbarriers these lanes have initialised."""
        self.initialisations_fenced(lanes)
        clocks = self.clocks
        if clocks.fenced:
            clocks.known[clocks.fenced, lanes, clocks.own[lanes]] = clocks.now
            clocks.now += 1

    # -- synchronisation ---------------------------------------------------------------------------

    def on_barrier(
        self,
        kind: Literal["arrive", "sync", "release"],
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        clocks, machine = self.clocks, self.machine
        if kind != "release":
            self.deliver(lanes)
        if kind == "sync":
            return
        size = machine.warps_per_block * LANES
        if scope == "cluster":
            self._cluster(kind, lanes)
            return
        blocks = lanes // size
        if kind == "release" and machine.cluster_size == 1:
            alive = machine.alive.reshape(machine.blocks, -1).sum(axis=1)
            whole = np.bincount(blocks, minlength=machine.blocks) == alive
            all_of = whole[blocks]
            if all_of.any():
                clocks.join_blocks(lanes[all_of])
            lanes, blocks = lanes[~all_of], blocks[~all_of]
        for block in distinct(blocks) if len(blocks) else ():
            part = lanes[blocks == block]
            key = ("block", int(block), number)
            vector = clocks.publish(part)
            before = self.arrived.pop(key, None) if kind == "release" else self.arrived.get(key)
            vector = merge(vector, before)
            if kind == "release":
                clocks.acquire(part, vector)
            else:
                self.arrived[key] = vector

    def _cluster(self, kind: str, lanes: I64) -> None:
        clocks = self.clocks
        counts = self.cluster_counts[0 if kind == "arrive" else 1]
        groups = np.stack([lanes // clocks.lanes, counts[lanes]])
        counts[lanes] += 1
        for cluster, phase in np.unique(groups, axis=1).T.tolist():
            part = lanes[(groups[0] == cluster) & (groups[1] == phase)]
            key = ("cluster", cluster, phase)
            if kind == "arrive":
                self.arrived.pop(("cluster", cluster, phase - 2), None)
                if self._relaxed():
                    full = clocks.publish(part)
                    self.whole[cluster, phase] = merge(full, self.whole.get((cluster, phase)))
                else:
                    self.initialisations_fenced(part)
                self.arrived[key] = merge(self._arrival(part), self.arrived.get(key))
            elif key in self.arrived:
                clocks.acquire(part, self.arrived[key])
                self._may_exit(part, self.whole.get((cluster, phase)))

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        clocks = self.clocks
        key = ("mbarrier", position, 0)
        if kind == "init":
            self.initialise(position, int(lanes[0]))
            self.phases.pop(position, None)
            self.arrived.pop(key, None)
            return
        if kind == "inval":
            self.invalidate(position, int(lanes[0]))
            return
        if kind in ("arrive", "expect", "test", "wait"):
            self.use(position, lanes)
        if kind in ("arrive", "expect"):
            self._remote(position, lanes)
        if kind == "arrive":
            self.arrived[key] = merge(self._arrival(lanes), self.arrived.get(key))
        elif kind == "phase":
            vector = merge(
                np.zeros((clocks.planes, clocks.width), np.int32), self.arrived.pop(key, None)
            )
            if position in self.landed:
                column, time = self.landed[position]
                vector[0, column] = time
            self.phases[position] = merge(vector, self.phases.get(position))
        elif kind == "wait" and position in self.phases:
            clocks.acquire(lanes, self.phases[position])

    # -- blocks of a cluster must outlive what others do in their shared memory ----------------

    def _may_exit(self, lanes: I64, vector: npt.NDArray[np.int32] | None) -> None:
        """A relaxed barrier hands on no data, but all have come to it."""
        if vector is not None:
            for block in np.unique(self.machine.block_of[lanes // LANES]):
                self.exit_known[int(block)] = merge(vector, self.exit_known.get(int(block)))

    def _remote(self, position: int, lanes: I64) -> None:
        if self.machine.cluster_size > 1:
            block = position // max(self.machine.memory.shared_stride, 1)
            for lane in lanes[self.machine.block_of[lanes // LANES] != block]:
                column = int(self.clocks.own[lane])
                self.remote[position, column] = record(self.clocks.now, column, self.site)

    def on_finish(self) -> None:
        if self.machine.cluster_size == 1:
            return
        clocks, shadow = self.clocks, self.shadow
        per, stride = self.machine.warps_per_block * LANES, self.machine.memory.shared_stride
        for block in range(self.machine.resident // self.machine.warps_per_block):
            lanes = block * per + np.arange(per)
            known = clocks.rows(lanes)[0].max(axis=0)[None]
            if block in self.exit_known:
                known = merge(known[None, 0], self.exit_known[block][:1])
            first, end = block * stride >> shadow.shift, (block + 1) * stride >> shadow.shift
            at = np.arange(first, end)
            mine = lanes[0] % clocks.lanes // per
            self._exits(block, known[0], at, shadow.read[first:end, -1], mine, per)
            self._exits(block, known[0], at, shadow.written[first:end], mine, per)
            there = [(p, r) for (p, _), r in self.remote.items() if p // stride == block]
            if there:
                places = np.array([p >> shadow.shift for p, _ in there])
                recs = np.array([r for _, r in there])
                self._exits(block, known[0], places, recs, mine, per)

    def _exits(self, block: int, known: Any, places: I64, recs: I64, rank: int, per: int) -> None:
        """Accesses of other blocks of the cluster that this block does not wait for."""
        column = recs & COLUMN_MASK
        foreign = (recs != 0) & (column < self.clocks.lanes) & (column // per != rank)
        bad = foreign & (recs >> TIME_SHIFT > known[np.minimum(column, len(known) - 1)])
        if bad.any():
            index = int(np.flatnonzero(bad)[0])
            rec = int(recs[index])
            cluster = block // self.machine.cluster_size
            lane = cluster * self.clocks.lanes + (rec & COLUMN_MASK)
            who, _ = self.machine.place(block * self.machine.warps_per_block)
            text = f"block {who}, whose shared memory this is, does not wait for it and may exit; "
            text += "an access to a block that is gone stops the kernel"
            site = rec >> COLUMN_BITS & SITE_MASK
            self.find("race", site, site, lane, int(places[index]) << self.shadow.shift, text)

    # -- strong accesses -----------------------------------------------------------------------

    def hand_on(self, access: Access) -> None:
        """Strong accesses to one place hand on what has been fenced before.

        A lane that reads relaxed learns it at its next fence, or barrier: `deliver`.
        """
        words = access.instruction.opcode
        if access.kind != "atomic" and STRONG_WORDS.isdisjoint(words):
            return
        clocks = self.clocks
        releases = not _RELEASING.isdisjoint(words)
        acquires = not _ACQUIRING.isdisjoint(words)
        for arena, at, lanes in access.parts():
            which = "shared" if arena is self.machine.memory.shared else "global"
            at, lanes = at.ravel(), lanes.ravel()
            if releases:
                self._release(lanes)
            clusters = lanes // clocks.lanes
            publishes = (access.kind != "load") & self.fences_in[clusters]
            hears = access.kind != "store" and bool(self.places or self.world.published)
            if not hears and not publishes.any():
                continue
            for position in np.unique(at) if hears else np.unique(at[publishes]):
                here = at == position
                for cluster in np.unique(clusters[here]):
                    part = lanes[here & (clusters == cluster)]
                    key = (int(cluster), which, int(position))
                    if access.kind != "load" and self.fences_in[cluster]:
                        vector = clocks.handed_on(part)
                        clocks.now += 1
                        self.places[key] = merge(vector, self.places.get(key))
                        if which == "global":
                            self.world.publish(int(position), int(cluster), vector)
                    if access.kind != "store":
                        self._hear(key, part, acquires)

    def _hear(self, key: tuple[int, str, int], lanes: I64, acquires: bool) -> None:
        """Lanes of one cluster have read what was handed on at a place."""
        vector = self.places.get(key)
        known = self.world.published.get(key[2]) if key[1] == "global" else None
        if vector is None and known is None:
            return
        if acquires:
            self._learn(vector, known, lanes)
            return
        for lane in lanes:
            self.heard.setdefault(int(lane), {})[key] = vector, known

    def _learn(self, vector: Any, known: Knowledge | None, lanes: I64) -> None:
        if vector is not None:
            self.clocks.acquire(lanes, vector)
        if known is not None:
            self.world.acquire(known, lanes)

    def deliver(self, lanes: I64) -> None:
        """What lanes have heard by relaxed reads takes effect."""
        if not self.heard:
            return
        for lane in lanes:
            for vector, known in self.heard.pop(int(lane), {}).values():
                self._learn(vector, known, np.array([lane]))


def merge(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32]:
    """The later of two times everywhere; columns that one of them lacks are never."""
    if b is None:
        return a
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    result = a.copy()
    result[:, : b.shape[1]] = np.maximum(a[:, : b.shape[1]], b)
    return result
