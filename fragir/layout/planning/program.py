"""Plans as programs: what one thread does with 32-bit words, in order, as data.

A fragment of elements is a list of words: elements of 8 or 16 bits lie in a word lowest first,
elements of 64 bits are two words, the low one first. Words are numbered: first those that a
program is given, then one for every step. What differs from thread to thread is a `Lanewise`
number. Shared memory is not of this kind; `fragir.layout.planning.shared` has it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from fragir.layout.f2 import image


@dataclass(frozen=True, slots=True)
class Linear:
    """A number that every thread has: `start`, with a column added (xor) for each bit of the
    thread's lane and warp that is set. Bits without a column add nothing.
    """

    start: int
    lane: tuple[int, ...] = ()
    warp: tuple[int, ...] = ()

    def __call__(self, lane: int, warp: int) -> int:
        lane, warp = lane & (1 << len(self.lane)) - 1, warp & (1 << len(self.warp)) - 1
        return self.start ^ image(self.lane, lane) ^ image(self.warp, warp)

    @property
    def constant(self) -> bool:
        """Whether all threads have the same number."""
        return not any(self.lane) and not any(self.warp)


@dataclass(frozen=True, slots=True)
class LaneTable:
    """A number that every thread has: `values[warp][lane]`; one row stands for all warps."""

    values: tuple[tuple[int, ...], ...]

    def __call__(self, lane: int, warp: int) -> int:
        return self.values[warp % len(self.values)][lane]

    @property
    def constant(self) -> bool:
        """Whether all threads have the same number."""
        return len({value for row in self.values for value in row}) == 1


Lanewise: TypeAlias = Linear | LaneTable


@dataclass(frozen=True, slots=True)
class Permute:
    """`prmt`: byte i of the result is the byte of (a, b) that nibble i of the selector names."""

    a: int
    b: int
    selector: Lanewise


@dataclass(frozen=True, slots=True)
class Select:
    """`selp`: b in threads whose number is `value`, a in the others."""

    a: int
    b: int
    number: Lanewise
    value: int = 1


@dataclass(frozen=True, slots=True)
class Shuffle:
    """`shfl.sync`: the word `a` of another lane of the warp.

    `lane` is the lane read from; for a butterfly (`flip` is not None) it is the own one ^ `flip`.
    """

    a: int
    lane: Lanewise
    flip: int | None = None


@dataclass(frozen=True, slots=True)
class Transpose:
    """`movmatrix.m8n8.trans.b16`: a matrix of 8 by 8 halves that lies across the warp."""

    a: int


Step: TypeAlias = Permute | Select | Shuffle | Transpose
NAMES = {Permute: "prmt", Select: "selp", Shuffle: "shfl", Transpose: "movmatrix"}


@dataclass(frozen=True)
class WordProgram:
    """The steps of every thread; `outputs` are the numbers of the words that come out."""

    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        return dict(Counter(NAMES[type(step)] for step in self.steps))
