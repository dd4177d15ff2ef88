"""Scopes of fences and strong accesses (PTX ISA 9.2, section 8.5): whom they reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode

#: From narrow to wide. On one device .sys reaches no further than .gpu.
BLOCK, CLUSTER, DEVICE = 1, 2, 3
_SCOPES = {"cta": BLOCK, "cluster": CLUSTER, "gpu": DEVICE, "gl": DEVICE, "sys": DEVICE}

#: Words that make a load or store strong (section 8.4).
STRONG_WORDS = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}
RELEASING = {"release", "acq_rel", "sc"}
ACQUIRING = {"acquire", "acq_rel", "sc"}


def scope_of(words: Sequence[str]) -> int:
    """The scope that an opcode names; of the device where it names none (atomics, volatile)."""
    return next((_SCOPES[w] for w in words if w in _SCOPES), DEVICE)


def strength(row: Opcode, words: Sequence[str]) -> int:
    """The scope of an atomic or another strong access, 0 for weak ones."""
    return scope_of(words) if row.strong or not STRONG_WORDS.isdisjoint(words) else 0


def orders(row: Opcode, words: Sequence[str]) -> bool:
    """Whether it is a fence of memory, or an access that releases or acquires."""
    if row.fence in ("memory", "initialisations"):
        return True
    return bool(row.access) and not (RELEASING | ACQUIRING).isdisjoint(words)


def levels(program: Program, *, blocks: int, cluster: int) -> tuple[int, ...]:
    """The scopes of what releases in a kernel, in ascending order, as far as they differ.

    `blocks`: of the grid, `cluster`: of a cluster. Where there is one cluster alone, or one block,
    wider scopes are the same; one block of a cluster of its own is its cluster.
    """
    widest = BLOCK if blocks == 1 else CLUSTER if blocks == cluster else DEVICE
    found: set[int] = set()
    for row, words in program.rows():
        if orders(row, words):
            level = scope_of(words)
            found.add(min(level if cluster > 1 or level != CLUSTER else BLOCK, widest))
    return tuple(sorted(found))


def strengths(program: Program, limit: int) -> npt.NDArray[np.int8]:
    """The strength of every instruction; those from `limit` on count as one, of the device."""
    found = [strength(row, words) for row, words in program.rows()]
    return np.array([*found[:limit], DEVICE], np.int8)


def proxies(program: Program) -> int:
    """How many kinds of fences of the asynchronous proxy are told apart: see `Clocks`."""
    if not any(row.by_proxy for row, _ in program.rows()):
        return 0
    partial = any(
        row.fence == "asynchronous" and fenced_spaces(words) != (True, True)
        for row, words in program.rows()
    )
    return 2 if partial else 1


def fenced_spaces(words: Sequence[str]) -> tuple[bool, bool]:
    """Whether a fence of the asynchronous proxy is for (shared, global) memory."""
    shared = any("shared" in w for w in words)
    everything = not shared and "global" not in words
    return shared or everything, "global" in words or everything
