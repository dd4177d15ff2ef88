"""Barriers of a block and a cluster, mbarriers and fences (PTX ISA 9.2, section 9.7.13).

An mbarrier's 64-bit word is opaque to PTX. Here: bits 0..19 pending arrivals, 20..39 arrivals
expected in the next phase, 40..61 transaction bytes (two's complement), 62 whether it is
initialised, 63 parity of the phase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fragir.emulator.access import get, put
from fragir.emulator.alu import Decode, nothing
from fragir.emulator.common import (
    I64,
    LANES,
    Bools,
    EmulationError,
    Mask,
    Row,
    Step,
    is_slice,
    store,
)
from fragir.emulator.memory import AccessFault
from fragir.emulator.state import BLOCKED, EXITED, PARKED, Machine
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder
    from fragir.emulator.hooks import Event
    from fragir.emulator.scheduler import Terminator

BARRIERS = 16
CLUSTER = BARRIERS  # the number under which lanes wait for their cluster
NONE = -1


class BlockBarriers:
    """bar.sync and its kin for every resident block, and barrier.cluster."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        shape = (machine.warps, LANES)
        self.waits: Row = np.full(shape, NONE, np.int8)  # which barrier a lane is blocked at
        self.arrived: Row = np.zeros((machine.blocks, BARRIERS), np.int64)
        self.expected: Row = np.zeros((machine.blocks, BARRIERS), np.int64)
        self.polled: I64 = np.full(shape, NONE, np.int64)  # mbarriers seen incomplete, by lane
        self.votes: Bools = np.zeros(shape, np.bool_)
        self.reductions: dict[int, tuple[str, Row | None]] = {}
        self.cluster_arrivals: Row = np.zeros(shape, np.int64)
        clusters = machine.blocks // machine.cluster_size
        self.cluster_phase: Row = np.zeros(clusters, np.int64)
        machine.on_wave.append(self.reset)

    def reset(self) -> None:
        self.waits[...] = NONE
        self.polled[...] = NONE
        self.arrived[...] = 0
        self.expected[...] = 0
        self.cluster_arrivals[...] = 0
        self.cluster_phase[...] = 0

    def _blocks(self, lanes: Any) -> Any:
        """[warp, lane] as [block, thread]."""
        return lanes.reshape(self.machine.blocks, -1)

    def arrive(self, sel: Any, lanes: Bools, number: int, count: int | None, wait: bool) -> None:
        """`lanes` of the warps `sel` come to barrier `number`; they block where `wait`."""
        machine = self.machine
        whole = (lanes | ~machine.alive[sel]).all(axis=1)
        weight = np.where(whole, LANES, lanes.sum(axis=1))
        blocks = machine.block_of[sel]
        np.add.at(self.arrived[:, number], blocks, np.where(lanes.any(axis=1), weight, 0))
        touched = np.unique(blocks[lanes.any(axis=1)])
        if count is not None:
            if count % LANES or count <= 0:
                raise EmulationError(f"a barrier cannot count {count} threads, only whole warps")
            old = self.expected[touched, number]
            if ((old != 0) & (old != count)).any():
                raise EmulationError(
                    f"barrier {number} is used for {count} threads while others use it for "
                    f"{int(old.max())}"
                )
            self.expected[touched, number] = count
        if wait:
            self.waits[sel] = np.where(lanes, number, self.waits[sel])
        machine.progress = True
        if machine.hooks:
            tell(machine, "sync" if wait else "arrive", "block", number, flat(machine, sel, lanes))
        self.check(number)

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
            raise EmulationError(f"more threads came to barrier {number} than it counts")
        self.arrived[done, number] = 0
        self.expected[done, number] = 0
        lanes = (waiting & done[:, None]).reshape(machine.key.shape)
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
        for number in np.unique(self.waits[self.waits != NONE]):
            if number == CLUSTER:
                self.check_cluster()
            else:
                self.check(int(number))

    # -- clusters --------------------------------------------------------------------------------

    def _clusters(self, lanes: Any) -> Any:
        return lanes.reshape(len(self.cluster_phase), -1)

    def cluster_arrive(self, sel: Any, lanes: Bools) -> None:
        self.cluster_arrivals[sel] += lanes
        self.machine.progress = True
        if self.machine.hooks:
            tell(self.machine, "arrive", "cluster", 0, flat(self.machine, sel, lanes))
        self.check_cluster()

    def cluster_wait(self, sel: Any, lanes: Bools) -> Bools:
        """The lanes that may go on at once; the others wait."""
        per = self.machine.warps_per_block * self.machine.cluster_size
        phase = np.repeat(self.cluster_phase, per)[sel]
        free = lanes & (self.cluster_arrivals[sel] <= phase[:, None])
        if self.machine.hooks and free.any():
            tell(self.machine, "release", "cluster", 0, flat(self.machine, sel, free))
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


