"""Undefined bits under shuffles: those that are moved, and those of lanes that give nothing.

The result of a shuffle is undefined where the lane that is read is not in the membermask, has
exited, or does not execute the shuffle (PTX ISA 9.2, section 9.7.9.6). Reductions read such lanes
and use nothing of it, so a warp's shuffles are only remembered here, and reported where it uses
undefined bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.definedness.causes import Causes, ranks
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.instructions.collective import sources_of
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step, store
from fragir.emulator.numbers.types import Array, Bools
from fragir.emulator.program.entities import Register
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder

_ALL = np.ones(LANES, np.bool_)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A shuffle whose result is undefined in some lanes. `subject`: the register, or its mask."""

    ins: tree.Instruction
    subject: str
    message: str
    lane: int


class Shuffles:
    """What the warps have shuffled."""

    def __init__(self, plane: Plane, causes: Causes) -> None:
        self.plane, self.causes = plane, causes
        self.suspects: dict[int, dict[tuple[int, str], Suspect]] = {}

    def clear(self) -> None:
        self.suspects.clear()

    def of(self, warp: int) -> list[Suspect]:
        """The suspects of a warp, which are forgotten."""
        return list(self.suspects.pop(warp, {}).values())

    def _note(self, warp: int, suspect: Suspect) -> None:
        key = id(suspect.ins), suspect.subject
        self.suspects.setdefault(warp, {}).setdefault(key, suspect)

    def step(
        self, d: Decoder, ins: tree.Instruction, result: Register, of: Register | None, name: str
    ) -> Step:
        """What a shuffle does to the undefined bits of its result.

        `of`: the register that it moves, called `name`; None where that has no undefined bits.
        """
        repeat = PlaneDecoder(d, self.plane).repeat(ins, (2, 3))
        out, moved = self.plane.row(result), None if of is None else self.plane.row(of)
        causes, caused = self.causes, self.causes.repeat(d, ins, (2, 3))
        sources, members = sources_of(d, ins), d.row(ins, ins.operands[-1], "u32")
        machine = d.machine

        def run(sel: Select, mask: Mask) -> None:
            there = np.broadcast_to(_ALL, members[sel].shape) if mask is None else mask
            undefined = None if moved is None else moved[sel]
            if undefined is not None and undefined.any():
                moves = (undefined != 0) & there
                if causes.known and of is not None:
                    moves &= ranks(causes.row(of)[sel]) >= len(causes.known)
                repeat(sel, mask)
                caused(sel, mask)
                self._move_bits(d, ins, sel, out[sel] != 0, moves, there, name)
            else:
                store(out, sel, mask, 0)
            source = np.broadcast_to(sources(sel)[0], there.shape)
            gives = np.take_along_axis(there, source, axis=1)
            gives &= (members[sel] >> source.astype(np.uint32)) & 1 != 0
            if mask is not None:
                gives |= ~mask
            if not gives.all():
                store(out, sel, ~gives, np.iinfo(out.dtype).max)
                if causes.known:
                    store(causes.row(result), sel, ~gives, 0)
                alive = machine.alive[sel]
                self._silent(ins, sel, ~gives, source, members[sel], alive)

        return run

    def _move_bits(
        self,
        d: Decoder,
        ins: tree.Instruction,
        sel: Select,
        result: Bools,
        undefined: Bools,
        there: Bools,
        name: str,
    ) -> None:
        warps = np.arange(self.plane.machine.warps)[sel]
        for index in np.flatnonzero((result & there).any(axis=1) & undefined.any(axis=1)):
            lane, count = int(np.argmax(undefined[index])), int(undefined[index].sum())
            some = "1 lane" if count == 1 else f"{count} lanes"
            text = f"{name} is not initialised in {some}; it is shuffled"
            self._note(int(warps[index]), Suspect(ins, name, text, lane))

    def _silent(
        self,
        ins: tree.Instruction,
        sel: Select,
        bad: Bools,
        source: Array,
        members: Array,
        alive: Bools,
    ) -> None:
        """Lanes have read others that give nothing."""
        warps = np.arange(self.plane.machine.warps)[sel]
        for index in np.flatnonzero(bad.any(axis=1)):
            lane = int(np.argmax(bad[index]))
            read, named = int(source[index, lane]), int(members[index, lane])
            if not named >> read & 1:
                why = f"is not in the membermask 0x{named:x}"
            elif not alive[index, read]:
                why = "has exited or never was"
            else:
                why = "does not execute it"
            text = f"lane {lane} reads lane {read}, which {why}"
            self._note(int(warps[index]), Suspect(ins, "membermask", text, lane))
