"""The meaning of print and assert: nothing is printed, and what fails for certain is an error."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import cf

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.run import Run


def print_(run: Run, op: frag.PrintOp) -> None:
    """Memory and tiles stay as they are."""


def assert_(run: Run, op: frag.AssertOp) -> None:
    """A condition that may go either way is left to the runs."""
    _hold(run[op.condition], op.text.data, f" in block ({', '.join(map(str, run.block_id))})")


def assert_element(run: Run, op: cf.AssertOp) -> None:
    """The same of the elements of a structured operation."""
    _hold(run[op.arg], op.msg.data)


def _hold(x: Bounded, text: str, where: str = "") -> None:
    failing = np.argwhere(~x.value.astype(bool) & (x.bound == 0))
    if not len(failing):
        return
    place = f" at [{', '.join(map(str, failing[0]))}]" if x.value.ndim else ""
    others = f" (and at {len(failing) - 1} more)" if len(failing) > 1 else ""
    raise FragirError(f"{text}: this does not hold{place}{where}{others}")