def flat(machine: Machine, sel: Any, lanes: Bools | None) -> I64:
    """The flat numbers of lanes of the warps `sel`; None: all of them."""
    ids = machine.engine.lane_ids[sel]
    return ids.ravel() if lanes is None else ids[lanes]


def tell(
    machine: Machine,
    kind: Literal["arrive", "sync", "release"],
    scope: Literal["block", "cluster"],
    number: int,
    lanes: I64,
) -> None:
    """What happens at a barrier, to the checks."""
    for hook in machine.hooks:
        hook.on_barrier(kind, scope, number, lanes)


def tell_mbarrier(machine: Machine, kind: Event, at: I64, lanes: I64) -> None:
    """What `lanes` do at the mbarriers at byte positions `at` (one each), to the checks."""
    if not machine.hooks:
        return
    at, lanes = at.ravel(), lanes.ravel()
    for position in np.unique(at):
        for hook in machine.hooks:
            hook.on_mbarrier(kind, int(position), lanes[at == position])


def barrier_terminator(d: Decoder, ins: tree.Instruction, after: int) -> Terminator:
    """bar.{sync,arrive,red}, barrier{.cta}..., barrier.cluster.{arrive,wait}."""
    words = [w for w in ins.opcode[1:] if w not in ("cta", "aligned")]
    machine = d.machine
    if words[0] == "cluster":
        return _cluster_terminator(machine, words[1], after)
    if words[0] not in ("sync", "arrive", "red"):
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    first = 1 if words[0] == "red" else 0
    last = d.count(ins) - (1 if words[0] == "red" else 0)
    if not first < last <= first + 2:
        raise d.error(ins, f"{ins.mnemonic} has {d.count(ins)} operands")
    number, counted = d.literal(ins, first), last == first + 2
    number_row = d.source(ins, first, "u32")
    count = d.literal(ins, first + 1) if counted else None
    count_row = d.source(ins, first + 1, "u32") if counted else None
    if count is not None and (count % LANES or not 0 < count <= 1024):
        raise d.error(ins, f"a barrier cannot count {count} threads, only whole warps")
    if words[0] == "arrive" and not counted:
        raise d.error(ins, f"{ins.mnemonic} needs the number of threads")
    if number is not None and not 0 <= number < BARRIERS:
        raise d.error(ins, f"there is no barrier {number}, only 0 to {BARRIERS - 1}")
    wait = words[0] != "arrive"
    vote: Row | None = None
    out: Row | None = None
    if words[0] == "red":
        kind = "u32" if words[1] == "popc" else "pred"
        out = d.target(ins, 0, kind)
        vote = d.source(ins, d.count(ins) - 1, "pred")
    threads = machine.warps_per_block * LANES

    def run(sel: Any, mask: Mask) -> int | None:
        barriers = machine.barriers
        if (
            mask is None
            and vote is None
            and wait
            and number is not None
            and is_slice(sel)
            and sel == slice(0, machine.resident)
            and (not counted or count == threads)
        ):
            if machine.hooks:
                for kind in ("sync", "release"):
                    tell(machine, kind, "block", number, flat(machine, sel, None))
            return after  # everybody is here
        lanes = np.ones(number_row[sel].shape, np.bool_) if mask is None else mask
        if wait:
            machine.key[sel] = np.where(lanes, after | BLOCKED, machine.key[sel])
        else:
            machine.key[sel] = np.where(lanes, after, machine.key[sel])
        if vote is not None:
            barriers.votes[sel] = np.where(lanes, vote[sel], barriers.votes[sel])
        numbers = number_row[sel]
        for value in np.unique(numbers[lanes]):
            if value >= BARRIERS:
                raise EmulationError(f"there is no barrier {value}, only 0 to {BARRIERS - 1}")
            there = lanes & (numbers == value)
            if vote is not None:
                barriers.reductions[int(value)] = (words[1], out)
            else:
                barriers.reductions.pop(int(value), None)
            each = count
            if count_row is not None and each is None:
                each = int(count_row[sel][there][0])
            barriers.arrive(sel, there, int(value), each, wait)
        return None

    return run


