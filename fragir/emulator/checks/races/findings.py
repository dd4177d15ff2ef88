"""What is said of two accesses: each pair of instructions once, in each space and of each kind.

Of a pair of which there is worse to say no letters are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fragir.emulator.checks.races.records import COLUMN_MASK, site_of
from fragir.emulator.checks.sentences import quote
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.machine.standstill import met_before

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.emulator.report import Finding
    from fragir.ptx.tree import Instruction

Place: TypeAlias = tuple[int | None, int | None]


class Findings:
    """`found`: `Hooks.found` of the check."""

    def __init__(
        self, machine: Machine, program: Program, clocks: Clocks, found: Callable[..., Finding]
    ) -> None:
        self.machine, self.program, self.clocks, self._found = machine, program, clocks, found
        self._said: set[tuple[str, str, str | None, int, int]] = set()
        #: The place of a site behind those of the program: of an earlier grid.
        self.earlier: Callable[[int], Place] | None = None
        #: (space, site, other) -> letters of that pair; None where there is an error.
        self._letters: dict[tuple[str, int, int], list[Finding] | None] = {}

    def said(self, space: str, kind: str, letter: str | None, site: int, other: int) -> bool:
        """Whether that, or worse, is known: words for it need not be made again."""
        if letter is not None and self._letters.get((space, site, other), ()) is None:
            return True
        return (space, kind, letter, site, other) in self._said

    def shared(
        self,
        kind: str,
        site: int,
        other: int,
        lane: int,
        at: int,
        message: str,
        letter: str | None = None,
    ) -> None:
        """A finding at an instruction, about a byte position of shared memory.

        `letter`: the sentence in `SENTENCES` that is all that speaks against it.
        """
        offset = at % max(self.machine.memory.shared_stride, 1)
        text = f"at shared offset {offset}: {message}"
        met = met_before(self.machine, self.program) if kind == "race" else {}
        block = int(self.machine.block_of[lane // LANES])
        if block in met:
            text += f"; the block has passed {met[block]} before"
        self._say("shared", kind, letter, site, other, text, lane=lane, address=offset)

    def globally(
        self,
        site: int,
        other: int,
        lane: int,
        position: int,
        text: str,
        kind: str = "race",
        letter: str | None = None,
    ) -> None:
        """The same about a byte position of global memory."""
        memory = self.machine.memory
        buffer = memory.buffers[int(memory.buffer_of(np.array([position]))[0])]
        text = f"at byte {position - buffer.start} of {buffer.name}: {text}"
        address = GLOBAL_BASE + position
        self._say("global", kind, letter, site, other, text, lane=lane, address=address)

    def _say(
        self,
        space: str,
        kind: str,
        letter: str | None,
        site: int,
        other: int,
        text: str,
        *,
        lane: int,
        address: int,
    ) -> None:
        if self.said(space, kind, letter, site, other):
            return
        self._said.add((space, kind, letter, site, other))
        ins = self.program.code[site].ins
        text = f"{ins.mnemonic} {text}"
        finding = self._found(
            self.program,
            ins.at,
            kind,
            text if letter is None else f"{text}. {quote(letter)}",
            lane=lane,
            address=address,
            subject=f"{other}",
            severity=None if letter is None else "letter",
            other=self.place_of(other),
        )
        letters = self._letters.setdefault((space, site, other), [])
        if letter is not None and letters is not None:
            letters.append(finding)
        elif letters is not None:
            for milder in letters:
                self.machine.report.findings.remove(milder)
            self._letters[space, site, other] = None

    # -- who it was --------------------------------------------------------------------------------

    def _instruction(self, site: int) -> Instruction:
        return self.program.code[min(site, len(self.program.code) - 1)].ins

    def place_of(self, site: int) -> Place:
        """Line and column of the instruction at a site."""
        if site >= len(self.program.code) and self.earlier is not None:
            return self.earlier(site)
        where = self.program.error("", self._instruction(site).at)
        return where.line, where.col

    def what_at(self, rec: int) -> str:
        """The instruction of a record."""
        site: int = site_of(rec)
        return f"{self._instruction(site).mnemonic} of line {self.place_of(site)[0]}"

    def who(self, lane: int, rec: int) -> str:
        """The instruction and the lane of a record of the cluster of `lane`."""
        column, text = rec & COLUMN_MASK, self.what_at(rec)
        if column >= self.clocks.lanes:
            return text
        other = lane // self.clocks.lanes * self.clocks.lanes + column
        block, warp = self.machine.place(other // LANES)
        there = "" if other // LANES == lane // LANES else f"warp {warp} "
        if self.machine.block_of[other // LANES] != self.machine.block_of[lane // LANES]:
            there = f"block {block} {there}"
        return f"{text} by {there}lane {other % LANES}"

    def who_elsewhere(self, rec: int, owner: int) -> str:
        """The instruction and the thread of a record of another cluster of the grid, `owner`."""
        column = rec & COLUMN_MASK
        if column >= self.clocks.lanes:
            return self.what_at(rec)
        per = self.machine.warps_per_block * LANES
        rank, thread = divmod(column, per)
        block = self.machine.coordinates_of((owner - 1) * self.machine.cluster_size + rank)
        who = f"{self.what_at(rec)} by block {block} warp {thread // LANES} "
        return who + f"lane {thread % LANES}"
