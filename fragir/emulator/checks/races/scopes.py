"""Scopes of fences and strong accesses (PTX ISA 9.2, section 8.5): whom they reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from fragir.ptx.tree import Instruction

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


def strength(words: Sequence[str]) -> int:
    """The scope of an atomic or another strong access, 0 for weak ones."""
    if (
        words[0] in ("atom", "red")
        or words[:2] == ("cp", "reduce")
        or not STRONG_WORDS.isdisjoint(words)
    ):
        return scope_of(words)
    return 0


def fences(ins: Instruction) -> bool:
    """Whether it is a fence of memory (not of a proxy)."""
    return ins.opcode[0] in ("fence", "membar") and not any("proxy" in w for w in ins.opcode)


def orders(ins: Instruction) -> bool:
    """Whether it is a fence, or an access that releases or acquires."""
    access = ins.opcode[0] in ("ld", "st", "atom", "red")
    return fences(ins) or (access and not (RELEASING | ACQUIRING).isdisjoint(ins.opcode))


def levels(code: Iterable[Instruction], *, blocks: int, cluster: int) -> tuple[int, ...]:
    """The scopes of what releases in a kernel, in ascending order, as far as they differ.

    `blocks`: of the grid, `cluster`: of a cluster. Where there is one cluster alone, or one block,
    wider scopes are the same; one block of a cluster of its own is its cluster.
    """
    widest = BLOCK if blocks == 1 else CLUSTER if blocks == cluster else DEVICE
    found: set[int] = set()
    for ins in code:
        if orders(ins):
            level = CLUSTER if "mbarrier_init" in ins.opcode else scope_of(ins.opcode)
            found.add(min(level if cluster > 1 or level != CLUSTER else BLOCK, widest))
    return tuple(sorted(found))


def strengths(code: Sequence[Instruction], limit: int) -> npt.NDArray[np.int8]:
    """The strength of every instruction; those from `limit` on count as one, of the device."""
    found = [strength(ins.opcode) for ins in code[:limit]]
    return np.array([*found, DEVICE], np.int8)


def proxies(code: Sequence[Instruction]) -> int:
    """How many kinds of fences of the asynchronous proxy are told apart: see `Clocks`."""
    if not any(
        i.opcode[:2] == ("wgmma", "mma_async")
        or "bulk" in i.opcode
        or i.opcode[0] == "clusterlaunchcontrol"
        for i in code
    ):
        return 0
    return 2 if any(fenced_spaces(i.opcode) not in (None, (True, True)) for i in code) else 1


def fenced_spaces(words: Sequence[str]) -> tuple[bool, bool] | None:
    """Whether a fence of the asynchronous proxy is for (shared, global) memory; None for others."""
    if words[0] != "fence" or not any(w.split("::")[0] == "async" for w in words):
        return None
    shared = any("shared" in w for w in words)
    everything = not shared and "global" not in words
    return shared or everything, "global" in words or everything
