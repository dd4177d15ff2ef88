"""Barriers of a block and a cluster, mbarriers, fences (PTX ISA 9.2, section 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get, put
from fragir.emulator.instructions.alu import Decode, nothing
from fragir.emulator.machine.barriers import (
    BARRIERS,
    FIELD,
    LIVE,
    NONE,
    flat_lanes,
    misuse_error,
    pack,
    tell,
    unpack,
    update,
)
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, is_slice, store
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.state import BLOCKED
from fragir.emulator.numbers.types import I64, distinct
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.events import Event
    from fragir.emulator.machine.straight import Terminator


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

    def run(sel: Select, mask: Mask) -> int | None:
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
                    tell(machine, kind, "block", number, flat_lanes(machine, sel, None))
            return after  # everybody is here
        lanes = np.ones(number_row[sel].shape, np.bool_) if mask is None else mask
        if wait:
            machine.key[sel] = np.where(lanes, after | BLOCKED, machine.key[sel])
        else:
            machine.key[sel] = np.where(lanes, after, machine.key[sel])
        if vote is not None:
            barriers.votes[sel] = np.where(lanes, vote[sel], barriers.votes[sel])
        numbers = number_row[sel]
        for value in distinct(numbers[lanes]):
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
            barriers.arrive(sel, there, int(value), each, wait, after - 1)
        return None

    return run


def _cluster_terminator(machine: Machine, word: str, after: int) -> Terminator:
    def run(sel: Select, mask: Mask) -> int | None:
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


def _meet(d: Decoder, ins: tree.Instruction) -> Step:
    """bar.warp.sync: the lanes meet before it."""
    return nothing


def _fence(d: Decoder, ins: tree.Instruction) -> Step:
    """Memory is sequentially consistent here: a fence changes nothing."""
    return nothing


def _dependent_grids(d: Decoder, ins: tree.Instruction) -> Step:
    """griddepcontrol: grids run one after the other here (`machine/state.py`)."""
    machine = d.machine
    if not machine.chained:
        return nothing

    def release(sel: Select, mask: Mask) -> None:
        machine.released = True

    def wait(sel: Select, mask: Mask) -> None:
        machine.waited = True

    return wait if "wait" in ins.opcode else release


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


# -- mbarriers -------------------------------------------------------------------------------------
# mbarriers (PTX ISA 9.2, section 9.7.13.15).
#
# An mbarrier's 64-bit word is opaque to PTX. Here: bits 0..19 pending arrivals, 20..39 arrivals
# expected in the next phase, 40..61 transaction bytes (two's complement), 62 whether it is
# initialised, 63 parity of the phase.


def mbarriers_at(machine: Machine, place: MemoryOperand, sel: Select, mask: Mask) -> I64:
    """Byte positions of mbarriers in the shared arena."""
    address = place.at(sel, mask)
    parts = machine.memory.spaces(place.space, address, sel, mask, 8)
    if len(parts) != 1 or parts[0][0] is not machine.memory.shared:
        raise AccessFault("an mbarrier must lie in shared memory", int(address.flat[0]), 0)
    return parts[0][1]


def _check_own(machine: Machine, at: I64, lanes: I64) -> None:
    """init, inval and waits are for mbarriers of the lane's own block."""
    if machine.cluster_size == 1:
        return
    other = at // max(machine.memory.shared_stride, 1) != machine.block_of[lanes // LANES]
    if other.any():
        index = tuple(np.argwhere(other)[0])
        what = "{} lies in another block, where it can only be arrived at"
        raise misuse_error(machine, int(at[index]), what, int(lanes[index]))


def _space(d: Decoder, ins: tree.Instruction) -> str:
    return d.space(ins)


def _init(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place, count = d.machine, d.place(ins, 0, _space(d, ins)), d.source(ins, 1, "u32")

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask)
        lanes = get(machine.lane_ids, sel, mask)
        _check_own(machine, at, lanes)
        tell_mbarrier(machine, "init", at, lanes)
        value = get(count, sel, mask).astype(np.uint64)
        bad = (value < 1) | (value > FIELD)
        if bad.any() and machine.engine.machine is machine:  # not on a plane beside it
            index = tuple(np.argwhere(bad)[0])
            what = f"{{}} cannot expect {int(value[index])} arrivals, only 1 to {FIELD}"
            raise misuse_error(machine, int(at[index]), what, int(lanes[index]))
        machine.memory.shared.scatter(at, 8, 1, value | value << np.uint64(20) | np.uint64(LIVE))
        machine.progress = True

    return run


