"""The words of mbarriers (PTX ISA 9.2, section 9.7.13.15).

An mbarrier's 64-bit word is opaque to PTX. Here: bits 0..19 pending arrivals, 20..39 arrivals
expected in the next phase, 40..61 transaction bytes (two's complement), 62 whether it is
initialised, 63 parity of the phase.
"""

from __future__ import annotations

import numpy as np

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.state import State
from fragir.emulator.numbers.types import I64
from fragir.emulator.report import EmulationError

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


def misused(machine: State, at: int, what: str, lane: int | None) -> EmulationError:
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
    if abs(bytes_left) > FIELD:
        raise misused(machine, at, f"the transaction count of {{}} exceeds {FIELD}", lane)
    words[at >> 3] = pack(pending, expected, bytes_left, parity)
    machine.progress = True
    if not pending and bytes_left < 0:
        for hook in machine.hooks:
            hook.on_mbarrier("underflow", at, _NOBODY)
    return old
