"""The meaning of print and assert: nothing is printed, and what fails for certain is an error."""

from __future__ import annotations

import numpy as np

from fragir.dialects import frag
from fragir.dialects.interfaces import MEANINGS
from fragir.errors import FragirError
from fragir.reference.run import Run


@MEANINGS.attach(frag.PrintOp)
def print_(run: Run, op: frag.PrintOp) -> None:
    """Memory and tiles stay as they are."""


@MEANINGS.attach(frag.AssertOp)
def assert_(run: Run, op: frag.AssertOp) -> None:
    """A condition that may go either way is left to the runs."""
    x = run[op.condition]
    failing = np.argwhere(~x.value.astype(bool) & (x.bound == 0))
    if not len(failing):
        return
    place = f" at [{', '.join(map(str, failing[0]))}]" if x.value.ndim else ""
    block = ", ".join(map(str, run.block_id))
    others = f" (and at {len(failing) - 1} more)" if len(failing) > 1 else ""
    raise FragirError(f"{op.text.data}: this does not hold{place} in block ({block}){others}")
