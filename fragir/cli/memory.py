"""What a run needs of this machine's memory, before it is asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.reference.inputs import ProgramArgument

# Bytes an element: as stored, as float64 in the reference, and the copy that the kernel works on.
_EACH = 16


def refuse_too_large(slots: Sequence[ProgramArgument], sizes: Mapping[str, int]) -> None:
    """Raises FragirError where the arrays of a program do not fit into this machine's memory.

    Only what cannot be is refused: the least that a run holds is compared with all there is.
    """
    needed = {
        slot.name: _EACH * math.prod(sizes[name] for name in slot.names)
        for slot in slots
        if slot.shape is not None
    }
    there = physical()
    if there is None or sum(needed.values()) <= there:
        return
    name = max(needed, key=needed.__getitem__)
    shape = next("x".join(str(sizes[n]) for n in s.names) for s in slots if s.name == name)
    raise FragirError(
        f"the arrays need {_gib(sum(needed.values()))}, this machine has {_gib(there)}"
        f" (the largest is {name}: {shape})",
        hint="choose smaller sizes",
    )


def physical() -> int | None:
    """The bytes of memory of this machine; None where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _gib(count: int) -> str:
    gib = count / 2**30
    return f"{gib:.1f} GiB" if gib < 1e6 else f"{gib:.1e} GiB"
