"""Whether arrivals and waits of a run fall into the same phases in every schedule.

Asked of the run that is seen:

- A: who ends phase k + 1 of an mbarrier knows that all who wait for phase k have seen its end (else
  the parity comes again, and they wait for ever, or take phase k + 2 for it);
- B: an arrival or a copy that counts in phase k + 1 knows that phase k is over (else it may count
  in that);
- C: a copy ends in the phase in which it was issued (else its bytes may complete another);
- D: an arrival at a named barrier in phase k + 1 knows that phase k is over (else others pair up);
- F: an mbarrier is initialised by one thread, and again by one who knows of that.

"Knows" is *precedence*: what must have happened, whether or not what was written is visible. That
is more than the clocks of `races` have: relaxed arrivals hand it on, so do copies to those who see
their bytes, instructions for which lanes of a warp meet, and a wgmma, which all warps of its
warpgroup must have issued. Every phase is an agent of the clocks, whose time is its number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.operand_contents import quote
from fragir.emulator.checks.protocols.history import Key, barrier_name, history_of, parties
from fragir.emulator.checks.races.barriers import ClusterPhases, are_whole
from fragir.emulator.checks.races.clocks import Clocks, distinct, later
from fragir.emulator.checks.synchronisation import Sites
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step, active
from fragir.emulator.numbers.types import I32, I64, Bools
from fragir.emulator.program.dataflow import dataflow
from fragir.emulator.report import Why

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import BarrierEvent, Event
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import TensorCommit
    from fragir.emulator.machine.transfers import Issue, Transfer
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode
    from fragir.ptx.tree import Instruction


#: What is asked of a run, by the letter of the rule.
RULES = {
    "A": "none of these arrivals is known to come after all who wait for the phase before have seen"
    " its end",
    "B": "who arrives in a phase must know that the one before is over, which this ended",
    "C": "a copy must end in the phase in which it was issued",
    "D": "who comes to a barrier again must know that its last phase is over, in which these came",
    "F": "one thread initialises an mbarrier, and again only who knows of that",
}


class Over(NamedTuple):
    """That a phase is over: the column of its agent, and its number."""

    column: int
    phase: int


class PhaseLook(NamedTuple):
    """Lanes that have seen the end of a phase, when, and by which instruction."""

    phase: int
    lanes: I64
    time: int
    site: int


@dataclass(slots=True)
class Mbarrier:
    """What is known of one: `ended`: what those who see the end of its last phase know; `arrived`:
    what those know who have arrived in this one."""

    made: tuple[int, int]
    phase: int = 0
    over: Over | None = None
    ended: I32 | None = None
    arrived: I32 | None = None
    looks: list[PhaseLook] = field(default_factory=list[PhaseLook])


class Generations(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.clocks = Clocks(machine, 0, ())
        self.sites = Sites(program)
        self._said: set[tuple[str, int]] = set()
        self._joins = _first_joins(program)

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether there is an mbarrier, or a barrier that not all threads of a block come to."""
        return any(_is_partial(row, p.ins) for p in program.code for row in [program.opcode(p.ins)])

    def on_wave_start(self) -> None:
        self.clocks.start_wave()
        self._mbarriers: dict[int, Mbarrier] = {}
        self._copies: dict[tuple[int, int], deque[tuple[int, int, I32]]] = {}
        self._products: dict[int, I32] = {}
        #: Commits of tcgen05 by identity and mbarrier: as `_copies`.
        self._commits: dict[tuple[int, int], tuple[int, int, I32]] = {}
        self._arriving: tuple[int, int, I32] | None = None
        #: Of named barriers (block, number), and of the barriers of clusters (-1 - cluster, phase).
        self._arrived: dict[tuple[int, int], I32] = {}
        self._over: dict[tuple[int, int], Over] = {}
        self._phases = ClusterPhases(self.clocks)

    # -- what is said ------------------------------------------------------------------------------

    def _say(
        self,
        rule: str,
        site: int,
        lanes: I64,
        knowing: Bools,
        words: str,
        key: Key,
        *notes: str,
    ) -> None:
        """Of `lanes` the `knowing` ones know; a letter where each other has one in its warp.

        `key`: the barrier that it is about; `notes` are told behind who came to its last phase.
        """
        lane = int(lanes[~knowing][0])
        met = np.isin(lanes[~knowing] // LANES, lanes[knowing] // LANES).all()
        if (rule, site) in self._said:
            return
        self._said.add((rule, site))
        ins = self.sites.instruction(site)
        text = f"{ins.mnemonic}: {words}"
        if met:
            text += f", as lanes of a warp need not go together. {quote('phase')}"
        severity = "letter" if met else None
        why = self._why(rule, key, lanes[~knowing], site, notes)
        self.found(self.program, ins.at, "schedule", text, lane=lane, severity=severity, why=why)

    def _why(
        self, rule: str, key: Key, lanes: I64, site: int, notes: tuple[str, ...]
    ) -> Why | None:
        """The phase that they should know of: who came in it, and who they are."""
        history = history_of(self.machine)
        if history is None:
            return None
        if rule == "F":
            return Why(notes=(f"{barrier_name(self.machine, self.program, key)}: {RULES[rule]}",))
        line = self.sites.line(site)
        them = tuple(parties(self.machine, [(int(lane), line) for lane in lanes]))
        phase = history.running(key) if rule == "C" else history.ended(key)
        said = [f"rule {rule}: {RULES[rule]}"]
        if rule == "A":
            phase = replace(phase, waiting=them)
        else:
            said += [f"not known to: {party.text(phase.block)}" for party in them]
        if rule == "B":
            warp = int(lanes[0]) // LANES
            said.append(f"warp {self.machine.place(warp)[1]} {history.seen_text(key, warp)}")
        return Why((phase,), notes=(*said, *notes))

    def _knows(self, lanes: I64, over: Over) -> Bools:
        return self.clocks.known[0, lanes, over.column] >= over.phase

    def _must_know(self, rule: str, lanes: I64, over: Over | None, words: str, key: Key) -> None:
        if over is None:
            return
        knowing = self._knows(lanes, over)
        if not knowing.all():
            self._say(rule, self.sites.current, lanes, knowing, words, key)

    def _learn(self, lanes: I64, vector: I32 | None) -> None:
        if vector is not None and len(lanes):
            self.clocks.acquire(lanes, vector)

    def _end(self, owner: int, kind: str, number: int, phase: int) -> Over:
        return Over(self.clocks.agent(owner, kind, number), phase)

    def _with(self, vector: I32, over: Over) -> I32:
        """What one knows who knows that as well."""
        if over.column >= vector.shape[1]:
            vector = later(vector, np.zeros((1, self.clocks.width), np.int32))
        vector = vector.copy()
        vector[0, over.column] = over.phase
        return vector

    # -- mbarriers ---------------------------------------------------------------------------------

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        if kind == "init":
            self._initialise(position, lanes)
            return
        known = self._mbarriers.get(position)
        if known is None:
            return  # which is a finding of another check
        if kind in ("arrive", "expect"):
            if self._arriving is not None:
                phase, site, vector = self._arriving
                self._arriving = None
                self._count(position, known, phase, site, vector, int(lanes[0]))
                return
            words = f"it may count in the phase of the mbarrier at {self._at(position)} before"
            self._must_know("B", lanes, known.over, words, ("mbarrier", position, 0))
            if kind == "arrive":
                known.arrived = later(self.clocks.publish(lanes), known.arrived)
        elif kind == "complete":
            self._complete(position, known, int(lanes[0]))
        elif kind == "wait":
            self._learn(lanes, known.ended)
            self.clocks.uneven[distinct(lanes // LANES)] = True  # each knows of its own look
            known.looks.append(
                PhaseLook(known.phase, lanes.copy(), self.clocks.now, self.sites.current)
            )
            self.clocks.now += 1
        elif kind == "phase":
            self._phase(position, known)

    def _at(self, position: int) -> str:
        return f"shared offset {position % max(self.machine.memory.shared_stride, 1)}"

    def _initialise(self, position: int, lanes: I64) -> None:
        before = self._mbarriers.get(position)
        if before is not None:
            column, time = before.made
            knowing = self.clocks.known[0, lanes, column] >= time
            knowing |= self.clocks.own[lanes] == column
            knowing |= self.clocks.floor[lanes] >= time
            if not knowing.all():
                words = f"nothing orders it after another one of {self._at(position)}"
                self._say("F", self.sites.current, lanes, knowing, words, ("mbarrier", position, 0))
        if len(lanes) > 1:
            words = f"several lanes initialise the mbarrier at {self._at(position)}, in any order"
            key: Key = "mbarrier", position, 0
            self._say("F", self.sites.current, lanes, lanes == lanes[0], words, key)
        self._mbarriers[position] = Mbarrier((int(self.clocks.own[lanes[0]]), self.clocks.now))
        self.clocks.now += 1

    def _complete(self, position: int, known: Mbarrier, lane: int) -> None:
        issued = self._copies.get((position, lane))
        if not issued:
            return
        phase, site, vector = issued.popleft()
        self._count(position, known, phase, site, vector, lane)

    def _count(
        self, position: int, known: Mbarrier, phase: int, site: int, vector: I32, lane: int
    ) -> None:
        """What was issued in some phase of an mbarrier counts now."""
        if phase != known.phase:
            words = (
                f"it was issued in phase {phase} of the mbarrier at {self._at(position)}, and ends "
                f"in phase {known.phase}: it may count in another phase than it does here"
            )
            key: Key = "mbarrier", position, 0
            self._say("C", site, np.array([lane]), np.zeros(1, np.bool_), words, key)
        known.arrived = later(vector, known.arrived)

    def _phase(self, position: int, known: Mbarrier) -> None:
        clocks = self.clocks
        nothing = np.zeros((1, clocks.width), np.int32)
        vector = later(nothing if known.arrived is None else known.arrived, known.ended)
        known.phase += 1
        for look in known.looks:
            knowing = vector[0, clocks.own[look.lanes]] >= look.time
            if not knowing.all():
                words = (
                    f"the mbarrier at {self._at(position)} may be a phase further on before this "
                    "has seen the end of the one that it waits for: it then waits for ever, or for "
                    "the wrong one"
                )
                note = f"the wait is for the end of phase {look.phase - 1}"
                if not look.phase:
                    note = "the wait passes before a phase has ended"
                key: Key = "mbarrier", position, 0
                self._say("A", look.site, look.lanes, knowing, words, key, note)
        known.looks.clear()
        known.arrived = None
        per = self.machine.warps_per_block * LANES
        owner = position // max(self.machine.memory.shared_stride, 1) * per
        known.over = self._end(owner, "phase", position, known.phase)
        known.ended = self._with(vector, known.over)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        position = transfer.signal
        known = self._mbarriers.get(position)
        if position < 0 or known is None:
            return
        words = f"its bytes may count in the phase of the mbarrier at {self._at(position)} before"
        self._must_know("B", transfer.lanes, known.over, words, ("mbarrier", position, 0))
        issued = self._copies.setdefault((position, int(transfer.lanes[0])), deque())
        issued.append((known.phase, self.sites.current, self.clocks.publish(transfer.lanes)))

    # -- tcgen05 -----------------------------------------------------------------------------------

    def on_tensor_commit(self, commit: TensorCommit) -> None:
        lanes = np.array([commit.lane], np.int64)
        vector = self.clocks.publish(lanes)
        for position in commit.signals:
            known = self._mbarriers.get(position)
            if known is None:
                continue
            words = f"it may count in the phase of the mbarrier at {self._at(position)} before"
            self._must_know("B", lanes, known.over, words, ("mbarrier", position, 0))
            self._commits[id(commit), position] = known.phase, self.sites.current, vector

    def on_tensor_arrive(self, commit: TensorCommit, position: int) -> None:
        self._arriving = self._commits.pop((id(commit), position), None)

    # -- wgmma -------------------------------------------------------------------------------------

    def on_wgmma_issue(self, item: Issue) -> None:
        for first in item.warps.tolist():
            self._products[first] = self.clocks.publish(first * LANES + np.arange(4 * LANES))

    def on_wgmma_execute(self, item: Issue) -> None:
        for first in item.warps.tolist():
            self._learn(first * LANES + np.arange(4 * LANES), self._products.get(first))

    # -- barriers ----------------------------------------------------------------------------------

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        if kind == "wait" or not len(lanes):
            return
        if scope == "cluster":
            self._cluster(kind, lanes)
            return
        machine, per = self.machine, self.machine.warps_per_block * LANES
        blocks = lanes // per
        if kind == "release":
            if machine.cluster_size == 1 and are_whole(machine, blocks).all():
                self.clocks.join_blocks(lanes)
                for block in distinct(blocks).tolist():
                    self._over.pop((block, number), None)
                    self._arrived.pop((block, number), None)
                return
        elif kind == "sync" and not self._over:
            return
        for block in distinct(blocks).tolist():
            part, key = lanes[blocks == block], (block, number)
            if kind == "release":
                vector = later(self.clocks.publish(part), self._arrived.pop(key, None))
                phase = self._over[key].phase + 1 if key in self._over else 1
                over = self._over[key] = self._end(int(part[0]), "bar", block << 8 | number, phase)
                self._learn(part, self._with(vector, over))
                continue
            words = f"it may count in the phase of barrier {number} before, with others"
            self._must_know("D", part, self._over.get(key), words, ("barrier", block, number))
            if kind == "arrive":
                self._arrived[key] = later(self.clocks.publish(part), self._arrived.get(key))

    def _cluster(self, kind: BarrierEvent, lanes: I64) -> None:
        for cluster, phase, part in self._phases.of(kind, lanes):
            key = -1 - cluster, phase
            if kind == "arrive":
                self._arrived.pop((key[0], phase - 2), None)
                self._arrived[key] = later(self.clocks.publish(part), self._arrived.get(key))
            else:
                self._learn(part, self._arrived.get(key))

    # -- what is wrapped ---------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        if self.program.opcode(ins).asynchronous:
            step = self.sites.during(ins, step)
        if not self._joins.isdisjoint(map(id, group)):
            return self._joining(step)
        return step

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if self.program.opcode(instruction).ends in ("barrier", "cluster barrier"):
            return self.sites.during_terminator(instruction, terminator)
        return terminator

    def _joining(self, step: Step) -> Step:
        """Behind an instruction for which lanes of a warp meet: each knows what the others do."""
        clocks, machine = self.clocks, self.machine

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            uneven = clocks.uneven[sel]
            if not uneven.any():
                return
            on = active(sel, mask, machine.warps)[uneven]
            for lanes, here in zip(machine.lane_ids[sel][uneven], on, strict=True):
                clocks.join(lanes[here])
                if here.all():
                    clocks.uneven[lanes[0] // LANES] = False

        return run


def _is_partial(row: Opcode, ins: Instruction) -> bool:
    if row.bits in ("mbarrier", "new mbarrier") or row.ends == "cluster barrier":
        return True
    return row.ends == "barrier" and ("arrive" in ins.opcode or len(ins.operands) > 1)


def _first_joins(program: Program) -> set[int]:
    """The instructions (by `id`) at which lanes of a warp may meet first behind a look at an
    mbarrier: those after it have nothing to tell."""
    flow, code = dataflow(program), program.code
    waiting = [
        at + 1
        for at, placed in enumerate(code)
        if program.opcode(placed.ins).step == "wait for phase"
    ]
    found, seen = set[int](), set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        ins = code[at].ins
        row = program.opcode(ins)
        if row.together or row.name == "bar.warp.sync":
            found.add(id(ins))
            continue
        if row.ends == "barrier":
            continue  # who leaves it knows all
        waiting += flow.successors(at)
    return found
