"""Order by bar, barrier and barrier.cluster: from those who arrive to those who wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fragir.emulator.checks.races.clocks import distinct, later
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.scopes import BLOCK, CLUSTER
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64

if TYPE_CHECKING:
    from fragir.emulator.checks.races.block_exits import BlockExits
    from fragir.emulator.checks.races.hearsay import Acquired
    from fragir.emulator.checks.races.mbarrier_objects import MbarrierObjects
    from fragir.emulator.checks.races.strong_accesses import StrongAccesses
    from fragir.emulator.machine.events import BarrierEvent


class Arrivals:
    """What the arrival that happens, at an mbarrier or the cluster's barrier, hands on."""

    def __init__(self, context: Context) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites

    def relaxed(self) -> bool:
        """Whether the arrival that happens says that it orders nothing."""
        return "relaxed" in self.sites.words()

    def published(self, lanes: I64) -> I32:
        """What lanes publish that arrive at an mbarrier or the cluster's barrier."""
        if not self.relaxed():
            return self.clocks.publish(lanes)
        scope = CLUSTER if self.machine.cluster_size > 1 else BLOCK
        vector = self.clocks.handed_on(lanes, scope)
        self.clocks.now += 1
        return vector


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
        #: Of the cluster's barrier, by lane: arrivals and waits so far.
        self._counts = np.zeros((2, self.machine.warps * LANES), np.int64)

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
            alive = machine.alive.reshape(machine.blocks, -1).sum(axis=1)
            whole = np.bincount(blocks, minlength=machine.blocks) == alive
            all_of = whole[blocks]
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
        counts = self._counts[0 if kind == "arrive" else 1]
        groups = np.stack([lanes // clocks.lanes, counts[lanes]])
        counts[lanes] += 1
        for cluster, phase in np.unique(groups, axis=1).T.tolist():
            part = lanes[(groups[0] == cluster) & (groups[1] == phase)]
            key = cluster, phase
            if kind == "arrive":
                self._clusters.pop((cluster, phase - 2), None)
                if self.arrivals.relaxed():
                    full = clocks.publish(part)
                    self._whole[key] = later(full, self._whole.get(key))
                else:
                    self.mbarriers.initialisations_fenced(part)
                published = self.arrivals.published(part)
                self._clusters[key] = later(published, self._clusters.get(key))
                if self.strong.meets:
                    heard = self._heard.setdefault((-1 - cluster, phase), [])
                    heard.extend(self.strong.told.looked.of(part))
            elif key in self._clusters:
                clocks.acquire(part, self._clusters[key])
                if heard := self._heard.get((-1 - cluster, phase)):
                    self.strong.meet(part, heard)
                self.exits.may_exit(part, self._whole.get(key))