def _cluster_terminator(machine: Machine, word: str, after: int) -> Terminator:
    def run(sel: Any, mask: Mask) -> int | None:
        shape = machine.key[sel].shape
        lanes = np.ones(shape, np.bool_) if mask is None else mask
        if word == "arrive":
            machine.barriers.cluster_arrive(sel, lanes)
            return after
        free = machine.barriers.cluster_wait(sel, lanes)
        if (free == lanes).all():
            return after
        there = np.where(free, after, after | BLOCKED)
        machine.key[sel] = np.where(lanes, there, machine.key[sel])
        return None

    return run


# -- mbarrier --------------------------------------------------------------------------------------

_NOBODY: I64 = np.zeros(0, np.int64)
_FIELD = (1 << 20) - 1
_TX = (1 << 22) - 1
_LIVE = 1 << 62


def unpack(word: int) -> tuple[int, int, int, int]:
    """(pending arrivals, expected arrivals, transaction bytes, parity)."""
    tx = word >> 40 & _TX
    return word & _FIELD, word >> 20 & _FIELD, tx - (1 << 22) if tx >> 21 else tx, word >> 63


def pack(pending: int, expected: int, tx: int, parity: int) -> int:
    return pending | expected << 20 | (tx & _TX) << 40 | _LIVE | parity << 63


def misused(machine: Machine, at: int, what: str, lane: int | None) -> EmulationError:
    """The error of a lane (its flat number) at the mbarrier at a position; `{}` is its name."""
    offset = at % max(machine.memory.shared_stride, 1)
    error = EmulationError(what.format(f"the mbarrier at shared offset {offset}"), kind="mbarrier")
    error.address = offset
    if lane is not None:
        error.warp, error.lane = divmod(lane, LANES)
    return error


def update(
    machine: Machine, at: int, arrivals: int, tx: int, *, more: int = 0, lane: int | None = None
) -> int:
    """Arrive and change the transaction count of the mbarrier at a position; the old word.

    `more` raises the pending count first (cp.async.mbarrier.arrive without .noinc). `lane`: whose
    doing it is, for messages.
    """
    words = machine.memory.shared.view(8)
    old = int(words[at >> 3])
    pending, expected, bytes_left, parity = unpack(old)
    if not old & _LIVE:
        raise misused(machine, at, "{} is not initialised", lane)
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
        raise misused(machine, at, "{} expects fewer arrivals", lane)
    if abs(bytes_left) > _FIELD:
        raise misused(machine, at, f"the transaction count of {{}} exceeds {_FIELD}", lane)
    words[at >> 3] = pack(pending, expected, bytes_left, parity)
    machine.progress = True
    if not pending and bytes_left < 0:
        for hook in machine.hooks:
            hook.on_mbarrier("underflow", at, _NOBODY)
    return old


def _positions(machine: Machine, space: str, address: Any, sel: Any, mask: Mask) -> I64:
    """Byte positions of mbarriers in the shared arena."""
    parts = machine.memory.spaces(space, address, sel, mask, 8)
    if len(parts) != 1 or parts[0][0] is not machine.memory.shared:
        raise AccessFault("an mbarrier must lie in shared memory", int(address.flat[0]), 0)
    return parts[0][1]


def _own(machine: Machine, at: I64, lanes: I64) -> None:
    """init, inval and waits are for mbarriers of the lane's own block."""
    if machine.cluster_size == 1:
        return
    other = at // max(machine.memory.shared_stride, 1) != machine.block_of[lanes // LANES]
    if other.any():
        index = tuple(np.argwhere(other)[0])
        what = "{} lies in another block, where it can only be arrived at"
        raise misused(machine, int(at[index]), what, int(lanes[index]))


def _space(d: Decoder, ins: tree.Instruction) -> str:
    return d.space(ins)


