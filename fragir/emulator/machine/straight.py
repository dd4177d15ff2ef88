"""Straight-line runs: neighbouring instructions of a block that the compiled core runs in one call.

A step on numpy arrays takes a microsecond or more however few lanes it has, an operation of the
library nanoseconds. Whatever a call cannot do, an access that faults above all, it leaves to the
instruction's own step, as if there were no library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fragir.emulator.machine.lanes import Mask, Row, Step, is_slice
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand


@dataclass(slots=True)
class StraightCode:
    """One operation of the library: `Code` in native/source/straight.h."""

    function: str  # empty for loads and stores
    sources: list[RowOperand]
    out: RowOperand = NO_ROW
    other: RowOperand = NO_ROW
    kind: int = native.ELEMENTS
    immediate: int = 0
    times: int = 1
    combine: int = 0
    space: int = 0
    width: int = 0
    signed: bool = False
    guard: RowOperand = NO_ROW


class LoopBranch(NamedTuple):
    """A branch back that polls nothing: where to, and the guard that it takes its lanes by."""

    to: int
    row: Row | None
    negated: bool


class Encodes(Protocol):
    """Makes the operations of instructions, by position."""

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of an instruction; None where its own step has to run."""
        ...

    def branch(self, at: int) -> LoopBranch | None:
        """A branch that can close a loop."""
        ...


@dataclass(eq=False)
class StraightRun:
    """A step of several instructions; `stopped`: the position of the one that runs by itself."""

    call: Callable[..., int]
    address: int
    positions: list[int]
    steps: list[Step]
    waits: Callable[[], int] | None  # whether its accesses must look at more than the call does
    keeps: Any
    stopped: int | None = None
    begun: int = 0  # turns of the last call

    def __call__(self, sel: Any, mask: Mask, turns: int = 1) -> None:
        """One turn, or up to so many while all lanes branch back; `begun` says how many."""
        self.begun, start, end = 1, 0, len(self.steps)
        if self.waits is not None and self.waits():
            self._by_steps(sel, mask, 0, end)
            return
        listed = given = None
        if is_slice(sel):
            first, count = sel.start, sel.stop - sel.start
        else:
            warps = np.ascontiguousarray(sel, np.int64)
            first, count, listed = 0, len(warps), native.address_of(warps)
        if mask is not None:
            mask = np.ascontiguousarray(mask)
            given = native.address_of(mask)
        result = self.call(self.address, first, count, listed, given, turns, 0)
        self.begun = result >> 32
        while (start := result & 0xFFFFFFFF) < end:
            self._by_steps(sel, mask, start, start + 1)
            if start + 1 == end:
                return
            result = self.call(self.address, first, count, listed, given, 1, start + 1)

    def _by_steps(self, sel: Any, mask: Mask, start: int, end: int) -> None:
        for index in range(start, end):
            self.stopped = self.positions[index]
            self.steps[index](sel, mask)
        self.stopped = None
