"""What puts accesses in an order: barriers, mbarriers, strong accesses behind fences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    SITE_MASK,
    TIME_SHIFT,
    Clocks,
    distinct,
    record,
)
from fragir.emulator.checks.races.global_memory import Knowledge, World
from fragir.emulator.checks.races.mbarriers import Mbarriers
from fragir.emulator.checks.races.shadow import RaceShadow
from fragir.emulator.checks.races.told import Told
from fragir.emulator.checks.scopes import ACQUIRING, BLOCK, CLUSTER, DEVICE, RELEASING, strength
from fragir.emulator.machine.events import Access, BarrierEvent, Event
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program


@dataclass(frozen=True, slots=True)
class Heard:
    """What a strong read has found: what threads within `scope` of the reader have published."""

    scope: int
    vector: npt.NDArray[np.int32] | None
    known: Knowledge | None = None


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
        self.told = Told()
        self.arrived: dict[tuple[str, int, int], npt.NDArray[np.int32]] = {}
        self.phases: dict[int, npt.NDArray[np.int32]] = {}
        #: (scope, block or cluster, space, position) -> what has been published there.
        self.places: dict[tuple[int, int, str, int], npt.NDArray[np.int32]] = {}
        self.landed: dict[int, tuple[int, int]] = {}  # mbarrier -> its column, latest copy
        #: What lanes have read relaxed and not learned yet: lane -> place -> knowledge.
        self.heard: dict[int, dict[tuple[int, int, str, int], Heard]] = {}
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
        scope = CLUSTER if self.machine.cluster_size > 1 else BLOCK
        vector = self.clocks.handed_on(lanes, scope)
        self.clocks.now += 1
        return vector

    def fence_memory(self, lanes: I64, scope: int) -> None:
        """fence, membar: what was read takes effect, what is known can be handed on."""
        self.deliver(lanes, scope)
        self._release(lanes, scope)

    def _release(self, lanes: I64, scope: int) -> None:
        self.clocks.release(lanes, scope)
        self.fences_in[lanes // self.clocks.lanes] = True

    def fence_init(self, lanes: I64) -> None:
        """fence.mbarrier_init: others will see which mbarriers these lanes have initialised."""
        self.initialisations_fenced(lanes)
        clocks = self.clocks
        for scope in clocks.levels:
            if scope <= CLUSTER:
                clocks.known[clocks.fenced(scope), lanes, clocks.own[lanes]] = clocks.now
        clocks.now += 1

    # -- synchronisation ---------------------------------------------------------------------------

    def on_barrier(
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
        """Strong accesses to one place hand on what has been fenced before, within their scopes.

        A lane that reads relaxed learns it at its next fence, or barrier: `deliver`.
        """
        words = access.instruction.opcode
        scope = strength(words)
        if not scope:
            return
        acquires = not ACQUIRING.isdisjoint(words)
        for arena, at, lanes in access.parts():
            which = "shared" if arena is self.machine.memory.shared else "global"
            at, lanes = at.ravel(), lanes.ravel()
            if not RELEASING.isdisjoint(words):
                self._release(lanes, scope)
            clusters = lanes // self.clocks.lanes
            publishes = (access.kind != "load") & self.fences_in[clusters]
            hears = access.kind != "store" and bool(self.places or self.world.published)
            if not hears and not publishes.any():
                continue
            blocks = lanes // (self.machine.warps_per_block * LANES)
            for position in np.unique(at) if hears else np.unique(at[publishes]):
                here = at == position
                for block in np.unique(blocks[here]):
                    part = lanes[here & (blocks == block)]
                    cluster = int(part[0]) // self.clocks.lanes
                    place = int(block), cluster, which, int(position)
                    if access.kind != "load" and self.fences_in[cluster]:
                        self._publish(*place, part, scope)
                    if access.kind != "store":
                        self._hear(self._found(*place, scope), part, acquires)

    def _publish(
        self, block: int, cluster: int, which: str, position: int, lanes: I64, scope: int
    ) -> None:
        """Lanes of one block write strongly to a place."""
        keys = [(BLOCK, block, which, position)]
        if scope >= CLUSTER and self.machine.cluster_size > 1:
            keys.append((CLUSTER, cluster, which, position))
        for key in keys:
            vector = self.clocks.handed_on(lanes, key[0])
            self.places[key] = merge(vector, self.places.get(key))
        if which == "global" and scope >= DEVICE:
            self.world.publish(position, cluster, self.clocks.handed_on(lanes, DEVICE))
        self.clocks.now += 1

    def _found(
        self, block: int, cluster: int, which: str, position: int, scope: int
    ) -> list[tuple[tuple[int, int, str, int], Heard]]:
        """What lanes of a block find at a place that they read in that scope."""
        found: list[tuple[tuple[int, int, str, int], Heard]] = []
        for key in ((BLOCK, block, which, position), (CLUSTER, cluster, which, position)):
            vector = self.places.get(key)
            if vector is not None and key[0] <= scope:
                found.append((key, Heard(key[0], vector)))
        if which == "global" and scope >= DEVICE:
            known = self.world.published.get(position)
            if known is not None:
                found.append(((DEVICE, 0, which, position), Heard(DEVICE, None, known)))
        return found

    def _hear(
        self, found: list[tuple[tuple[int, int, str, int], Heard]], lanes: I64, acquires: bool
    ) -> None:
        for key, heard in found:
            if acquires:
                self._learn(heard, lanes)
                continue
            for lane in lanes:
                self.heard.setdefault(int(lane), {})[key] = heard

    def told_of(self, lane: int, rec: int, cluster: int | None = None) -> bool:
        return self.told.knows(lane, rec, cluster)

    def _learn(self, heard: Heard, lanes: I64) -> None:
        self.told.acquire(heard.vector, heard.known, lanes)
        if heard.vector is not None:
            self.clocks.acquire(lanes, heard.vector)
        if heard.known is not None:
            self.world.acquire(heard.known, lanes)

    def deliver(self, lanes: I64, scope: int = DEVICE) -> None:
        """What lanes have heard by relaxed reads takes effect, as far as a fence reaches."""
        if not self.heard:
            return
        for lane in lanes:
            waiting = self.heard.pop(int(lane), {})
            rest = {key: heard for key, heard in waiting.items() if heard.scope > scope}
            if rest:
                self.heard[int(lane)] = rest
            for key, heard in waiting.items():
                if key not in rest:
                    self._learn(heard, np.array([lane]))


def merge(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32]:
    """The later of two times everywhere; columns that one of them lacks are never."""
    if b is None:
        return a
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    result = a.copy()
    result[:, : b.shape[1]] = np.maximum(a[:, : b.shape[1]], b)
    return result
