"""Collectives in divergent code, transaction counts of mbarriers, work that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.operand_contents import quote
from fragir.emulator.instructions.collective import names_all
from fragir.emulator.machine.events import BarrierEvent, Event
from fragir.emulator.machine.lanes import LANE_BITS, LANES, Mask, Select, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.state import BLOCKED, PARKED
from fragir.emulator.numbers.types import I64, U32, Bools, distinct
from fragir.emulator.program.flow import is_exit
from fragir.emulator.program.program import Program

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.transfers import Copy, Transfer
    from fragir.ptx.opcodes.row import Opcode
    from fragir.ptx.tree import Instruction


# -- aligned arrivals ------------------------------------------------------------------------------
# Aligned barrier instructions at which lanes do not wait for the rest of their warp.
#
# bar.arrive, barrier.arrive.aligned, and barrier.cluster.arrive and .wait with .aligned: a warp's
# lanes may come to them one after the other here, and so it shows only at the end whether all have.


@dataclass(frozen=True, slots=True)
class Missing:
    """Of a warp `lane` has come to the instruction at `site`, and `absent` has not as often.

    `instead`: where that one has come, to another of the kind, when those here had not; or None.
    """

    site: int
    lane: int
    absent: int
    instead: int | None


class AlignedArrivals:
    """How often each lane has come to each of these instructions, and how often it should have."""

    def __init__(self, machine: Machine, program: Program, born: Bools) -> None:
        self.machine, self.program, self.born = machine, program, born
        self._came: dict[int, I64] = {}
        self._due: dict[int, I64] = {}

    def start_wave(self) -> None:
        self._came.clear()
        self._due.clear()

    def leave(self, warps: I64) -> None:
        """Warps go on elsewhere."""
        for counts in (*self._came.values(), *self._due.values()):
            counts[warps] = 0

    def note(self, site: int, lanes: I64) -> None:
        """Lanes come to the instruction at a site. Whoever of their warps has not left, nor has
        nothing to do any more but to exit, is to come as often."""
        shape = self.born.shape
        came = self._came.setdefault(site, np.zeros(shape, np.int64))
        due = self._due.setdefault(site, np.zeros(shape, np.int64))
        came.reshape(-1)[lanes] += 1
        warps = distinct(lanes // LANES)
        most = np.broadcast_to(came[warps].max(axis=1, keepdims=True), (len(warps), LANES))
        wanted = self.machine.alive[warps] & self.born[warps]
        absent = wanted & (came[warps] < most)
        if absent.any():
            places = self.machine.key[warps] & (PARKED - 1)
            for at in distinct(places[absent]).tolist():
                if is_exit(self.program, at):
                    wanted &= ~(absent & (places == at))
        due[warps] = np.where(wanted, np.maximum(due[warps], most), due[warps])

    def missing(self) -> Iterator[Missing]:
        """One of each instruction to which a part of a warp has not come."""
        short = {site: due > self._came[site] for site, due in self._due.items()}
        for site, lacks in short.items():
            for warp in np.flatnonzero(lacks.any(axis=1))[:1].tolist():
                absent = int(np.flatnonzero(lacks[warp])[0])
                here = int(np.flatnonzero(~lacks[warp] & (self._came[site][warp] > 0))[0])
                others = (
                    other
                    for other, came in self._came.items()
                    if came[warp, absent] > came[warp, here]
                )
                flat = warp * LANES
                yield Missing(site, flat + here, flat + absent, next(others, None))


# -- sites -----------------------------------------------------------------------------------------
# Which instruction it is: for what is told without it, such as copies and barriers.


class Sites:
    """`current`: the place in the program of the asynchronous instruction, or of the cluster's
    barrier, that ran last.

    `last`: the greatest number; instructions of very long programs share it.
    """

    def __init__(self, program: Program, last: int | None = None) -> None:
        self.program = program
        count = len(program.code) if last is None else last
        self._places = {id(p.ins): min(at, count) for at, p in enumerate(program.code)}
        self.current = 0

    def of(self, instruction: Instruction) -> int:
        """The place of an instruction."""
        return self._places[id(instruction)]

    def instruction(self, site: int) -> Instruction:
        return self.program.code[site].ins

    def row(self, site: int) -> Opcode:
        return self.program.opcode(self.instruction(site))

    def words(self) -> tuple[str, ...]:
        """The opcode of the current one."""
        return self.program.code[self.current].ins.opcode

    def line(self, site: int) -> int | None:
        """The line of the PTX."""
        return self.program.error("", self.program.code[site].ins.at).line

    def during(self, instruction: Instruction, step: Step) -> Step:
        """The step of an instruction, which is the current one from there on."""
        site = self.of(instruction)

        def run(sel: Select, mask: Mask) -> None:
            self.current = site
            step(sel, mask)

        return run

    def during_barrier(self, instruction: Instruction, terminator: Terminator) -> Terminator:
        """The same for a barrier of the cluster; others are left as they are."""
        if self.program.opcode(instruction).ends != "cluster barrier":
            return terminator
        return self.during_terminator(instruction, terminator)

    def during_terminator(self, instruction: Instruction, terminator: Terminator) -> Terminator:
        """The terminator of an instruction, which is the current one from there on."""
        site = self.of(instruction)

        def run(sel: Select, mask: Mask) -> int | None:
            self.current = site
            return terminator(sel, mask)

        return run


def _are_whole_warps(lanes: I64) -> bool:
    """Whether these are all lanes of warps side by side."""
    first, last = int(lanes[0]), int(lanes[-1])
    return last - first + 1 == len(lanes) and not (len(lanes) | first) % LANES


class Synchronisation(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.sites = Sites(program)
        lanes = machine.warps * LANES
        self.copied: I64 = np.zeros(lanes, np.int64)  # where each lane last issued a cp.async
        self.transferred: I64 = np.zeros(lanes, np.int64)  # and where a bulk copy
        self.cluster_site: I64 = np.zeros(lanes, np.int64)  # where each has arrived last
        self.cluster_count: I64 = np.zeros(lanes, np.int64)
        self.arrived: Bools = np.zeros(lanes, np.bool_)  # and has not waited since
        self.last = 0  # the lane of the latest event at an mbarrier
        self.said: set[tuple[str, int, str | None]] = set()
        self.born = (machine.thread_ids() < machine.threads).copy()
        # lanes that had more to do than to exit when others of their warp waited for them
        self.passing: Bools = np.zeros(self.born.shape, np.bool_)
        self.arrivals = AlignedArrivals(machine, program, self.born)

    def say(
        self,
        kind: str,
        site: int,
        message: str,
        lane: int | None,
        at: int | None,
        letter: str | None = None,
    ) -> None:
        if (kind, site, letter) in self.said:
            return
        self.said.add((kind, site, letter))
        ins = self.sites.instruction(site)
        text = f"{ins.mnemonic}: {message}"
        if letter is not None:
            text += f". {quote(letter)}"
        severity = None if letter is None else "letter"
        self.found(self.program, ins.at, kind, text, lane=lane, address=at, severity=severity)

    # -- whole warps -------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        site = self.sites.of(ins)
        row = self.program.opcode(ins)
        whole = row.together == "warp"
        if row.together == "members":
            return self._among_members(d, ins, step)
        if row.asynchronous:
            return self.sites.during(ins, step)
        if not whole:
            return step
        lane_ids = self.machine.lane_ids

        def run(sel: Select, mask: Mask) -> None:
            if mask is not None:
                absent = self.born[sel] & ~mask & mask.any(axis=1, keepdims=True)
                if absent.any():
                    lane = int(lane_ids[sel][absent][0])
                    text = f"lane {lane % LANES} does not execute this with the rest of its warp"
                    self.say("divergent", site, text, lane, None)
            step(sel, mask)

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if self.program.opcode(instruction).ends == "barrier" and "arrive" in instruction.opcode:
            return self.sites.during_terminator(instruction, terminator)
        return self.sites.during_barrier(instruction, terminator)

    def compiled(self, d: Decoder, instruction: Instruction) -> bool:
        """Where everybody comes to one barrier of blocks."""
        row = self.program.opcode(instruction)
        return row.ends == "barrier" and "arrive" not in instruction.opcode

    def _tell_missing(self) -> None:
        """Parts of warps at aligned instructions that do not wait."""
        for one in self.arrivals.missing():
            if ("divergent", one.site, None) in self.said:
                continue
            text = f"lane {one.absent % LANES} of the warp "
            if one.instead is None:
                self.say("divergent", one.site, text + "goes by", one.lane, None, "aligned")
            elif ("divergent", one.instead, None) not in self.said:
                text += f"comes to the one at line {self.sites.line(one.instead)} instead"
                self.say("divergent", one.site, text, one.lane, None)

    def _at_cluster(self, lanes: I64) -> None:
        """All lanes of a warp must come to barrier.cluster.arrive.aligned by one instruction."""
        self.cluster_site[lanes] = self.sites.current
        self.cluster_count[lanes] += 1
        if "aligned" not in self.sites.words():
            return
        rows = distinct(lanes // LANES)[:, None] * LANES + np.arange(LANES)
        same = self.cluster_count[rows] == self.cluster_count[lanes].max()
        other = same & (self.cluster_site[rows] != self.sites.current)
        if other.any():
            lane = int(rows[other][0])
            line = self.sites.line(int(self.cluster_site[lane]))
            text = f"lane {lane % LANES} of the same warp has arrived at line {line} instead"
            self.say("divergent", self.sites.current, text, int(lanes[0]), None)

    def _take_turns(self, kind: BarrierEvent, lanes: I64) -> None:
        """A thread arrives at the cluster's barrier once, and waits, before it arrives again."""
        arrived = self.arrived[lanes]
        if kind == "arrive":
            if arrived.any():
                lane = int(lanes[arrived][0])
                line = self.sites.line(int(self.cluster_site[lane]))
                text = (
                    f"the thread has arrived at line {line} and not waited since; it must arrive "
                    "only once before the barrier completes"
                )
                self.say("cluster-barrier", self.sites.current, text, lane, None)
            self.arrived[lanes] = True
        elif kind == "wait":
            if not arrived.all():
                text = "the thread has not arrived since it last waited; this waits for nobody"
                self.say("cluster-barrier", self.sites.current, text, int(lanes[~arrived][0]), None)
            self.arrived[lanes] = False

    def on_leave(self, warps: I64) -> None:
        self.arrived.reshape(-1, LANES)[warps] = False
        self.arrivals.leave(warps)

    def on_wave_end(self) -> None:
        """Those who have arrived at the cluster's barrier and exit know nothing of the others."""
        self._tell_missing()
        lanes = np.flatnonzero(self.arrived)
        sites, first = np.unique(self.cluster_site[lanes], return_index=True)
        for site, lane in zip(sites.tolist(), lanes[first].tolist(), strict=True):
            text = "the thread exits without barrier.cluster.wait, and knows nothing of the others"
            self.say("cluster-barrier", site, text, lane, None, "cluster-wait")

    def on_wave_start(self) -> None:
        self.arrived[...] = False
        self.passing[...] = False
        self.cluster_count[...] = 0
        self.arrivals.start_wave()

    def _among_members(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        """A lane must be in the membermask that it gives, and those it names must give the same."""
        members, site = d.row(ins, ins.operands[-1], "u32"), self.sites.of(ins)
        lane_ids, everybody = self.machine.lane_ids, names_all(d, ins)

        def run(sel: Select, mask: Mask) -> None:
            if everybody and mask is None:
                step(sel, mask)
                return
            named = np.broadcast_to(members[sel], lane_ids[sel].shape)
            if mask is not None:
                self._without(site, sel, mask, named)
            strange = named & LANE_BITS == 0
            if mask is not None:
                strange &= mask
            if strange.any():
                warp, lane = (int(x) for x in np.argwhere(strange)[0])
                value = int(np.broadcast_to(named, strange.shape)[warp, lane])
                text = f"lane {lane} is not in the membermask 0x{value:x} that it gives"
                self.say("divergent", site, text, int(lane_ids[sel][warp, lane]), None)
            step(sel, mask)

        return run

    def _without(self, site: int, sel: Select, mask: Bools, named: U32) -> None:
        """Lanes that a membermask names, and that went by; those that left need not come."""
        wanted = np.bitwise_or.reduce(np.where(mask, named, np.uint32(0)), axis=1, keepdims=True)
        by = self.passing[sel] | (
            self.machine.alive[sel] & self.born[sel]
        )  # or a guard's other lanes
        absent = by & ~mask & (wanted & LANE_BITS != 0)
        self.passing[sel] &= ~mask.any(axis=1, keepdims=True)
        if absent.any():
            warp, lane = (int(x) for x in np.argwhere(absent)[0])
            here = int(self.machine.lane_ids[sel][warp][mask[warp]][0])
            text = f"the membermask names lane {lane}, which goes by"
            self.say("divergent", site, text, here, None, "members")

    def on_wait(self, warp: int, mask: Bools) -> None:
        absent = self.machine.alive[warp] & ~mask
        places = self.machine.key[warp] & (PARKED - 1)
        for at in distinct(places[absent]).tolist():
            self.passing[warp] |= absent & (places == at) & (not is_exit(self.program, at))

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        """Lanes of one warp must not wait at different barrier instructions."""
        if (kind == "arrive" or (kind == "wait" and scope == "cluster")) and len(lanes):
            site = self.sites.current
            if "aligned" in self.sites.words() or not self.sites.row(site).takes("aligned"):
                self.arrivals.note(site, lanes)
        if scope == "cluster":
            self._take_turns(kind, lanes)
        if kind == "arrive" and scope == "cluster":
            self._at_cluster(lanes)
        if scope == "cluster" or not len(lanes):
            return
        if kind == "sync":
            for warp in () if _are_whole_warps(lanes) else distinct(lanes // LANES).tolist():
                self.on_wait(warp, self.machine.key[warp] & BLOCKED != 0)
        if kind != "release":
            return
        self._part_of_warps(number, lanes)
        first, last = int(lanes[0]), int(lanes[-1])
        together = last - first + 1 == len(lanes)  # neighbours, in order
        key = self.machine.key.ravel()[slice(first, last + 1) if together else lanes]
        blocked = key & BLOCKED != 0
        if not blocked.any() or (key == key[0]).all():
            return
        key, lanes = key[blocked], lanes[blocked]
        order = np.argsort(lanes // LANES, kind="stable")
        key, lanes = key[order], lanes[order]
        torn = (np.diff(lanes // LANES) == 0) & (np.diff(key) != 0)
        if torn.any():
            index = int(np.flatnonzero(torn)[0])
            here, there = ((int(k) & (BLOCKED - 1)) - 1 for k in key[index : index + 2])
            ins, other = self.program.code[here].ins, self.program.code[there].ins
            if "aligned" not in ins.opcode and self.program.opcode(ins).takes("aligned"):
                return
            line = self.program.error("", other.at).line
            text = f"lanes of one warp wait here and at line {line} for the same barrier"
            self.say("divergent", here, text, int(lanes[index]), None)

    def _part_of_warps(self, number: int, lanes: I64) -> None:
        """An aligned barrier is for whole warps: lanes must not exit, or be elsewhere."""
        if _are_whole_warps(lanes):
            return
        warps = distinct(lanes // LANES)
        came = np.zeros(self.born.shape, np.bool_)
        came.reshape(-1)[lanes] = True
        absent = self.born[warps] & ~came[warps]
        for alive in (True, False):  # who is elsewhere is worse than who has left
            gone = absent & (self.machine.alive[warps] == alive)
            if not alive:
                gone &= self.passing[warps]
                self.passing[warps] = False
            if not gone.any():
                continue
            row, lane = (int(x) for x in np.argwhere(gone)[0])
            here = int(warps[row]) * LANES + int(np.flatnonzero(came[warps[row]])[0])
            site = (int(self.machine.key.ravel()[here]) & (BLOCKED - 1)) - 1
            ins = self.program.code[site].ins
            if "aligned" not in ins.opcode and self.program.opcode(ins).takes("aligned"):
                continue
            text = f"lane {lane} of the warp {'is elsewhere' if alive else 'has exited'}"
            letter = None if alive else "aligned"
            self.say("divergent", site, text, here, None, letter)

    # -- mbarriers ---------------------------------------------------------------------------------

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        memory = self.machine.memory
        offset = position % max(memory.shared_stride, 1)
        if len(lanes):
            self.last = int(lanes[0])
        if kind == "complete":
            self.sites.current = int(self.transferred[lanes[0]])
        elif kind == "underflow":
            text = "more bytes were copied than this mbarrier expects; its phase cannot complete"
            self.say("mbarrier", self.sites.current, text, self.last, offset)

    def on_deadlock(self) -> list[str]:
        self._tell_missing()
        return []

    # -- what nobody waits for ---------------------------------------------------------------------

    def on_copy_issue(self, copy: Copy) -> None:
        self.copied[copy.lanes] = self.sites.current

    def on_transfer_issue(self, transfer: Transfer) -> None:
        self.transferred[transfer.lanes] = self.sites.current

    def on_leftover(self, copies: Sequence[Copy], transfers: Sequence[Transfer]) -> None:
        text = "all threads have exited and nothing has waited for this copy"
        for copy in copies:
            lane = int(copy.lanes.flat[0])
            at = int(copy.into.flat[0]) % max(self.machine.memory.shared_stride, 1)
            # Nobody has used what it brings, or the run had stopped; a block keeps its memory until
            # its threads' copies are done, on every machine known.
            self.say("unretired", int(self.copied[lane]), text, lane, at, "shared")
        for transfer in transfers:
            lane = int(transfer.lanes[0])
            # A store keeps its block's memory on every machine known; a load may hit a later block.
            letter = "shared" if transfer.into is None else None
            self.say("unretired", int(self.transferred[lane]), text, lane, None, letter)
