"""What the parts of the check share, and nothing that only one of them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fragir.emulator.checks.operand_contents import quote
from fragir.emulator.checks.protocols.history import history_of
from fragir.emulator.checks.races.clocks import COLUMN_MASK, SITE_MASK, TIME_SHIFT, site_of
from fragir.emulator.machine.lanes import LANES, Select, is_slice
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.machine.scheduler import met_before
from fragir.emulator.numbers.types import I64, Array, every
from fragir.emulator.report import Why

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.ledger import Ledger, LedgerRows
    from fragir.emulator.checks.synchronisation import Sites
    from fragir.emulator.machine.arena import AccessPattern
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.emulator.report import Finding
    from fragir.ptx.tree import Instruction


# -- findings --------------------------------------------------------------------------------------
# What is said of two accesses: each pair of instructions once, in each space and of each kind.
#
# Of a pair of which there is worse to say no letters are kept.

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

    def is_said(self, space: str, kind: str, letter: str | None, site: int, other: int) -> bool:
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
        rec: int | None = None,
    ) -> None:
        """A finding at an instruction, about a byte position of shared memory.

        `letter`: the sentence in `SENTENCES` that is all that speaks against it. `rec`: the other
        access, of the same cluster.
        """
        offset = at % max(self.machine.memory.shared_stride, 1)
        text = f"at shared offset {offset}: {message}"
        met = met_before(self.machine, self.program) if kind == "race" else {}
        block = int(self.machine.block_of[lane // LANES])
        if block in met:
            text += f"; the block has passed {met[block]} before"
        self._say("shared", kind, letter, site, other, text, lane=lane, address=offset, rec=rec)

    def globally(
        self,
        site: int,
        other: int,
        lane: int,
        position: int,
        text: str,
        kind: str = "race",
        letter: str | None = None,
        rec: int | None = None,
    ) -> None:
        """The same about a byte position of global memory."""
        memory = self.machine.memory
        buffer = memory.buffers[int(memory.buffer_of(np.array([position]))[0])]
        text = f"at byte {position - buffer.start} of {buffer.name}: {text}"
        address = GLOBAL_BASE + position
        self._say("global", kind, letter, site, other, text, lane=lane, address=address, rec=rec)

    def tensor(self, site: int, other: int, lane: int, address: int, text: str) -> None:
        """The same about a word of tensor memory."""
        self._say("tensor", "race", None, site, other, text, lane=lane, address=address, rec=None)

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
        rec: int | None,
    ) -> None:
        if self.is_said(space, kind, letter, site, other):
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
            why=None if rec is None else self._why(lane, rec),
        )
        letters = self._letters.setdefault((space, site, other), [])
        if letter is not None and letters is not None:
            letters.append(finding)
        elif letters is not None:
            for milder in letters:
                self.machine.report.findings.remove(milder)
            self._letters[space, site, other] = None

    def _why(self, lane: int, rec: int) -> Why | None:
        """What barriers have to do with it; None where the other access is no thread's."""
        history, column = history_of(self.machine), rec & COLUMN_MASK
        if column >= self.clocks.lanes:
            return None
        other = lane // self.clocks.lanes * self.clocks.lanes + column
        if history is None:
            return Why(notes=("there is no barrier in this kernel",))
        return history.between(lane, other, rec >> TIME_SHIFT)

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


class Excuses:
    """Instructions that would race, had they not stored the bytes that were there, or all the same.

    `excused`: by site, those whose bytes were compared, of accesses before them too; the last one
    for what the kernel has found in global memory.
    """

    FOUND = SITE_MASK + 1

    def __init__(self) -> None:
        self.excused = np.zeros(SITE_MASK + 2, np.uint8)

    def note(self, *sites: I64 | int) -> None:
        for some in sites:
            self.excused[some] = 1


@dataclass(frozen=True, slots=True)
class Context:
    """The machine that runs, who knows of what, where instructions are, and what is found."""

    machine: Machine
    clocks: Clocks
    sites: Sites
    findings: Findings
    excuses: Excuses


# -- groups ----------------------------------------------------------------------------------------
# The lanes that access one space in one step, as the parts of the check hand them on.


class AccessGroup:
    """`at`: byte positions, one for each of `lanes` (flat numbers). `sel`: where these are all
    lanes of some warps, in order, which; their values are then looked up without their numbers.

    `whole`: the flat numbers of the lanes, where these are all of neighbouring warps. `pattern`:
    where the instruction has accessed memory like this before; `like`: its number and the first
    position: groups in which they are equal access the same places by the same lanes.

    Known once somebody has asked for `apart`: `ascends`, whether positions do; `ends`, the least
    and the greatest one, where they ascend or there is a pattern. The rest is kept for the next
    access that is the same (`undisputed.py`).
    """

    __slots__ = (
        *("at", "lanes", "sel", "whole", "pattern", "like", "ascends", "ends", "_apart"),
        *("places", "columns", "rows"),
    )

    def __init__(self, at: I64, lanes: I64, sel: Select | None = None) -> None:
        self.at, self.lanes, self.sel = at, lanes, sel
        self.whole: slice | None = None
        if sel is not None and is_slice(sel):
            self.whole = slice(sel.start * LANES, sel.stop * LANES)
        self.pattern: AccessPattern | None = None
        self.like: tuple[int, int] | None = None
        self._apart: bool | None = None
        self.ascends = False
        self.ends = 0, 0
        self.places: I64 | None = None
        self.columns: I64 | None = None
        self.rows: tuple[Ledger, int, LedgerRows] | None = None

    @classmethod
    def of(cls, access: Access, at: I64, lanes: I64) -> AccessGroup:
        """A part of an access."""
        if access.group is not None:
            return access.group
        whole = access.mask is None and lanes is access.lanes
        whole = whole and lanes.ndim == 2 and lanes.shape[1] == LANES
        found = cls(at.ravel(), lanes.ravel(), access.sel if whole else None)
        pattern = access.pattern
        if pattern is not None:
            first = at.item(0)
            found.pattern, found.like = pattern, (pattern.number, first)
            found._apart, found.ascends = pattern.apart, pattern.ascends
            found.ends = first + pattern.low, first + pattern.high
            access.group = found
        return found

    def pick(self, values: Array) -> Array:
        """What an array has, by lane of the machine, for each of these."""
        if self.whole is not None:
            return values[self.whole]
        if self.sel is None:
            return values[self.lanes]
        return values.reshape(-1, LANES)[self.sel].ravel()

    @property
    def are_apart(self) -> bool:
        """Whether no two lanes access one place; not known of all that do not ascend."""
        if self._apart is None:
            at = self.at
            self._apart = self.ascends = every(at[1:] > at[:-1])
            self.ends = at.item(0), at.item(-1)
        return self._apart

    def some(self, which: slice | Array) -> AccessGroup:
        """Those of a mask or, where it is a slice, all."""
        if isinstance(which, slice):
            return self
        return AccessGroup(self.at[which], self.lanes[which])
