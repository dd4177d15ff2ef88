"""From which operand of a tensor-core instruction undefined bits come.

What a tensor core computes of undefined elements is undefined by rows and columns, and no error as
long as nobody uses it. Where somebody does, the operand is what a user has to look at. So a byte
beside every byte of registers, shared and local memory holds the number of such an operand: the
oldest one where there are several, 0 where there is none. It has a meaning only where bits are
undefined; nothing is kept, nor computed, until a tensor core reads an undefined element.

Computed with are *ranks*, one less than these numbers: the smallest of several wins, and `DEFINED`
loses to all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.planes import Plane, PlaneDecoder, later
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, store
from fragir.emulator.numbers.types import U8, Array
from fragir.emulator.program.entities import Register
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine

#: Ranks of what is defined, and of an operand that has no number any more.
DEFINED, NAMELESS = 255, 254


class Cause(NamedTuple):
    """An operand with undefined elements. `name`: of its first register, or of a place in memory;
    `lanes`: in how many it is undefined."""

    ins: tree.Instruction
    name: str
    what: str
    warp: int
    lane: int
    lanes: int
    address: int | None = None


def ranks(words: Array, size: int | None = None) -> U8:
    """Those of registers, or of their first `size` bytes: of each the smallest of its bytes."""
    whole = np.ascontiguousarray(words)[..., None].view(np.uint8)
    return (whole[..., :size] - np.uint8(1)).min(axis=-1)


def numbers(found: U8, dtype: npt.DTypeLike) -> Array:
    """Ranks as registers hold them: in every byte."""
    dtype = np.dtype(dtype)
    if dtype.itemsize == 1:
        return found + np.uint8(1)
    every = int.from_bytes(b"\1" * dtype.itemsize, "little")
    return (found + np.uint8(1)).astype(dtype) * dtype.type(every)


class Causes:
    """`bits`: the plane of undefined bits."""

    def __init__(self, machine: Machine, bits: Plane) -> None:
        self.machine, self.bits = machine, bits
        self._plane: Plane | None = None
        self._ranks: dict[tuple[int, str], int] = {}
        #: Those of this wave, by rank.
        self.known: list[Cause] = []

    @property
    def plane(self) -> Plane:
        if self._plane is None:
            self._plane = Plane(self.machine, 0)
            files = self._plane.machine.files
            if 1 in files:  # predicates have numbers too
                files[1] = files[1].view(np.uint8)
        return self._plane

    def start_wave(self) -> None:
        self._ranks.clear()
        self.known.clear()
        if self._plane is not None:
            self._plane.reset()

    def rank(self, ins: tree.Instruction, operand: str, find: Callable[[], Cause]) -> int:
        """That of an operand of an instruction; `find` is asked where it has none yet."""
        known = self._ranks.get((id(ins), operand))
        if known is None:
            if len(self.known) >= NAMELESS:
                return NAMELESS
            known = self._ranks[id(ins), operand] = len(self.known)
            self.known.append(find())
        return known

    def row(self, register: Register) -> Row:
        return self.plane.row(register)

    # -- steps; without a cause they do nothing ----------------------------------------------------

    def when_known(self, step: Step) -> Step:
        def run(sel: Select, mask: Mask) -> None:
            if self.known:
                step(sel, mask)

        return run

    def repeat(self, d: Decoder, ins: tree.Instruction, steering: Sequence[int] = ()) -> Step:
        """The step of an instruction that moves data."""
        build = later(d, lambda: PlaneDecoder(d, self.plane).repeat(ins, steering))
        return self.when_known(build)

    def spread(
        self, sources: Iterable[Register], targets: Iterable[Register], together: bool = False
    ) -> Step:
        """What is computed has the causes of what it is computed of: ahead of the undefined bits.

        `together`: of that of all lanes of the warp.
        """
        read, written = list(sources), list(targets)

        def run(sel: Select, mask: Mask) -> None:
            found: Array = np.full((1, 1), DEFINED, np.uint8)
            for register in read:
                bad = self.bits.row(register)[sel] != 0
                bad = bad if mask is None else bad & mask
                if bad.any():
                    of_register = np.where(bad, ranks(self.row(register)[sel]), np.uint8(DEFINED))
                    found = np.minimum(found, of_register)
            if together:
                found = np.repeat(found.min(axis=1, keepdims=True), LANES, axis=1)
            for register in written:
                row = self.row(register)
                store(row, sel, mask, numbers(found, row.dtype))

        return self.when_known(run)
