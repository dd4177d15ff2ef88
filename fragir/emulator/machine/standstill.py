"""Why nothing can run any more: where the lanes stand, and for whom they wait."""

from __future__ import annotations

import numpy as np

from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.state import BLOCKED, EXITED, PARKED, WAITING
from fragir.emulator.numbers.types import distinct
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError


def deadlock(machine: Machine, program: Program) -> EmulationError:
    """Say who waits where."""
    lines, first = who_stands_where(machine, program)
    message = f"deadlock in {program.entry}: nothing can change any more; "
    lines += [
        f"block {machine.place(block * machine.warps_per_block)[0]} has passed {words} before"
        for block, words in met_before(machine, program).items()
    ][:4]
    notes = [note for hook in machine.hooks for note in hook.on_deadlock()]
    text = message + "; ".join([*lines, *notes, *machine.engine.describe()])
    error = program.error(text, -1 if first is None else first[0])
    error.kind = "divergent" if torn(machine) else "deadlock"
    if first is not None:
        _, warp, lane, flags = first
        error.warp, error.lane = warp % machine.warps_per_block, lane
        error.address = machine.barriers.waits_for(warp, lane, flags)
    return error


def met_before(machine: Machine, program: Program) -> dict[int, str]:
    """By block, a barrier that has let its lanes go on from two statements, in words."""
    found: dict[int, str] = {}
    for block, (number, one, other) in machine.barriers.met.items():
        words = f"{statement(program, one)} and {statement(program, other)}"
        found[block] = f"barrier {number} at two statements, {words},"
    return found


def statement(program: Program, at: int) -> str:
    """`bar.sync of line 12`."""
    ins = program.code[at].ins
    return f"{ins.mnemonic} of line {program.error('', ins.at).line}"


def others_at(program: Program, error: Exception, position: int) -> str:
    """Where others have come from, if that is known and elsewhere, as a message ends with it."""
    at = getattr(error, "others", -1)
    return f" (they have come from {statement(program, at)})" if at not in (-1, position) else ""


def who_stands_where(
    machine: Machine, program: Program
) -> tuple[list[str], tuple[int, int, int, int] | None]:
    """Where the lanes are, a line for each place, the first eight; and of the first of them
    the place in the text, warp, lane and flags."""
    key = machine.key[: machine.resident]
    lines: list[str] = []
    first: tuple[int, int, int, int] | None = None
    mask = PARKED - 1
    alive = key < EXITED
    for value in distinct(key[alive]):
        position, flags = int(value) & mask, int(value) & ~mask
        at = program.code[min(position, len(program.code) - 1)]
        if flags & BLOCKED:
            at = program.code[position - 1]
            how = "blocked at"
        else:
            how = "stands at"
            if flags:
                how = "waits for other lanes at" if flags & WAITING else "polls at"
        where = program.error("", at.ins.at)
        who = np.argwhere(key == value)
        warp, lane = (int(x) for x in who[0])
        block, local = machine.place(warp)
        first = first or (at.ins.at, warp, lane, flags)
        lines.append(
            f"{len(who)} lanes, first block {block} warp {local} lane {lane}, {how} line "
            f"{where.line}: {at.ins.mnemonic}{machine.barriers.describe(warp, lane, flags)}"
        )
        if len(lines) == 8:
            break
    return lines, first


def torn(machine: Machine) -> bool:
    """Whether lanes wait at a collective for lanes of their warp that wait elsewhere."""
    key = machine.key[: machine.resident]
    waiting = (key & WAITING != 0) & (key < EXITED)
    low = np.where(key < EXITED, key, 1 << 30).min(axis=1)
    high = np.where(key < EXITED, key, -1).max(axis=1)
    elsewhere = (key & (PARKED | BLOCKED) != 0) & (key < EXITED)
    polls = ((key & PARKED != 0) & (key < EXITED)).any(axis=1)
    torn = waiting.any(axis=1) & (low != high) & ~polls
    return bool(torn.any() and (elsewhere | waiting)[torn].any())
