"""The first rows of a memory."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run


def head(run: Run, op: frag.HeadOp) -> None:
    memory = run.memory(op.memory)
    (end,) = run.numbers([op.end])
    if not 0 <= end <= len(memory.value):
        raise FragirError(f"frag.head to {end} of {len(memory.value)} rows")
    run[op.result] = BoundedMemory(memory.value[:end], memory.bound[:end], memory.element)
