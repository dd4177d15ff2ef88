"""Who has come to which barrier in which phase, taken down while a kernel runs.

Phases count from 0: of an mbarrier since its initialisation, of a barrier of a block since its
first use. It judges nothing: findings of other checks are told with it (`report.Why`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.synchronisation import Sites
from fragir.emulator.machine.barriers import BARRIERS, NONE, unpack
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.state import BLOCKED
from fragir.emulator.numbers.types import I64, distinct
from fragir.emulator.program.entities import constant_or_none
from fragir.emulator.report import BarrierSeen, Party, Why

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import BarrierEvent, Event
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import TensorCommit
    from fragir.emulator.machine.transfers import Transfer
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

#: An mbarrier by its position, a barrier by its block and number, that of a cluster by its number.
Key: TypeAlias = tuple[Literal["mbarrier", "barrier", "cluster"], int, int]
#: Arrivals of a warp at a barrier that are kept, the latest ones.
KEPT = 16


class Came(NamedTuple):
    """Lanes that have arrived, or whose copy has, by the instruction at a site."""

    lanes: I64
    site: int


class Passed(NamedTuple):
    """A phase at which a warp has arrived, or whose end it has seen, where, and when."""

    phase: int
    site: int
    time: int


@dataclass(slots=True)
class PhaseHistory:
    """Of a barrier: the number of the phase that runs, who has come in it, and who did before."""

    phase: int = 0
    arrived: list[Came] = field(default_factory=list[Came])
    copied: list[Came] = field(default_factory=list[Came])
    before: list[Came] = field(default_factory=list[Came])
    copied_before: list[Came] = field(default_factory=list[Came])
    #: By warp: the last phase whose end it has seen, and of how many it has.
    seen: dict[int, Passed] = field(default_factory=dict[int, Passed])
    passed: Counter[int] = field(default_factory=Counter[int])

    def end(self) -> None:
        """The phase is complete."""
        self.phase += 1
        self.before, self.arrived = self.arrived, []
        self.copied_before, self.copied = self.copied, []


class History(Hooks):
    """`now`: gives the time of the check of races, where there is one."""

    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.sites = Sites(program)
        #: Where each lane has issued the last cp.async.mbarrier.arrive.
        self._later: I64 = np.zeros(machine.warps * LANES, np.int64)
        self.now: Callable[[], int] = int
        self._uncounted = set[int | None]()  # numbers of barriers that runs may pass unseen

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether there is any barrier."""
        return any(
            row.bits in ("mbarrier", "new mbarrier") or "barrier" in row.ends
            for row, _ in program.rows()
        )

    def on_wave_start(self) -> None:
        self.mbarriers: dict[int, PhaseHistory] = {}
        #: Of barriers that some threads of a block come to, and of clusters.
        self.named: dict[Key, PhaseHistory] = {}
        self._phases: I64 = np.zeros((self.machine.blocks, BARRIERS), np.int64)
        #: By warp and barrier: its arrivals.
        self.arrivals: dict[int, dict[Key, deque[Passed]]] = {}
        self.looked: dict[int, int] = {}  # by warp, where it has last looked at an mbarrier
        self._issued: dict[tuple[int, int], deque[int]] = {}
        self.sites.current = NONE

    # -- where it happens --------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        row = self.program.opcode(ins)
        if not row.asynchronous:
            return step
        site, sites, later = self.sites.of(ins), self.sites, self._later
        if row.step == "copies arrive":
            ids = self.machine.lane_ids

            def remember(sel: Select, mask: Mask) -> None:
                later[ids[sel].ravel() if mask is None else ids[sel][mask]] = site
                step(sel, mask)

            return remember

        def run(sel: Select, mask: Mask) -> None:
            sites.current = site
            step(sel, mask)
            sites.current = NONE

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if "barrier" in self.program.opcode(instruction).ends:
            return self.sites.during_terminator(instruction, terminator)
        return terminator

    def compiled(self, d: Decoder, instruction: Instruction) -> bool:
        """Where everybody comes to one barrier of blocks; its phases are then not counted."""
        row = self.program.opcode(instruction)
        if row.ends != "barrier" or "arrive" in instruction.opcode:
            return False
        self._uncounted.add(constant_or_none(instruction.operands[0]))
        return True

    # -- what happens ------------------------------------------------------------------------------

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        if kind == "init":
            self.mbarriers[position] = PhaseHistory()
            return
        known = self.mbarriers.get(position)
        if known is None or (kind != "phase" and not len(lanes)):
            return  # the first is a finding of another check
        site = self.sites.current
        if kind == "arrive":
            site = int(self._later[lanes[0]]) if site == NONE else site
            known.arrived.append(Came(lanes.copy(), site))
            self._note(("mbarrier", position, 0), known.phase, lanes, site)
        elif kind == "complete":
            issued = self._issued.get((position, int(lanes[0])))
            if issued:
                known.copied.append(Came(lanes.copy(), issued.popleft()))
        elif kind == "phase":
            known.end()
        elif kind == "test":
            for warp in warps_of(lanes):
                self.looked[warp] = site
        elif kind == "wait":
            phase = known.phase - 1
            for warp in warps_of(lanes):
                last = known.seen.get(warp)
                if phase >= 0 and (last is None or last.phase < phase):
                    known.passed[warp] += 1
                known.seen[warp] = Passed(phase, site, self.now())

    def on_tensor_commit(self, commit: TensorCommit) -> None:
        self._later[commit.lane] = self.sites.current

    def on_transfer_issue(self, transfer: Transfer) -> None:
        if transfer.signal >= 0:
            key = transfer.signal, int(transfer.lanes[0])
            self._issued.setdefault(key, deque()).append(self.sites.current)

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        if kind == "wait" or not len(lanes):
            return
        machine = self.machine
        if scope == "cluster":
            if kind == "arrive":
                size = machine.warps_per_block * machine.cluster_size * LANES
                for cluster in distinct(lanes // size).tolist():
                    part = lanes[lanes // size == cluster]
                    phase = int(machine.barriers.cluster_phase[cluster])
                    self._note(("cluster", cluster, 0), phase, part, self.sites.current)
            return
        per = machine.warps_per_block * LANES
        blocks = distinct(lanes // per)
        if kind == "release":
            self._phases[blocks, number] += 1
            some = [b for b in blocks.tolist() if ("barrier", b, number) in self.named]
        else:
            wants = machine.barriers.expected[blocks, number]
            some = blocks[(wants > 0) & (wants < per)].tolist()
        for block in some:
            key: Key = "barrier", block, number
            part = lanes[lanes // per == block]
            known = self.named.setdefault(key, PhaseHistory())
            known.phase = int(self._phases[block, number])
            if kind == "release":
                known.before, known.arrived = known.arrived, []
                continue
            known.arrived.append(Came(part, self.sites.current))
            self._note(key, known.phase, part, self.sites.current)

    def _note(self, key: Key, phase: int, lanes: I64, site: int) -> None:
        for warp in warps_of(lanes):
            of_warp = self.arrivals.setdefault(warp, {})
            if key not in of_warp:
                of_warp[key] = deque(maxlen=KEPT)
            of_warp[key].append(Passed(phase, site, self.now()))

    # -- in words ----------------------------------------------------------------------------------

    def phase(self, key: Key) -> int | None:
        """The number of the phase that runs; None where nobody has counted."""
        kind, owner, number = key
        if kind == "mbarrier":
            known = self.mbarriers.get(owner)
            return None if known is None else known.phase
        if kind == "cluster":
            return int(self.machine.barriers.cluster_phase[owner])
        unseen = not self._uncounted.isdisjoint((number, None))
        if self.machine.barriers.uncounted and unseen:
            return None
        return int(self._phases[owner, number])

    def ended(self, key: Key) -> BarrierSeen:
        """The last phase of a barrier that is over, and who came in it."""
        now = seen(self.machine, self.program, key, self)
        known = self.mbarriers.get(key[1]) if key[0] == "mbarrier" else self.named.get(key)
        came = [] if known is None else [*known.before, *known.copied_before]
        arrived = tuple(self.parties(came))
        count = now.wants if now.parity is not None else sum(len(one.lanes) for one in came)
        phase = None if now.phase is None else now.phase - 1
        parity = None if now.parity is None or phase is None else phase & 1
        return replace(
            now,
            phase=phase,
            parity=parity,
            came=count,
            wants=count,
            bytes=0,
            arrived=arrived,
            ended=True,
        )

    def parties(self, came: Iterable[Came]) -> Iterator[Party]:
        """By block and line."""
        yield from parties(
            self.machine, [(lane, self.sites.line(one.site)) for one in came for lane in one.lanes]
        )

    def seen_text(self, key: Key, warp: int) -> str:
        """Which phase of an mbarrier a warp has last seen the end of."""
        known = self.mbarriers.get(key[1])
        last = None if known is None else known.seen.get(warp)
        if last is None:
            return "has not yet seen the end of a phase of it"
        if last.phase < 0:
            return f"has passed it at line {self.sites.line(last.site)} before a phase ended"
        return f"has last seen the end of its phase {last.phase}, at line " + str(
            self.sites.line(last.site)
        )

    # -- between two accesses ----------------------------------------------------------------------

    def between(self, lane: int, other: int, time: int) -> Why:
        """What barriers `other` has come to since `time`, and what `lane` knows of these."""
        machine = self.machine
        warp, before = lane // LANES, other // LANES
        who, whose = self._warp_text(warp, None), self._warp_text(before, warp)
        if warp == before:
            text = "both are lanes of one warp, which need not go together: bar.warp.sync, or a "
            return Why(notes=(text + "barrier of more threads, orders them",))
        since: dict[Key, Passed] = {}
        for key, passages in self.arrivals.get(before, {}).items():
            first = next((one for one in passages if one.time >= time), None)
            if first is not None:
                since[key] = first
        notes: list[str] = []
        for key, passage in since.items():
            name = barrier_name(machine, self.program, key)
            at = self.sites.line(passage.site)
            text = f"{whose} has since come to {name} in its phase {passage.phase}, at line {at}"
            notes.append(f"{text}; {who} {self._knows_text(key, warp)}")
        waits = machine.barriers.waits[before]
        if (waits != NONE).any() and not since:
            number = int(waits[waits != NONE][0])
            at = int(machine.key[before][waits != NONE][0]) & (BLOCKED - 1)
            name = barrier_name(machine, self.program, ("barrier", 0, number))
            line = self.sites.line(at - 1)
            notes.append(f"{whose} waits at {name}, line {line}, to which {who} has yet to come")
        elif not since:
            notes.append(f"{whose} has since come to no barrier that {who} could know of it by")
        return Why(tuple(self._latest(since)), notes=tuple(notes))

    def running(self, key: Key) -> BarrierSeen:
        """The phase of a barrier that runs."""
        return seen(self.machine, self.program, key, self)

    def _latest(self, passages: dict[Key, Passed]) -> Iterator[BarrierSeen]:
        """The phases of some arrivals, where they run or were the last ones."""
        for key, passage in passages.items():
            now = self.phase(key)
            if now == passage.phase:
                yield self.running(key)
            elif now == passage.phase + 1 and key[0] != "cluster":
                yield self.ended(key)

    def _warp_text(self, warp: int, beside: int | None) -> str:
        block, local = self.machine.place(warp)
        same = beside is None or self.machine.block_of[warp] == self.machine.block_of[beside]
        return f"warp {local}" if same else f"block {block} warp {local}"

    def _knows_text(self, key: Key, warp: int) -> str:
        if key[0] == "mbarrier":
            return self.seen_text(key, warp)
        passages = self.arrivals.get(warp, {}).get(key)
        if not passages:
            return "has never come to it"
        last = passages[-1]
        return f"has last come to it in phase {last.phase}, at line {self.sites.line(last.site)}"


def warps_of(lanes: I64) -> list[int]:
    """The warps of lanes, which ascend; mostly one."""
    first, last = lanes.item(0) // LANES, lanes.item(-1) // LANES
    return [first] if first == last else distinct(lanes // LANES).tolist()


def history_of(machine: Machine) -> History | None:
    """That of a launch with checks."""
    return next((hook for hook in machine.hooks if isinstance(hook, History)), None)


def parties(machine: Machine, who: Iterable[tuple[int, int | None]]) -> Iterator[Party]:
    """Lanes (flat numbers) with the lines where they are, by block and line."""
    groups: dict[tuple[int, int | None], list[int]] = {}
    for lane, line in who:
        groups.setdefault((int(machine.block_of[lane // LANES]), line), []).append(int(lane))
    for (block, line), lanes in groups.items():
        first = block * machine.warps_per_block
        warps = sorted({lane // LANES - first for lane in lanes})
        yield Party(machine.place(first)[0], tuple(warps), len(lanes), line)


# -- barriers --------------------------------------------------------------------------------------


def barrier_name(machine: Machine, program: Program, key: Key) -> str:
    """`mbarrier full[0]`, `barrier 1`, `the cluster's barrier`."""
    kind, owner, number = key
    if kind == "cluster" or (kind == "barrier" and number == BARRIERS):
        return "the cluster's barrier"
    if kind == "barrier":
        return f"barrier {number}"
    offset = owner % max(machine.memory.shared_stride, 1)
    for symbol in program.symbols:
        inside = offset - symbol.offset
        placed = symbol.space == "shared" and symbol.offset >= 0
        if placed and 0 <= inside < symbol.size:
            name = symbol.name if symbol.size == 8 else f"{symbol.name}[{inside // 8}]"
            name = f"{symbol.name}+{inside}" if inside % 8 else name
            return f"mbarrier {name}"
    return "an mbarrier"


def seen(machine: Machine, program: Program, key: Key, history: History | None) -> BarrierSeen:
    """The phase of a barrier that runs, and who has come in it."""
    kind, owner, number = key
    name = barrier_name(machine, program, key)
    phase = None if history is None else history.phase(key)
    if kind == "mbarrier":
        block, offset = divmod(owner, max(machine.memory.shared_stride, 1))
        pending, expected, bytes_, parity = unpack(int(machine.memory.shared.view(8)[owner >> 3]))
        arrived = None
        if history is not None:
            known = history.mbarriers.get(owner, PhaseHistory())
            arrived = tuple(history.parties([*known.arrived, *known.copied]))
        place = machine.place(block * machine.warps_per_block)[0]
        came = expected - pending
        numbers = phase, parity, came, expected, bytes_
        return BarrierSeen(name, place, *numbers, arrived=arrived, offset=offset)
    if kind == "cluster":
        per = machine.cluster_size * machine.warps_per_block
        rows = slice(owner * per, (owner + 1) * per)
        now = int(machine.barriers.cluster_phase[owner])
        alive = machine.alive[rows]
        came = alive & (machine.barriers.cluster_arrivals[rows] > now)
        place = machine.place(owner * per)[0]
        return BarrierSeen(name, place, now, None, int(came.sum()), int(alive.sum()))
    first = owner * machine.warps_per_block
    came = int(machine.barriers.arrived[owner, number])
    wants = int(machine.barriers.expected[owner, number])
    place = machine.place(first)[0]
    if not wants:
        wants = int(machine.alive[first : first + machine.warps_per_block].sum())
    arrived = () if history is None else None
    if history is not None:
        waits = (machine.barriers.waits[first : first + machine.warps_per_block] == number).ravel()
        known = history.named.get(key, PhaseHistory())
        lanes = [one for one in known.arrived if not waits[one.lanes[0] - first * LANES]]
        arrived = tuple(history.parties(lanes))
    return BarrierSeen(name, place, phase, None, came, wants, arrived=arrived)