def _inval(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place = d.machine, d.place(ins, 0, _space(d, ins))

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask)
        _check_own(machine, at, get(machine.lane_ids, sel, mask))
        tell_mbarrier(machine, "inval", at, get(machine.lane_ids, sel, mask))
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

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask)
        each, who = at.ravel().tolist(), get(machine.lane_ids, sel, mask).ravel()
        values = [1] * len(each)
        if amount is not None:
            values = get(amount, sel, mask).astype(np.int64).ravel().tolist()
        old, words = np.zeros(len(each), np.uint64), machine.memory.shared.view(8)
        come: dict[int, list[int]] = {}  # which of the lanes, by mbarrier
        for index, position in enumerate(each):
            come.setdefault(position, []).append(index)
        for position, which in sorted(come.items()):
            if not expects and amount is not None:
                _check_no_excess(machine, position, [values[i] for i in which], who[which])
            count = len(which) if expects else sum(values[i] for i in which)
            groups = [which]
            if count > unpack(int(words[position >> 3]))[0]:  # the phase ends between two of them
                groups = [[index] for index in which]
            for group in groups:
                last = int(who[group[-1]])
                for hook in machine.hooks:
                    hook.on_mbarrier("arrive", position, who[group])
                total = sum(values[i] for i in group)
                count, tx = (len(group), total) if expects else (total, 0)
                if stays and count >= unpack(int(words[position >> 3]))[0]:
                    what = "{} would complete its phase, which .noComplete forbids"
                    raise misuse_error(machine, position, what, last)
                if drops:
                    _drop(machine, position, count)
                old[group] = update(machine, position, count, tx, lane=last)
        if state is not None:
            if mask is None:
                state[sel] = old.reshape(at.shape)
            else:
                full = np.zeros(mask.shape, np.uint64)
                full[mask] = old
                store(state, sel, mask, full)

    return run


def _check_no_excess(machine: Machine, at: int, counts: list[int], lanes: I64) -> None:
    """One thread cannot arrive more often than the phase still waits for."""
    pending, expected, _, _ = unpack(int(machine.memory.shared.view(8)[at >> 3]))
    most = max(counts)
    if expected and most > (pending if len(counts) == 1 else expected):
        what = f"{{}} expects fewer arrivals: {most} come, {pending} of {expected} are pending"
        raise misuse_error(machine, at, what, int(lanes[counts.index(most)]))


def _drop(machine: Machine, at: int, number: int) -> None:
    words = machine.memory.shared.view(8)
    if not int(words[at >> 3]) & LIVE:
        return  # an error as soon as it arrives
    pending, expected, tx, parity = unpack(int(words[at >> 3]))
    words[at >> 3] = pack(pending, max(expected - number, 0), tx, parity)


def _expect(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place, amount = d.machine, d.place(ins, 0, _space(d, ins)), d.source(ins, 1, "u32")
    sign = 1 if ins.opcode[1] == "expect_tx" else -1

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask).ravel()
        tell_mbarrier(machine, "expect", at, get(machine.lane_ids, sel, mask))
        values = get(amount, sel, mask).ravel()
        who = get(machine.lane_ids, sel, mask).ravel()
        for position, value, lane in zip(at, values, who, strict=True):
            update(machine, int(position), 0, sign * int(value), lane=int(lane))

    return run


def _wait(d: Decoder, ins: tree.Instruction) -> Step:
    machine, place = d.machine, d.place(ins, 1, _space(d, ins))
    first, second = d.pair(d.operand(ins, 0))
    if second is not None:  # ptxas takes it
        raise d.error(ins, f"{ins.mnemonic} is not emulated: a second result is not documented")
    out = d.target_of(ins, first, "pred")
    by_parity = "parity" in ins.opcode
    wanted = d.source(ins, 2, "u32" if by_parity else "u64")

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask)
        words = machine.memory.shared.gather(at, 8, 1)
        if machine.cluster_size > 1:
            _check_own(machine, at, get(machine.lane_ids, sel, mask))
        if (words & np.uint64(LIVE) == 0).any():
            index = int(np.flatnonzero(words & np.uint64(LIVE) == 0)[0])
            raise AccessFault(
                "the mbarrier is not initialised", int(at.flat[index]), index, "mbarrier"
            )
        value = get(wanted, sel, mask)
        parity = value & 1 if by_parity else value >> np.uint64(63)
        done = (words >> np.uint64(63)) != parity
        seen = np.where(done, NONE, at)
        put(machine.barriers.polled, sel, mask, seen)
        if machine.hooks:
            lanes = get(machine.lane_ids, sel, mask)
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

    def run(sel: Select, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, (state[sel] & np.uint64(FIELD)).astype(np.uint32))

    return run


def tell_mbarrier(machine: Machine, kind: Event, at: I64, lanes: I64) -> None:
    """What `lanes` do at the mbarriers at byte positions `at` (one each), to the checks."""
    if not machine.hooks:
        return
    at, lanes = at.ravel(), lanes.ravel()
    for position in distinct(at):
        for hook in machine.hooks:
            hook.on_mbarrier(kind, int(position), lanes[at == position])


STEPS: dict[str, Decode] = {
    "meet": _meet,
    "fence": _fence,
    "dependent grids": _dependent_grids,
    "sleep": _sleep,
    "event": _event,
    "wait for phase": _wait,
    "arrive": _arrive,
    "init mbarrier": _init,
    "invalidate mbarrier": _inval,
    "pending count": _pending,
    "expect bytes": _expect,
}
