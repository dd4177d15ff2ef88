"""Whether the blocks of a launch may run in several processes, each some of them.

What blocks do to each other's memory is found while they run (`machine/footprints.py`). Here is the
rest: what a launch does that is one for all its blocks, and what makes it likely that they meet, so
that it were in vain.
"""

from __future__ import annotations

import os
import sys

from fragir.emulator.checks.races.scopes import strength
from fragir.emulator.numbers.types import count_of, kind_of, width_of
from fragir.emulator.program.program import Program
from fragir.ptx.opcodes.row import Opcode

#: Warps of a launch below which more of them at once take no longer: numpy's calls are what costs.
LEAST_WARPS = 32
#: Functions that may be called: a failed assertion ends the run, whoever it is.
_HARMLESS = {"__assertfail"}
_SPACES = ("global", "shared", "local", "param", "const")
_UNIT = 4  # bytes: the largest unit of a footprint


def can_fork() -> bool:
    """Whether processes can be forked that share memory, and go on where their parent was."""
    return sys.platform == "linux" and hasattr(os, "fork")


def obstacle(program: Program, *, warps: int, clusters: int) -> str | None:
    """Why the blocks of a program do not run side by side, in a clause; None where they may.

    `warps` and `clusters`: of the grid.
    """
    if not can_fork():
        return "processes are forked on Linux alone"
    if clusters < 2 or warps < LEAST_WARPS:
        return "there are too few blocks"
    others = sorted(program.externs - _HARMLESS)
    if others:
        return f"{others[0]} is called, which is one for all blocks"
    for row, words in _distinct(program):
        if row.takes_cluster:
            return f"{row.name} takes blocks off the launch"
        if row.tensor_map == "changes":
            return f"{row.name} changes tensor maps"
        accesses = row.access or row.strong  # fences and barriers alone reach nobody
        if accesses and strength(row, words) and space_of(words) not in ("shared", "local"):
            return f"{'.'.join(words)} may reach other blocks"
    return None


def _distinct(program: Program) -> list[tuple[Opcode, tuple[str, ...]]]:
    """The rows of a program's instructions, each opcode once."""
    return [(row, words) for words, row in {words: row for row, words in program.rows()}.items()]


def space_of(words: tuple[str, ...]) -> str:
    """The first state space that an opcode names: that of its destination; else generic."""
    found = (space for word in words for space in _SPACES if word.split("::")[0] == space)
    return next(found, "generic")


def unit_of(program: Program) -> int:
    """Bytes of the smallest access to global memory, at most 4: the unit of footprints."""
    unit = _UNIT
    for row, words in _distinct(program):
        plain = row.access and not row.together and row.bits != "fill"
        if plain and space_of(words) in ("global", "generic"):
            unit = min(unit, max(width_of(kind_of(words)) // 8, 1) * count_of(words))
    return unit
