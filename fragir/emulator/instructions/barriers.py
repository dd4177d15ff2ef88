"""Barriers of a block and a cluster, and fences (PTX ISA 9.2, section 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode, nothing
from fragir.emulator.machine.barriers import BARRIERS, flat, tell
from fragir.emulator.machine.lanes import LANES, Mask, Row, Step, is_slice
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.state import BLOCKED
from fragir.emulator.numbers.types import distinct
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.code import Terminator


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


def _meet(d: Decoder, ins: tree.Instruction) -> Step:
    """bar.warp.sync: the lanes meet before it."""
    return nothing


def _fence(d: Decoder, ins: tree.Instruction) -> Step:
    """Memory is sequentially consistent here: a fence changes nothing."""
    return nothing


def _dependent_grids(d: Decoder, ins: tree.Instruction) -> Step:
    """griddepcontrol: grids run one after the other here (`machine/past_grids.py`)."""
    machine = d.machine
    if not machine.chained:
        return nothing

    def release(sel: Any, mask: Mask) -> None:
        machine.released = True

    def wait(sel: Any, mask: Mask) -> None:
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


STEPS: dict[str, Decode] = {
    "meet": _meet,
    "fence": _fence,
    "dependent grids": _dependent_grids,
    "sleep": _sleep,
    "event": _event,
}
