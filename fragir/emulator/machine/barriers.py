"""Barriers of blocks and clusters: who has come, who waits (PTX ISA 9.2, section 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from fragir.emulator.machine.lanes import LANES, Row, Select
from fragir.emulator.machine.state import BLOCKED, PARKED, State
from fragir.emulator.numbers.types import I64, Array, Bools, distinct
from fragir.emulator.report import EmulationError

if TYPE_CHECKING:
    from fragir.emulator.machine.events import BarrierEvent


# -- mbarriers -------------------------------------------------------------------------------------
# The words of mbarriers (PTX ISA 9.2, section 9.7.13.15).
#
# An mbarrier's 64-bit word is opaque to PTX. Here: bits 0..19 pending arrivals, 20..39 arrivals
# expected in the next phase, 40..61 transaction bytes (two's complement), 62 whether it is
# initialised, 63 parity of the phase.

NONE = -1  # no mbarrier
_NOBODY: I64 = np.zeros(0, np.int64)
FIELD = (1 << 20) - 1
_TX = (1 << 22) - 1
LIVE = 1 << 62


def unpack(word: int) -> tuple[int, int, int, int]:
    """(pending arrivals, expected arrivals, transaction bytes, parity)."""
    tx = word >> 40 & _TX
    return word & FIELD, word >> 20 & FIELD, tx - (1 << 22) if tx >> 21 else tx, word >> 63


def pack(pending: int, expected: int, tx: int, parity: int) -> int:
    return pending | expected << 20 | (tx & _TX) << 40 | LIVE | parity << 63


def misuse_error(machine: State, at: int, what: str, lane: int | None) -> EmulationError:
    """The error of a lane (its flat number) at the mbarrier at a position; `{}` is its name."""
    offset = at % max(machine.memory.shared_stride, 1)
    error = EmulationError(what.format(f"the mbarrier at shared offset {offset}"), kind="mbarrier")
    error.address = offset
    if lane is not None:
        error.warp, error.lane = divmod(lane, LANES)
    return error


def phase_of(machine: State, at: int) -> str:
    """In words: at which mbarrier something counts, and what a wait there must name."""
    parity = unpack(int(machine.memory.shared.view(8)[at >> 3]))[3]
    offset = at % max(machine.memory.shared_stride, 1)
    return (
        f"counts at the mbarrier at shared offset {offset}, whose phase of parity {parity} is not "
        f"complete (a wait for parity {1 - parity} passes at once)"
    )


def update(
    machine: State, at: int, arrivals: int, tx: int, *, more: int = 0, lane: int | None = None
) -> int:
    """Arrive and change the transaction count of the mbarrier at a position; the old word.

    `more` raises the pending count first (cp.async.mbarrier.arrive without .noinc). `lane`: whose
    doing it is, for messages.
    """
    words = machine.memory.shared.view(8)
    old = int(words[at >> 3])
    pending, expected, bytes_left, parity = unpack(old)
    if not old & LIVE:
        raise misuse_error(machine, at, "{} is not initialised", lane)
    bytes_left += tx
    pending += more
    while True:
        taken = min(arrivals, pending)
        arrivals -= taken
        pending -= taken
        if pending or bytes_left:
            break
        pending, parity = expected, parity ^ 1
        for hook in machine.hooks:
            hook.on_mbarrier("phase", at, _NOBODY)
        if not arrivals or not expected:
            break
    if arrivals:
        raise misuse_error(machine, at, "{} expects fewer arrivals", lane)
    if abs(bytes_left) > FIELD:
        raise misuse_error(machine, at, f"the transaction count of {{}} exceeds {FIELD}", lane)
    words[at >> 3] = pack(pending, expected, bytes_left, parity)
    machine.progress = True
    if not pending and bytes_left < 0:
        for hook in machine.hooks:
            hook.on_mbarrier("underflow", at, _NOBODY)
    return old


BARRIERS = 16
CLUSTER = BARRIERS  # the number under which lanes wait for their cluster


class BarrierMisused(EmulationError):
    """`others`: the position of the statement from which others have come; NONE: unknown."""

    def __init__(self, message: str, others: int) -> None:
        super().__init__(message)
        self.others = others


class BlockBarriers:
    """bar.sync and its kin for every resident block, and barrier.cluster."""

    def __init__(self, machine: State) -> None:
        self.machine = machine
        shape = (machine.warps, LANES)
        self.waits: Row = np.full(shape, NONE, np.int8)  # which barrier a lane is blocked at
        self.arrived: Row = np.zeros((machine.blocks, BARRIERS), np.int64)
        self.expected: Row = np.zeros((machine.blocks, BARRIERS), np.int64)
        #: Of a phase, where its first arrival came from, and another statement at which lanes wait.
        self.first: I64 = np.full((machine.blocks, BARRIERS), NONE, np.int64)
        self.second: I64 = np.full((machine.blocks, BARRIERS), NONE, np.int64)
        #: By block: the barrier that last let lanes go on from two statements, and these two.
        self.met: dict[int, tuple[int, int, int]] = {}
        self.polled: I64 = np.full(shape, NONE, np.int64)  # mbarriers seen incomplete, by lane
        self.uncounted = False  # whether the library has passed barriers in this wave
        self.votes: Bools = np.zeros(shape, np.bool_)
        self.reductions: dict[int, tuple[str, Row | None]] = {}
        self.cluster_arrivals: Row = np.zeros(shape, np.int64)
        clusters = machine.blocks // machine.cluster_size
        self.cluster_phase: Row = np.zeros(clusters, np.int64)
        machine.on_wave.append(self.reset)

    def reset(self) -> None:
        self.waits[...] = NONE
        self.polled[...] = NONE
        self.uncounted = False
        self.arrived[...] = 0
        self.expected[...] = 0
        self.first[...] = self.second[...] = NONE
        self.met.clear()
        self.cluster_arrivals[...] = 0
        self.cluster_phase[...] = 0

    def leave(self, gone: Bools) -> None:
        """Warps, of whole clusters, wait for nobody any more."""
        self.waits[gone] = NONE
        self.polled[gone] = NONE
        blocks = distinct(self.machine.block_of[gone])
        self.arrived[blocks] = 0
        self.expected[blocks] = 0

    def _blocks(self, lanes: Array) -> Array:
        """[warp, lane] as [block, thread]."""
        return lanes.reshape(self.machine.blocks, -1)

    def arrive(
        self, sel: Select, lanes: Bools, number: int, count: int | None, wait: bool, site: int
    ) -> None:
        """`lanes` of the warps `sel` come to barrier `number`, from the position `site`; they block
        where `wait`."""
        machine = self.machine
        whole = (lanes | ~machine.alive[sel]).all(axis=1)
        weight = np.where(whole, LANES, lanes.sum(axis=1))
        blocks = machine.block_of[sel]
        np.add.at(self.arrived[:, number], blocks, np.where(lanes.any(axis=1), weight, 0))
        touched = distinct(blocks[lanes.any(axis=1)])
        if count is not None:
            if count % LANES or count <= 0:
                raise EmulationError(f"a barrier cannot count {count} threads, only whole warps")
            old = self.expected[touched, number]
            if ((old != 0) & (old != count)).any():
                block = touched[(old != 0) & (old != count)][0]
                raise BarrierMisused(
                    f"barrier {number} is used for {count} threads while others use it for "
                    f"{int(self.expected[block, number])}",
                    others=int(self.first[block, number]),
                )
            self.expected[touched, number] = count
        self._note(touched, number, site, wait)
        if wait:
            self.waits[sel] = np.where(lanes, number, self.waits[sel])
        machine.progress = True
        if machine.hooks:
            tell(
                machine,
                "sync" if wait else "arrive",
                "block",
                number,
                flat_lanes(machine, sel, lanes),
            )
        self.check(number)

    def _note(self, blocks: I64, number: int, site: int, wait: bool) -> None:
        """Where lanes of some blocks have come from."""
        first = self.first[blocks, number]
        self.first[blocks, number] = np.where(first == NONE, site, first)
        if wait and (other := blocks[(first != NONE) & (first != site)]).size:
            self.second[other, number] = site

    def _part(self, done: Bools, number: int, lanes: Bools) -> None:
        """A phase is over: which two statements it has let go on."""
        for block in np.flatnonzero(done & (self.second[:, number] != NONE)).tolist():
            per = self.machine.warps_per_block
            rows = slice(block * per, (block + 1) * per)
            at = distinct(self.machine.key[rows][lanes[rows]] & (BLOCKED - 1)) - 1
            if len(at) > 1:
                self.met[block] = number, int(at[0]), int(at[1])
        self.first[done, number] = self.second[done, number] = NONE

    def check(self, number: int) -> None:
        """Release the blocks whose barrier is complete."""
        machine = self.machine
        waiting = self._blocks(self.waits == number)
        alive = self._blocks(machine.alive)
        expected = self.expected[:, number]
        everybody = (expected == 0) & waiting.any(axis=1) & (waiting | ~alive).all(axis=1)
        counted = (expected > 0) & (self.arrived[:, number] >= expected)
        done = everybody | counted
        if not done.any():
            return
        if (counted & (self.arrived[:, number] > expected)).any():
            block = int(np.flatnonzero(counted & (self.arrived[:, number] > expected))[0])
            raise BarrierMisused(
                f"more threads came to barrier {number} than it counts",
                others=int(self.first[block, number]),
            )
        self.arrived[done, number] = 0
        self.expected[done, number] = 0
        lanes = (waiting & done[:, None]).reshape(machine.key.shape)
        self._part(done, number, lanes)
        self._reduce(number, lanes)
        if machine.hooks:
            tell(machine, "release", "block", number, np.flatnonzero(lanes))
        self.waits[lanes] = NONE
        machine.key[lanes] &= ~BLOCKED
        machine.progress = True

    def _reduce(self, number: int, lanes: Bools) -> None:
        """bar.red: the votes of the block to every lane that waited."""
        entry = self.reductions.get(number)
        if entry is None:
            return
        how, out = entry
        votes = self._blocks(self.votes & lanes)
        there = self._blocks(lanes)
        if how == "popc":
            result = votes.sum(axis=1)
        elif how == "or":
            result = votes.any(axis=1)
        else:
            result = (votes | ~there).all(axis=1)
        if out is not None:
            spread = np.repeat(result, there.shape[1]).reshape(lanes.shape)
            out[lanes] = spread[lanes].astype(out.dtype)

    def after_exit(self) -> None:
        """Lanes have exited: barriers for everybody may be complete now."""
        if self.waits.max() == NONE:
            return
        for number in distinct(self.waits[self.waits != NONE]):
            if number == CLUSTER:
                self.check_cluster()
            else:
                self.check(int(number))

    # -- clusters --------------------------------------------------------------------------------

    def _clusters(self, lanes: Array) -> Array:
        return lanes.reshape(len(self.cluster_phase), -1)

    def cluster_arrive(self, sel: Select, lanes: Bools) -> None:
        self.cluster_arrivals[sel] += lanes
        self.machine.progress = True
        if self.machine.hooks:
            tell(self.machine, "arrive", "cluster", 0, flat_lanes(self.machine, sel, lanes))
        self.check_cluster()

    def cluster_wait(self, sel: Select, lanes: Bools) -> Bools:
        """The lanes that may go on at once; the others wait."""
        if self.machine.hooks and lanes.any():
            tell(self.machine, "wait", "cluster", 0, flat_lanes(self.machine, sel, lanes))
        per = self.machine.warps_per_block * self.machine.cluster_size
        phase = np.repeat(self.cluster_phase, per)[sel]
        free = lanes & (self.cluster_arrivals[sel] <= phase[:, None])
        if self.machine.hooks and free.any():
            tell(self.machine, "release", "cluster", 0, flat_lanes(self.machine, sel, free))
        self.waits[sel] = np.where(lanes & ~free, CLUSTER, self.waits[sel])
        return free

    def check_cluster(self) -> None:
        machine = self.machine
        arrivals = self._clusters(self.cluster_arrivals)
        alive = self._clusters(machine.alive)
        done = ((arrivals > self.cluster_phase[:, None]) | ~alive).all(axis=1) & alive.any(axis=1)
        if not done.any():
            return
        self.cluster_phase[done] += 1
        per = machine.warps_per_block * machine.cluster_size
        lanes = (self.waits == CLUSTER) & np.repeat(done, per)[:, None]
        if machine.hooks and lanes.any():
            tell(machine, "release", "cluster", 0, np.flatnonzero(lanes))
        self.waits[lanes] = NONE
        machine.key[lanes] &= ~BLOCKED
        machine.progress = True

    def describe(self, warp: int, lane: int, flags: int) -> str:
        number = int(self.waits[warp, lane])
        if flags & PARKED and self.polled[warp, lane] != NONE:
            return self._describe_mbarrier(warp, int(self.polled[warp, lane]))
        if not flags & BLOCKED or number == NONE:
            return ""
        if number == CLUSTER:
            return " (the cluster's barrier)"
        block = int(self.machine.block_of[warp])
        came = int(self.arrived[block, number])
        want = int(self.expected[block, number]) or self.machine.threads
        per = self.machine.warps_per_block
        rows = slice(block * per, (block + 1) * per)
        absent = (self.machine.alive[rows] & (self.waits[rows] != number)).any(axis=1)
        who = ", ".join(str(w) for w in np.flatnonzero(absent)[:8])
        missing = f"; not here: warps {who}" if absent.any() else ""
        return f" (barrier {number}: {came} of {want} threads have arrived{missing})"

    def waits_for(self, warp: int, lane: int, flags: int) -> int | None:
        """The offset of the mbarrier for which a lane polls, None where it waits otherwise."""
        at = int(self.polled[warp, lane])
        if not flags & PARKED or at == NONE:
            return None
        return at % max(self.machine.memory.shared_stride, 1)

    def _describe_mbarrier(self, warp: int, at: int) -> str:
        memory = self.machine.memory
        pending, expected, bytes_left, parity = unpack(int(memory.shared.view(8)[at >> 3]))
        block, offset = divmod(at, max(memory.shared_stride, 1))
        where = f"the mbarrier at shared offset {offset}"
        if block != int(self.machine.block_of[warp]):
            place, _ = self.machine.place(block * self.machine.warps_per_block)
            where += f" of block {place}"
        bytes_text = f" and {bytes_left} bytes" if bytes_left else ""
        return (
            f" ({where}: its phase of parity {parity} lacks {pending} of {expected} "
            f"arrivals{bytes_text})"
        )


def flat_lanes(machine: State, sel: Select, lanes: Bools | None) -> I64:
    """The flat numbers of lanes of the warps `sel`; None: all of them."""
    ids = machine.lane_ids[sel]
    return ids.ravel() if lanes is None else ids[lanes]


def tell(
    machine: State,
    kind: BarrierEvent,
    scope: Literal["block", "cluster"],
    number: int,
    lanes: I64,
) -> None:
    """What happens at a barrier, to the checks."""
    for hook in machine.hooks:
        hook.on_barrier(kind, scope, number, lanes)
