"""Uses of undefined bits that matter: what is said of them, once for each place and register."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.definedness.causes import DEFINED, ranks
from fragir.emulator.checks.definedness.registers import Undefined
from fragir.emulator.checks.definedness.shuffles import Shuffles
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.numbers.types import Array
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.entities import Register
    from fragir.emulator.program.program import Program

KIND = "uninitialised"


def _lanes(count: int) -> str:
    return "1 lane" if count == 1 else f"{count} lanes"


class Uses:
    """`found`: `Hooks.found` of the check."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        undefined: Undefined,
        shuffles: Shuffles,
        found: Callable[..., object],
    ) -> None:
        self.machine, self.program, self.undefined = machine, program, undefined
        self.shuffles, self._found = shuffles, found
        self._said: set[tuple[int, str]] = set()

    def complain(
        self,
        ins: tree.Instruction,
        name: str,
        what: str,
        warp: int,
        lane: int,
        count: int,
        address: int | None = None,
    ) -> None:
        key = (id(ins), name)
        if key in self._said:
            return
        self._said.add(key)
        self._suspects_of(ins, warp)
        text = f"{name} is not initialised in {_lanes(count)}; it is {what}"
        self._report(ins, name, text, warp * LANES + lane, address)

    def blame(self, found: Array, use: tree.Instruction, what: str) -> None:
        """Says of the operands of tensor cores with these ranks what their results are used for."""
        known = self.undefined.causes.known
        some: list[int] = np.unique(found).tolist()
        for rank in some:
            if rank >= len(known):
                continue
            cause = known[rank]
            key = id(cause.ins), cause.name
            if key in self._said:
                continue
            self._said.add(key)
            self._suspects_of(cause.ins, cause.warp)
            line = self.program.error("", use.at).line
            text = (
                f"{cause.name} is not initialised in {_lanes(cause.lanes)}; it is {cause.what}, "
                f"and what comes of it is {what} at line {line}"
            )
            lane = cause.warp * LANES + cause.lane
            self._report(cause.ins, cause.name, text, lane, cause.address)

    def _suspects_of(self, use: tree.Instruction, warp: int) -> None:
        """Undefined values matter in a warp: so do those that it has shuffled."""
        line = self.program.error("", use.at).line
        for suspect in self.shuffles.of(warp):
            ins, name = suspect.ins, suspect.subject
            if (id(ins), name) in self._said:
                continue
            self._said.add((id(ins), name))
            text = f"{suspect.message}, and what comes of it is used at line {line}"
            self._report(ins, name, text, warp * LANES + suspect.lane)

    def _report(
        self, ins: tree.Instruction, subject: str, text: str, lane: int, address: int | None = None
    ) -> None:
        self._found(self.program, ins.at, KIND, text, lane=lane, address=address, subject=subject)

    def checks(
        self,
        ins: tree.Instruction,
        registers: Iterable[Register],
        what: str,
        place: MemoryOperand | None = None,
        *,
        spared: bool = False,
    ) -> list[Step]:
        """Steps that report undefined bits of registers in the lanes that take part.

        `spared`: not those of a tensor core's results.
        """
        registers = list(dict.fromkeys(registers))
        rows = [
            (r, self.undefined.row(r), self.undefined.flow.name(ins, r))
            for r in registers
            if r in self.undefined.tracked
        ]
        causes = self.undefined.causes
        if not rows:
            return []

        def run(sel: Select, mask: Mask) -> None:
            for register, row, name in rows:
                bad = row[sel] != 0
                if mask is not None:
                    bad = bad & mask
                if causes.known and bad.any():
                    of_register = ranks(causes.row(register)[sel])
                    if spared:
                        bad &= of_register == DEFINED
                    else:
                        self.blame(of_register[bad], ins, what)
                        bad &= of_register >= len(causes.known)
                if bad.any():
                    warp, lane = (int(x) for x in np.argwhere(bad)[0])
                    warp = int(np.arange(self.machine.warps)[sel][warp])
                    address = None
                    if place is not None:
                        at = place.at(slice(None), None)
                        address = int(at[warp, lane])
                    count = int(bad.sum())
                    self.complain(ins, name, what, warp, lane, count, address)

        return self.undefined.if_doubtful([run], registers, ())