def mbarrier(d: Decoder, ins: tree.Instruction) -> Step:
    word = ins.opcode[1]
    decode = {
        "init": _init,
        "inval": _inval,
        "arrive": _arrive,
        "arrive_drop": _arrive,
        "expect_tx": _expect,
        "complete_tx": _expect,
        "test_wait": _wait,
        "try_wait": _wait,
        "pending_count": _pending,
    }.get(word)
    if decode is None:
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    return decode(d, ins)


def _init(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place, count = d.machine, d.place(ins, 0, _space(d, ins)), d.source(ins, 1, "u32")

    def run(sel: Any, mask: Mask) -> None:
        at = _positions(machine, place.space, place.at(sel, mask), sel, mask)
        lanes = get(machine.engine.lane_ids, sel, mask)
        _own(machine, at, lanes)
        tell_mbarrier(machine, "init", at, lanes)
        value = get(count, sel, mask).astype(np.uint64)
        bad = (value < 1) | (value > _FIELD)
        if bad.any() and machine.engine.machine is machine:  # not on a plane beside it
            index = tuple(np.argwhere(bad)[0])
            what = f"{{}} cannot expect {int(value[index])} arrivals, only 1 to {_FIELD}"
            raise misused(machine, int(at[index]), what, int(lanes[index]))
        machine.memory.shared.scatter(at, 8, 1, value | value << np.uint64(20) | np.uint64(_LIVE))
        machine.progress = True

    return run


def _inval(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place = d.machine, d.place(ins, 0, _space(d, ins))

    def run(sel: Any, mask: Mask) -> None:
        at = _positions(machine, place.space, place.at(sel, mask), sel, mask)
        _own(machine, at, get(machine.engine.lane_ids, sel, mask))
        tell_mbarrier(machine, "inval", at, get(machine.engine.lane_ids, sel, mask))
        machine.memory.shared.scatter(at, 8, 1, np.zeros(at.shape, np.uint64))
        machine.progress = True

    return run


def _arrive(d: Decoder, ins: tree.Instruction) -> Step:
    machine = d.machine
    place = d.place(ins, 1, _space(d, ins))
    state = d.target(ins, 0, "u64")
    expects = "expect_tx" in ins.opcode
    amount = d.source(ins, 2, "u32") if d.count(ins) > 2 else None
    drops = ins.opcode[1] == "arrive_drop"
    stays = "noComplete" in ins.opcode
    remote = "shared::cluster" in ins.opcode
    if d.count(ins) not in ((3,) if expects or stays else (2, 3)) or (remote and state is not None):
        raise d.error(ins, f"the operands of {ins.mnemonic} are not right")

    def run(sel: Any, mask: Mask) -> None:
        at = _positions(machine, place.space, place.at(sel, mask), sel, mask)
        each, who = at.ravel(), get(machine.engine.lane_ids, sel, mask).ravel()
        values = np.ones(each.shape, np.int64)
        if amount is not None:
            values = get(amount, sel, mask).astype(np.int64).ravel()
        old = np.zeros(each.shape, np.uint64)
        for position in np.unique(each):
            which = np.flatnonzero(each == position)
            if not expects and amount is not None:
                _refuse_excess(machine, int(position), values[which], who[which])
            counts = np.ones(len(which), np.int64) if expects else values[which]
            pending = unpack(int(machine.memory.shared.view(8)[position >> 3]))[0]
            groups = [which]
            if int(counts.sum()) > pending:  # the phase ends between two of the lanes
                groups = [which[i : i + 1] for i in range(len(which))]
            for group in groups:
                tell_mbarrier(machine, "arrive", each[group], who[group])
                total = int(values[group].sum())
                count, tx = (len(group), total) if expects else (total, 0)
                if stays and count >= unpack(int(machine.memory.shared.view(8)[position >> 3]))[0]:
                    what = "{} would complete its phase, which .noComplete forbids"
                    raise misused(machine, int(position), what, int(who[group[-1]]))
                if drops:
                    _drop(machine, int(position), count)
                old[group] = update(machine, int(position), count, tx, lane=int(who[group[-1]]))
        if state is not None:
            if mask is None:
                state[sel] = old.reshape(at.shape)
            else:
                full = np.zeros(mask.shape, np.uint64)
                full[mask] = old
                store(state, sel, mask, full)

    return run


def _refuse_excess(machine: Machine, at: int, counts: I64, lanes: I64) -> None:
    """One thread cannot arrive more often than the phase still waits for."""
    pending, expected, _, _ = unpack(int(machine.memory.shared.view(8)[at >> 3]))
    most = int(counts.max())
    if expected and most > (pending if len(counts) == 1 else expected):
        what = f"{{}} expects fewer arrivals: {most} come, {pending} of {expected} are pending"
        raise misused(machine, at, what, int(lanes[counts.argmax()]))


def _drop(machine: Machine, at: int, number: int) -> None:
    words = machine.memory.shared.view(8)
    if not int(words[at >> 3]) & _LIVE:
        return  # an error as soon as it arrives
    pending, expected, tx, parity = unpack(int(words[at >> 3]))
    words[at >> 3] = pack(pending, max(expected - number, 0), tx, parity)


def _expect(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place, amount = d.machine, d.place(ins, 0, _space(d, ins)), d.source(ins, 1, "u32")
    sign = 1 if ins.opcode[1] == "expect_tx" else -1

    def run(sel: Any, mask: Mask) -> None:
        at = _positions(machine, place.space, place.at(sel, mask), sel, mask).ravel()
        tell_mbarrier(machine, "expect", at, get(machine.engine.lane_ids, sel, mask))
        values = get(amount, sel, mask).ravel()
        who = get(machine.engine.lane_ids, sel, mask).ravel()
        for position, value, lane in zip(at, values, who, strict=True):
            update(machine, int(position), 0, sign * int(value), lane=int(lane))

    return run


def _wait(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place = d.machine, d.place(ins, 1, _space(d, ins))
    out = d.target(ins, 0, "pred")
    by_parity = "parity" in ins.opcode
    wanted = d.source(ins, 2, "u32" if by_parity else "u64")

    def run(sel: Any, mask: Mask) -> None:
        at = _positions(machine, place.space, place.at(sel, mask), sel, mask)
        words = machine.memory.shared.gather(at, 8, 1)
        if machine.cluster_size > 1:
            _own(machine, at, get(machine.engine.lane_ids, sel, mask))
        if (words & np.uint64(_LIVE) == 0).any():
            index = int(np.flatnonzero(words & np.uint64(_LIVE) == 0)[0])
            raise AccessFault(
                "the mbarrier is not initialised", int(at.flat[index]), index, "mbarrier"
            )
        value = get(wanted, sel, mask)
        parity = value & 1 if by_parity else value >> np.uint64(63)
        done = (words >> np.uint64(63)) != parity
        seen = np.where(done, NONE, at)
        put(machine.barriers.polled, sel, mask, seen)
        if machine.hooks:
            lanes = get(machine.engine.lane_ids, sel, mask)
            tell_mbarrier(machine, "test", at[~done], lanes[~done])
            tell_mbarrier(machine, "wait", at[done], lanes[done])
        if out is None:
            return
        if mask is None:
            out[sel] = done
        else:
            full = np.zeros(mask.shape, np.bool_)
            full[mask] = done
            store(out, sel, mask, full)

    return run


def _pending(d: Decoder, ins: tree.Instruction) -> Step:
    state, out = d.source(ins, 1, "u64"), d.target(ins, 0, "u32")

    def run(sel: Any, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, (state[sel] & np.uint64(_FIELD)).astype(np.uint32))

    return run


def _fence(d: Decoder, ins: tree.Instruction) -> Step:
    """Memory is sequentially consistent here: a fence changes nothing."""
    return nothing


def _sleep(d: Decoder, ins: tree.Instruction) -> Step:
    if d.count(ins) != 1:
        raise d.error(ins, f"{ins.mnemonic} takes a time in ns")
    d.source(ins, 0, "u32")
    return nothing


def _event(d: Decoder, ins: tree.Instruction) -> Step:
    most = (1 << 16) - 1 if "mask" in ins.opcode else 15
    number = d.literal(ins, 0)
    if number is None or d.count(ins) != 1 or not 0 <= number <= most:
        raise d.error(ins, f"{ins.mnemonic} takes a constant from 0 to {most}")
    return nothing


TABLE: dict[str, Decode] = {
    "mbarrier": mbarrier,
    "fence": _fence,
    "membar": _fence,
    "nanosleep": _sleep,
    "griddepcontrol": _fence,
    "pmevent": _event,
}
assert EXITED > BLOCKED
