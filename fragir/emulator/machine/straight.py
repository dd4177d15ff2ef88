"""Decoded code: steps and terminators, and the straight runs that the core takes in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.lanes import Mask, Select, Step, is_slice
from fragir.emulator.native import straight as native
from fragir.emulator.native.straight import NO_ROW, RowOperand
from fragir.emulator.numbers.types import Array


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
    watched: int = -1  # the row of what checks see of it; none: they do not look
    guard: RowOperand = NO_ROW


class Ending(NamedTuple):
    """How a block ends: FALLING to BARRIER of the library, or OTHER.

    A branch goes to `to`, of the lanes that `row` names where it is BRANCH.
    """

    kind: int = native.OTHER
    to: int = -1
    row: RowOperand = NO_ROW


class Encodes(Protocol):
    """Makes the operations of instructions, by position."""

    def codes(self, at: int) -> list[StraightCode] | None:
        """The operations of an instruction; None where its own step has to run."""
        ...

    def ending(self, at: int) -> Ending:
        """How the terminator at a position ends its block."""
        ...

    def involved(self, at: int) -> int:
        """The registers that checks look at where one of them is in doubt, as bits."""
        ...


class WatchesRuns(Protocol):
    """The checks of a launch, which leave to calls of the library what they say nothing of."""

    @property
    def address(self) -> int:
        """Of what it is told."""
        ...

    def begin(self) -> None:
        """Before a call that may access memory or pass a barrier."""
        ...

    def end(self) -> None:
        """Behind it."""
        ...

    def doubt(self) -> int:
        """The registers that are in doubt, as bits."""
        ...


class Walking(NamedTuple):
    """The library's call and what it is told with each."""

    call: Callable[..., int]
    walk: native.Walk
    address: int
    waits: Callable[[], int]  # whether accesses must look at more than a call does
    watch: WatchesRuns | None  # who has to be asked and told
    look: Callable[[], None]  # notes which registers are in doubt


@dataclass(eq=False)
class StraightRun:
    """A step of several instructions; `stopped`: the position of the one that runs by itself."""

    walking: Walking
    number: int  # of the piece
    positions: list[int]
    steps: list[Step]
    accesses: bool  # whether some of them do
    involved: list[int]  # what checks look at in each of them where it is in doubt
    codes: Array
    keeps: object
    stopped: int | None = None

    def __call__(self, sel: Select, mask: Mask) -> None:
        self._from(sel, mask, 0)

    def go(self, sel: Select, mask: Mask, start: int, on: int) -> int:
        """One call, from an instruction on: where it stopped, in which piece `walk.piece` says."""
        listed = given = None
        if is_slice(sel):
            first, count = sel.start, sel.stop - sel.start
        else:
            warps = np.ascontiguousarray(sel, np.int64)
            first, count, listed = 0, len(warps), native.address_of(warps)
        if mask is not None:
            mask = np.ascontiguousarray(mask)
            given = native.address_of(mask)
        walking, watch = self.walking, self.walking.watch
        if watch is None or not (on or self.accesses):
            return walking.call(walking.address, first, count, listed, given, start, on)
        watch.begin()
        try:
            return walking.call(walking.address, first, count, listed, given, start, on)
        finally:
            watch.end()

    def doubt(self, registers: int) -> None:
        """Says of which instructions registers are in doubt."""
        flags = np.array([each & registers != 0 for each in self.involved] or [False])
        self.codes["doubt"] = flags[self.codes["number"]]

    def finish(self, sel: Select, mask: Mask, at: int) -> None:
        """What is left of this run: the instruction that a call stopped at, and all behind it."""
        if at < len(self.steps):
            self._by_step(sel, mask, at)
            self._from(sel, mask, at + 1)

    def _from(self, sel: Select, mask: Mask, at: int) -> None:
        end, walking = len(self.steps), self.walking
        while at < end:
            if self.accesses and walking.waits():
                self._by_step(sel, mask, at)
                at += 1
                continue
            walking.look()
            walking.walk.piece = self.number
            at = self.go(sel, mask, at, 0)
            if at < end:
                self._by_step(sel, mask, at)
                at += 1

    def _by_step(self, sel: Select, mask: Mask, at: int) -> None:
        self.stopped = self.positions[at]
        self.steps[at](sel, mask)
        self.stopped = None


# -- code ------------------------------------------------------------------------------------------
# Decoded code: steps, terminators, and straight pieces of them that run as one.

#: A terminator ends a block: the next position if it is one for all lanes, or None where it has
#: written `key` itself.
Terminator = Callable[[Select, Mask], int | None]


@dataclass(slots=True)
class DecodedCode:
    """The decoded program. `steps` has None where a step was fused into an earlier one."""

    steps: list[Step | None]
    terminators: dict[int, Terminator]
    leaders: set[int]
    #: position -> lanes that must be there, as bits per warp (None: all that are alive)
    collectives: dict[int, Callable[[Select, Mask], object] | None]
    #: positions where the four warps of a warpgroup must come together
    warpgroups: set[int]


@dataclass(slots=True)
class BasicBlock:
    """Straight-line code from one position on: [start, end), then a terminator or falling on."""

    pairs: list[tuple[int, Step]]
    end: int
    terminator: Terminator | None
    collective: bool
    warpgroup: bool
    size: int  # instructions, the terminator among them
    start: int
    #: What is called for `pairs`: the same, or runs of them.
    parts: list[tuple[int, Step]]
    runs: int = 0
    visits: int = 0
    whole: StraightRun | None = None  # all of it as one run


_OF_GROUP = np.arange(4)


def whole_warpgroups(sel: Select) -> bool:
    """Whether a selection is made of whole, aligned warpgroups."""
    if is_slice(sel):
        return sel.start % 4 == 0 and sel.stop % 4 == 0
    if len(sel) % 4:
        return False
    groups = sel.reshape(-1, 4)
    return not bool(((groups - groups[:, :1] != _OF_GROUP) | (groups[:, :1] % 4 != 0)).any())


def contiguous(warps: npt.NDArray[np.intp]) -> Select:
    """Warp indices as a slice where they are neighbours: slices are views, indices are copies."""
    if len(warps) and int(warps[-1]) - int(warps[0]) + 1 == len(warps):
        return slice(int(warps[0]), int(warps[-1]) + 1)
    return warps
