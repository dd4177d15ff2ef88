"""Order by strong accesses to one place, behind fences: plain memory that synchronises.

A strong write hands on what its lane has fenced (PTX ISA 9.2, section 8.9), within the scopes of
both; a lane that reads it learns that where it acquires, else at its next fence. Until then what it
tells others by a barrier is `hearsay.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.races.clocks import (
    ACQUIRING,
    BLOCK,
    CLUSTER,
    COLUMN_MASK,
    DEVICE,
    RELEASING,
    STRONG,
    TIME_SHIFT,
    later,
    record,
    site_of,
)
from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.hearsay import Acquired, Clusters, Hearsay, Knowledge
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools, distinct
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.context import AccessGroup
    from fragir.emulator.checks.races.global_places import Clash, GlobalPlaces
    from fragir.emulator.checks.races.ledger import Ledger
    from fragir.emulator.checks.races.shared_places import SharedPlaces
    from fragir.emulator.machine.events import Access
    from fragir.ptx.tree import Instruction


@dataclass(frozen=True, slots=True)
class Heard:
    """What a strong read has found: what threads within `scope` of the reader have published."""

    scope: int
    vector: I32 | None
    known: Knowledge | None = None


class StrongAccesses:
    def __init__(self, context: Context, clusters: Clusters, told: Hearsay) -> None:
        self.machine, self.clocks = context.machine, context.clocks
        self.clusters, self.told = clusters, told
        self.start_wave()

    def start_wave(self) -> None:
        #: (scope, block or cluster, space, position) -> what has been published there.
        self.places: dict[tuple[int, int, str, int], I32] = {}
        #: What lanes have read relaxed and not learned yet: lane -> place -> knowledge.
        self.heard: dict[int, dict[tuple[int, int, str, int], Heard]] = {}
        #: Lanes that have heard more since they last came to a barrier.
        self.fresh: set[int] = set()
        clusters = self.machine.warps * LANES // self.clocks.lanes
        #: Whether some lane of the cluster has fenced anything that relaxed accesses hand on.
        self.fences_in = np.zeros(clusters, np.bool_)

    # -- fences ------------------------------------------------------------------------------------

    def fence(self, lanes: I64, scope: int) -> None:
        """fence, membar: what was read takes effect, what is known can be handed on."""
        self.deliver(lanes, scope)
        self._release(lanes, scope)

    def _release(self, lanes: I64, scope: int) -> None:
        self.clocks.release(lanes, scope)
        self.fences_in[lanes // self.clocks.lanes] = True

    # -- accesses ----------------------------------------------------------------------------------

    def hand_on(self, access: Access, scope: int) -> None:
        """Strong accesses to one place hand on what has been fenced before, within their scopes.

        A lane that reads relaxed learns it at its next fence: `deliver`.
        """
        words = access.instruction.opcode
        reads = access.kind != "store" and is_returning(access.instruction)
        acquires = not ACQUIRING.isdisjoint(words)
        for arena, at, lanes in access.parts():
            which = "shared" if arena is self.machine.memory.shared else "global"
            at, lanes = at.ravel(), lanes.ravel()
            if not RELEASING.isdisjoint(words):
                self._release(lanes, scope)
            clusters = lanes // self.clocks.lanes
            publishes = (access.kind != "load") & self.fences_in[clusters]
            hears = reads and bool(self.places or self.clusters.published)
            if not hears and not publishes.any():
                continue
            blocks = lanes // (self.machine.warps_per_block * LANES)
            for position in distinct(at) if hears else distinct(at[publishes]):
                here = at == position
                for block in distinct(blocks[here]):
                    part = lanes[here & (blocks == block)]
                    cluster = int(part[0]) // self.clocks.lanes
                    place = int(block), cluster, which, int(position)
                    if access.kind != "load" and self.fences_in[cluster]:
                        self._publish(*place, part, scope)
                    if reads:
                        self._hear(self._heard_there(*place, scope), part, acquires)

    def _publish(
        self, block: int, cluster: int, which: str, position: int, lanes: I64, scope: int
    ) -> None:
        """Lanes of one block write strongly to a place."""
        keys = [(BLOCK, block, which, position)]
        if scope >= CLUSTER and self.machine.cluster_size > 1:
            keys.append((CLUSTER, cluster, which, position))
        for key in keys:
            vector = self.clocks.handed_on(lanes, key[0])
            self.places[key] = later(vector, self.places.get(key))
        if which == "global" and scope >= DEVICE:
            self.clusters.publish(position, cluster, self.clocks.handed_on(lanes, DEVICE))
        self.clocks.now += 1

    def _heard_there(
        self, block: int, cluster: int, which: str, position: int, scope: int
    ) -> list[tuple[tuple[int, int, str, int], Heard]]:
        """What lanes of a block find at a place that they read in that scope."""
        found: list[tuple[tuple[int, int, str, int], Heard]] = []
        for key in ((BLOCK, block, which, position), (CLUSTER, cluster, which, position)):
            vector = self.places.get(key)
            if vector is not None and key[0] <= scope:
                found.append((key, Heard(key[0], vector)))
        if which == "global" and scope >= DEVICE:
            known = self.clusters.published.get(position)
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
            for lane in lanes.tolist():
                self.heard.setdefault(lane, {})[key] = heard
                self.fresh.add(lane)

    def _learn(self, heard: Heard, lanes: I64) -> None:
        self.told.shuffled.acquire(heard.vector, heard.known, lanes)
        if heard.vector is not None:
            self.clocks.acquire(lanes, heard.vector)
        if heard.known is not None:
            self.clusters.acquire(heard.known, lanes)

    def deliver(self, lanes: I64, scope: int = DEVICE) -> None:
        """What lanes have heard by relaxed reads takes effect, as far as a fence reaches."""
        if not self.heard:
            return
        for lane in lanes.tolist():
            waiting = self.heard.pop(lane, {})
            rest = {key: heard for key, heard in waiting.items() if heard.scope > scope}
            if rest:
                self.heard[lane] = rest
            for key, heard in waiting.items():
                if key not in rest:
                    self._learn(heard, np.array([lane]))

    # -- barriers ----------------------------------------------------------------------------------

    @property
    def meets(self) -> bool:
        """Whether anybody has something to tell at a barrier."""
        return bool(self.fresh or self.told.looked.news)

    def arrive(self, lanes: I64) -> None:
        """Lanes come to a barrier: they will tell what they have heard."""
        for lane in sorted(self.fresh.intersection(lanes.tolist())) if self.fresh else ():
            self.fresh.discard(lane)
            for heard in self.heard.get(lane, {}).values():
                self.told.looked.acquire(heard.vector, heard.known, np.array([lane]))

    def meet(self, lanes: I64, others: Iterable[Acquired] = (), block: int | None = None) -> None:
        """Lanes leave a barrier, and know what `others` do; `block`: they are all of it."""
        looked, per = self.told.looked, self.machine.warps_per_block * LANES
        looked.tell(lanes, others)
        if block is None:
            looked.news.update(lanes.tolist())
        else:
            looked.news.difference_update(range(block * per, (block + 1) * per))


def is_returning(ins: Instruction) -> bool:
    """Whether a read gives what it has read: reductions form no acquire pattern (section 8.8)."""
    return not isinstance(ins.operands[0], (tree.Address, tree.Sink))


# -- observed --------------------------------------------------------------------------------------
# Strong writes that a strong read has seen are ordered before whatever follows that read.
#
# So says the causality order (PTX ISA 9.2, section 8.9.6): a write that precedes a read in
# observation order precedes what the read does in base causality order. Neither the writer's fence
# nor an acquire is needed: those order *other* accesses. A lock that is taken by looking at it may
# be reset by a plain store.


def is_unseen_in_shared(
    shared: SharedPlaces, clocks: Clocks, reading: Bools, places: I64, lanes: I64, records: I64
) -> Bools:
    """Which records of places are not of strong writes that some read has seen, of which the lanes
    know (flat arrays; `reading`: the sites of what reads)."""
    result: Bools = np.ones(len(places), np.bool_)
    strong = np.flatnonzero(records & STRONG)
    if not len(strong):
        return result
    places, lanes, records = places[strong], lanes[strong], records[strong]
    found = np.ones(len(strong), np.bool_)
    for reads, masks in shared.reads_of(places):
        sites = np.minimum(site_of(reads), len(reading) - 1)
        since = reading[sites] & (reads >> TIME_SHIFT >= records >> TIME_SHIFT) & (reads != records)
        warp = (reads & COLUMN_MASK) // LANES == clocks.own[lanes] // LANES
        own = warp & (masks >> (lanes % LANES).astype(np.uint32) & np.uint32(1) != 0)
        found &= ~(since & (own | ~clocks.unordered(lanes, reads)))
    result[strong] = found
    return result


#: Of a position: where a wider access that has it may begin.
_WIDER = (-1, -2, -4, -8, -16)


class ObservedWrites:
    """In global memory: which loads have seen the last write of a place is written down."""

    def __init__(self, places: GlobalPlaces) -> None:
        self.places = places
        #: (position, record, owner) of a write -> (owner, column) of who has seen it -> when first.
        self.seen: dict[tuple[int, int, int], dict[tuple[int, int], int]] = {}

    def note(self, group: AccessGroup, size: int, scope: int) -> None:
        """A strong load."""
        places = self.places
        for ledger, which in places.by_buffer(group.at):
            if not ledger.is_written:
                continue
            part = group.some(which)
            rows, kept = ledger.rows(part.at, size)
            if not len(rows):
                continue
            lanes = part.lanes if kept is None else part.lanes[kept]
            self._note(ledger, rows, lanes, scope)

    def _note(self, ledger: Ledger, rows: I64, lanes: I64, scope: int) -> None:
        places = self.places
        owner, own = places.owner_of[lanes][:, None], places.clocks.own[lanes][:, None]
        found = places.strong_others(ledger, rows, owner, own, scope)
        for access, part in np.argwhere(found).tolist():
            row = rows[access, part]
            key = (
                int(ledger.position(row)),
                *(int(ledger.records[0, row]), int(ledger.owners[0, row])),
            )
            who = int(owner[access, 0]), int(own[access, 0])
            self.seen.setdefault(key, {}).setdefault(who, places.clocks.now)

    def unseen(self, ledger: Ledger, clash: Clash, lanes: I64) -> Bools:
        """Which writes of a clash nobody has seen before the lanes of its accesses, `lanes`, went
        on."""
        result: Bools = np.ones(len(clash.index), np.bool_)
        if not self.seen:
            return result
        for i in np.flatnonzero(clash.records & STRONG).tolist():
            write = int(clash.records[i]), int(clash.owners[i])
            position = int(ledger.position(clash.rows[i]))
            readers = [self.seen.get((position & mask, *write), {}) for mask in _WIDER]
            lane = int(lanes[clash.index[i]])
            seen = (
                self._is_known(lane, *who, time) for each in readers for who, time in each.items()
            )
            result[i] = not any(seen)
        return result

    def _is_known(self, lane: int, owner: int, column: int, time: int) -> bool:
        """Whether a lane knows of what somebody did at a time."""
        places, one = self.places, np.array([lane])
        rec = np.array([record(time, column, 0)])
        if owner == places.owner_of[lane]:
            return not places.clocks.unordered(one, rec).any()
        return not places.clusters.unknown(one, rec, np.array([owner], np.int32)).any()
