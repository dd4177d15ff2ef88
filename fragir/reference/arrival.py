"""Blocks that are counted."""

from __future__ import annotations

import numpy as np

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.reference.bounded import exactly
from fragir.reference.run import Run


def arrive(run: Run, op: frag.ArriveOp) -> None:
    """One block comes after the other."""
    (parts,) = run.numbers([op.parts])
    memory, place = run.memory(op.memory), tuple(run.numbers(op.all_indices()))
    count = memory.at(place)
    if count.bound.any():
        raise FragirError("how many blocks have arrived is not known here")
    there = int(count.value) + 1
    memory.value[place] = 0 if there == parts else there
    run[op.is_last] = exactly(np.bool_(there == parts))
