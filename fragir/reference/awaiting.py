"""The meaning of waiting, by what is waited for."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.reference.rings import await_slot
from fragir.reference.run import Run


def await_(run: Run, op: frag.AwaitOp) -> None:
    if frag.held_tile(op.source.type) is not None:
        run[op.result] = run[op.source]  # it is what it will be: nobody could ask before
    else:
        await_slot(run, op)
