"""Why nothing can run any more: who waits for which phase of which barrier, and for whom.

Who could still come to a barrier is read off the program: from where threads stand, arrivals are
ahead of them or not. Of an arrival in a register's place it is known which variable that is in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fragir.emulator.checks.extents import Origins
from fragir.emulator.checks.protocols.history import (
    History,
    Key,
    barrier_name,
    history_of,
    parties,
    seen,
    warps_of,
)
from fragir.emulator.machine.barriers import CLUSTER, NONE
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.state import BLOCKED, EXITED, PARKED, WAITING
from fragir.emulator.numbers.types import distinct
from fragir.emulator.program.dataflow import dataflow
from fragir.emulator.program.entities import Register, Symbol, constant_or_none
from fragir.emulator.report import Awaited, BarrierSeen, Ground, Link, Party, Why
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.entities import Placed
    from fragir.emulator.program.program import Program

#: What is said of threads where they stand, at most.
MOST = 8
#: The best knowledge first.
GROUNDS: tuple[Ground, ...] = ("before", "ahead", "may", "none")
MBARRIER = 8  # bytes
_COMPLETES = "mbarrier::complete_tx::bytes"


# -- arrivals of a program -------------------------------------------------------------------------


class ArrivalSite(NamedTuple):
    """A statement that arrives at barriers, or (`copy`) whose bytes count at an mbarrier.

    `number`: of the barrier; `offset`: of the mbarrier in shared memory: None: not known before it
    runs. `variables`: offsets and sizes of those one of which the mbarrier is in; None: any.
    """

    kind: str
    copy: bool
    number: int | None = None
    offset: int | None = None
    variables: tuple[tuple[int, int], ...] | None = None

    def ground(self, key: Key, offset: int, clustered: bool) -> Ground:
        """Whether it is one at a barrier."""
        kind, _, number = key
        if kind != self.kind:
            return "none"
        if kind == "cluster":
            return "ahead"
        if kind == "barrier":
            return "may" if self.number is None else "ahead" if self.number == number else "none"
        if self.offset is not None:
            return "ahead" if self.offset == offset else "none"
        if self.variables is None:
            return "may"
        if not any(start <= offset < start + size for start, size in self.variables):
            return "none"
        alone = len(self.variables) == 1 and self.variables[0][1] == MBARRIER
        return "ahead" if alone and not clustered else "may"


class ArrivalSites:
    """All of a program by position, and which of them lie ahead of a position."""

    def __init__(self, program: Program) -> None:
        self.program, self.flow = program, dataflow(program)
        origins = Origins.of_program(program)
        self._sizes = {
            s.offset: s.size for s in program.symbols if s.space == "shared" and s.offset >= 0
        }
        self.all: dict[int, ArrivalSite] = {}
        for at, placed in enumerate(program.code):
            found = self._arrival(placed, origins)
            if found is not None:
                self.all[at] = found
        self._ahead: dict[int, frozenset[int]] = {}
        self.whole = not any(row.ends == "call" for row, _ in program.rows())

    def _arrival(self, placed: Placed, origins: Origins) -> ArrivalSite | None:
        ins, row = placed.ins, self.program.opcode(placed.ins)
        if row.ends == "cluster barrier":
            return ArrivalSite("cluster", False) if "arrive" in ins.opcode else None
        if row.ends == "barrier":
            first = 1 if "red" in ins.opcode else 0
            return ArrivalSite("barrier", False, constant_or_none(ins.operands[first]))
        copy = _COMPLETES in ins.opcode
        if not copy and row.step not in ("arrive", "copies arrive"):
            return None
        places = [i for i, one in enumerate(ins.operands) if isinstance(one, tree.Address)]
        if not places:
            return None
        index = places[-1]
        operand = ins.operands[index]
        assert isinstance(operand, tree.Address)
        offset = 0 if operand.offset is None else constant_or_none(operand.offset)
        named = None
        if isinstance(operand.base, tree.Name):
            named = self.program.find(placed.scope, operand.base.text)
        if isinstance(named, Symbol) and named.space == "shared" and offset is not None:
            return ArrivalSite("mbarrier", copy, offset=named.offset + offset)
        origin = origins.addresses.get((id(ins), index))
        if not isinstance(named, Register) or origin is None or not origin.variables:
            return ArrivalSite("mbarrier", copy)
        some = [(at, self._sizes.get(at)) for _, at in sorted(origin.variables)]
        known = tuple((at, size) for at, size in some if size is not None)
        return ArrivalSite("mbarrier", copy, variables=known if len(known) == len(some) else None)

    def ahead(self, position: int) -> frozenset[int]:
        """The positions of arrivals to which one can come from a position, itself included.

        Where there are functions: all.
        """
        found = self._ahead.get(position)
        if found is None:
            found = frozenset(self.all) if not self.whole else self._reached(position)
            self._ahead[position] = found
        return found

    def _reached(self, position: int) -> frozenset[int]:
        reached, work = set[int](), [position]
        while work:
            at = work.pop()
            if at not in reached and at < len(self.program.code):
                reached.add(at)
                work += self.flow.successors(at)
        return frozenset(reached.intersection(self.all))


# -- who stands where ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stand:
    """Lanes of a warp at a position: `next` is where they go on, `site` the statement at which they
    wait; `key`: the barrier whose phase they wait for, if it is one."""

    warp: int
    lanes: tuple[int, ...]
    next: int
    site: int
    flags: int
    key: Key | None


class Standstill:
    """`of_program` lanes of one cluster, the first that stands still."""

    def __init__(self, machine: Machine, program: Program, history: History | None) -> None:
        self.machine, self.program, self.history = machine, program, history
        self.arrivals = ArrivalSites(program)
        self.stands = list(self._stands())

    # -- lanes -------------------------------------------------------------------------------------

    def _stands(self) -> Iterator[Stand]:
        machine = self.machine
        key = machine.key[: machine.resident]
        alive = np.flatnonzero((key < EXITED).any(axis=1))
        if not len(alive):
            return
        per = machine.warps_per_block * machine.cluster_size
        first = int(alive[0]) // per * per
        for warp in alive[alive < first + per].tolist():
            row = key[warp]
            polled = machine.barriers.polled[warp]
            for value in distinct(row[row < EXITED]).tolist():
                lanes = np.flatnonzero(row == value)
                position, flags = value & (PARKED - 1), value & ~(PARKED - 1)
                parts = distinct(polled[lanes] + 1).tolist() if flags & PARKED else [0]
                for part in parts:
                    some = lanes if not flags & PARKED else lanes[polled[lanes] + 1 == part]
                    waits = self._waits(warp, int(some[0]), flags)
                    site = self._site(warp, position, flags, waits)
                    yield Stand(warp, tuple(some.tolist()), position, site, flags, waits)

    def _waits(self, warp: int, lane: int, flags: int) -> Key | None:
        barriers, machine = self.machine.barriers, self.machine
        number = int(barriers.waits[warp, lane])
        if flags & PARKED and barriers.polled[warp, lane] != NONE:
            return "mbarrier", int(barriers.polled[warp, lane]), 0
        if not flags & BLOCKED or number == NONE:
            return None
        block = int(machine.block_of[warp])
        if number == CLUSTER:
            return "cluster", block // machine.cluster_size, 0
        return "barrier", block, number

    def _site(self, warp: int, position: int, flags: int, waits: Key | None) -> int:
        """The statement that a lane waits at: a loop is left by its look at the mbarrier."""
        if flags & BLOCKED:
            return position - 1
        if waits is not None and self.history is not None:
            return self.history.looked.get(warp, position)
        code = self.program.code
        for at in range(position, min(position + MOST, len(code))):
            if waits is not None and self.program.opcode(code[at].ins).step == "wait for phase":
                return at
        return min(position, len(code) - 1)

    def _line(self, site: int) -> int | None:
        return self.program.error("", self.program.code[site].ins.at).line

    def _party(self, stands: Iterable[Stand]) -> list[Party]:
        who = [(s.warp * LANES + lane, self._line(s.site)) for s in stands for lane in s.lanes]
        return list(parties(self.machine, who))

    def _does(self, stand: Stand) -> str:
        if stand.key is not None:
            return f"waits for {self._now(stand.key).phase_text}"
        if stand.flags & WAITING:
            return "waits for other lanes of its warp"
        return "polls" if stand.flags & PARKED else "stands"

    def _now(self, key: Key) -> BarrierSeen:
        return seen(self.machine, self.program, key, self.history)

    # -- barriers ----------------------------------------------------------------------------------

    def barriers(self) -> dict[Key, BarrierSeen]:
        """Those that somebody waits for."""
        keys = dict.fromkeys(stand.key for stand in self.stands if stand.key is not None)
        return {key: self._barrier(key) for key in keys}

    def _barrier(self, key: Key) -> BarrierSeen:
        waiting = tuple(self._party(stand for stand in self.stands if stand.key == key))
        awaited = [one for one, _ in self.awaited(key)]
        return replace(self._now(key), waiting=waiting, awaited=tuple(_gathered(awaited)))

    def awaited(self, key: Key) -> list[tuple[Awaited, Stand | None]]:
        """Who has not come to a barrier, by what is known best, and where that stands."""
        kind, owner, _ = key
        if kind == "mbarrier":
            now = self._now(key)
            found: list[tuple[Awaited, Stand | None]] = []
            if now.came < now.wants:
                found += self._of_mbarrier(key, copy=False)
            if now.bytes > 0:
                found += self._of_mbarrier(key, copy=True)
            return found
        if kind == "cluster":
            arrived = self.machine.barriers.cluster_arrivals
            now = self.machine.barriers.cluster_phase[owner]
            absent = [s for s in self.stands if (arrived[s.warp, list(s.lanes)] <= now).any()]
        else:
            known = self.history and self.history.named.get(key)
            came = {int(x) for one in (known.arrived if known else ()) for x in one.lanes}
            absent = [
                s
                for s in self.stands
                if s.key != key
                and self.machine.block_of[s.warp] == owner
                and s.warp * LANES + s.lanes[0] not in came
            ]
        return [(self._one(stand, *self._best(stand, key, copy=False)), stand) for stand in absent]

    def _of_mbarrier(self, key: Key, *, copy: bool) -> list[tuple[Awaited, Stand | None]]:
        """Whose arrivals, or copies, are missing: of those of the phase before, or else all."""
        found = list(self._as_before(key, copy))
        if found:
            return found
        every = [(stand, *self._best(stand, key, copy=copy)) for stand in self.stands]
        best = min((ground for _, _, ground in every), key=GROUNDS.index, default="none")
        if best == "none":
            return []
        return [
            (self._one(stand, site, ground, copy=copy), stand)
            for stand, site, ground in every
            if ground == best
        ]

    def _as_before(self, key: Key, copy: bool) -> Iterator[tuple[Awaited, Stand | None]]:
        known = None if self.history is None else self.history.mbarriers.get(key[1])
        if known is None:
            return
        before, now = known.before, known.arrived
        if copy:
            before, now = known.copied_before, known.copied
        came = {(warp, one.site) for one in now for warp in warps_of(one.lanes)}
        for one in before:
            for warp in warps_of(one.lanes):
                if (warp, one.site) in came:
                    continue
                came.add((warp, one.site))
                stands = [s for s in self.stands if s.warp == warp]
                ahead = [s for s in stands if one.site in self.arrivals.ahead(s.next)]
                for stand in ahead or stands:
                    site = one.site if ahead else None
                    yield self._one(stand, site, "before" if ahead else "none", copy=copy), stand
                if not stands:
                    mine = one.lanes[one.lanes // LANES == warp]
                    (party,) = parties(self.machine, [(int(lane), None) for lane in mine])
                    line = self._line(one.site)
                    yield Awaited(party, "has exited", line, "before", copy), None

    def _best(self, stand: Stand, key: Key, *, copy: bool) -> tuple[int | None, Ground]:
        """The arrival ahead of a lane that is known best to be one at a barrier."""
        offset = key[1] % max(self.machine.memory.shared_stride, 1) if key[0] == "mbarrier" else 0
        best: tuple[int | None, Ground] = None, "none"
        clustered = self.machine.cluster_size > 1
        for site in sorted(self.arrivals.ahead(stand.next)):
            arrival = self.arrivals.all[site]
            if arrival.copy != copy:
                continue
            ground = arrival.ground(key, offset, clustered)
            if ground == "ahead":
                return site, ground
            if ground == "may" and best[0] is None:
                best = site, ground
        return best

    def _one(
        self, stand: Stand, site: int | None, ground: Ground, *, copy: bool = False
    ) -> Awaited:
        (party,) = self._party([stand])
        line = None if site is None else self._line(site)
        return Awaited(party, self._does(stand), line, ground, copy)

    # -- the circle --------------------------------------------------------------------------------

    def cycle(self) -> tuple[Link, ...]:
        """The shortest circle of lanes that wait for each other, by what is known best."""
        edges: dict[Stand, list[tuple[Awaited, Stand]]] = {}
        for stand in self.stands:
            if stand.key is not None:
                found = self.awaited(stand.key)
                edges[stand] = [(a, s) for a, s in found if s is not None and a.arrival is not None]
        for grounds in (GROUNDS[:2], GROUNDS[:3]):
            best: list[Link] = []
            for start in edges:
                way = self._way_back(start, edges, grounds)
                if way and (not best or len(way) < len(best)):
                    best = way
            if best:
                return tuple(best)
        return ()

    def _way_back(
        self,
        start: Stand,
        edges: dict[Stand, list[tuple[Awaited, Stand]]],
        grounds: Sequence[Ground],
    ) -> list[Link]:
        came_from: dict[Stand, tuple[Stand, Awaited]] = {}
        work = deque([start])
        while work:
            stand = work.popleft()
            for awaited, to in edges.get(stand, ()):
                if awaited.ground not in grounds or to in came_from:
                    continue
                came_from[to] = stand, awaited
                if to == start:
                    return self._links(start, came_from)
                work.append(to)
        return []

    def _links(self, start: Stand, came_from: dict[Stand, tuple[Stand, Awaited]]) -> list[Link]:
        found: list[Link] = []
        to = start
        while not found or to != start:
            stand, awaited = came_from[to]
            assert stand.key is not None
            (party,) = self._party([stand])
            found.append(Link(party, self._now(stand.key), awaited))
            to = stand
        return found[::-1]

    # -- what else is known ------------------------------------------------------------------------

    def notes(self) -> Iterator[str]:
        """Phases that a waiting warp has missed; other blocks that stand still."""
        for stand in self.stands:
            if stand.key is None or stand.key[0] != "mbarrier" or self.history is None:
                continue
            known = self.history.mbarriers.get(stand.key[1])
            if known is None:
                continue
            passed, last = known.passed[stand.warp], known.seen.get(stand.warp)
            if passed < known.phase:
                _, local = self.machine.place(stand.warp)
                name = barrier_name(self.machine, self.program, stand.key)
                told = f"warp {local} has seen the end of {passed} of the {known.phase} phases"
                at = "" if last is None else f", the last at line {self._line(last.site)}"
                yield f"{told} that {name} has ended{at}"
        if not any(stand.key for stand in self.stands):
            for stand in self.stands[:MOST]:
                (party,) = self._party([stand])
                yield f"{party.text()}: it {self._does(stand)} at no barrier"
        machine = self.machine
        per = machine.warps_per_block
        still = (machine.key[: machine.resident] < EXITED).any(axis=1)
        blocks = distinct(np.flatnonzero(still) // per)
        others = len(blocks) - len({stand.warp // per for stand in self.stands})
        if others:
            yield f"{others} other block{'s' if others > 1 else ''} of the wave stand still too"


def _gathered(awaited: Iterable[Awaited]) -> list[Awaited]:
    """Those of a block that do the same as one."""
    groups: dict[tuple[object, ...], list[Awaited]] = {}
    for one in awaited:
        party = one.party
        like = party.block, party.line, one.does, one.arrival, one.ground, one.copy
        groups.setdefault(like, []).append(one)
    return [
        replace(
            some[0],
            party=replace(
                some[0].party,
                warps=tuple(sorted({w for one in some for w in one.party.warps})),
                lanes=sum(one.party.lanes for one in some),
            ),
        )
        for some in groups.values()
    ]


def standstill(machine: Machine, program: Program) -> Why:
    """The barriers at which a launch stands still."""
    found = Standstill(machine, program, history_of(machine))
    barriers = tuple(found.barriers().values())
    return Why(barriers[:MOST], found.cycle(), tuple(dict.fromkeys(found.notes())))
