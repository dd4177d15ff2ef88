"""What an instruction does beside computing its result, told from its row in the table of opcodes.

An instruction is pure where its row names nothing else. Those that a warp executes together have no
effect on memory, but do not move into or out of control flow. What is in no row, or accesses
memory in order, reads and writes.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from fragir.dialects.ptx.statement import Statement, read
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.table import found


class Effect(Enum):
    """From what may be moved anywhere to what must stay where it is."""

    PURE = "pure"
    TOGETHER = "together"
    READS = "reads"
    WRITES = "writes"


#: Special registers that give another number each time, or change as a kernel runs (section 10).
_CHANGING = ("%clock", "%globaltimer", "%pm", "%warpid", "%smid", "%reserved")
#: Opcodes of which their rows say nothing, and whose results depend on where they stand.
_HERE = frozenset("activemask alloca stacksave".split())
_ORDERED = frozenset("volatile relaxed acquire release mmio".split())


@lru_cache(maxsize=1 << 14)
def effect(text: str) -> Effect:
    """The effect of a statement."""
    statement = read(text)
    row = found(statement.instruction).opcode
    if row is None or not row.writes or not statement.written:
        return Effect.WRITES
    if _changes(statement, row):
        return Effect.WRITES
    if row.access == "load":
        return Effect.READS
    return Effect.TOGETHER if row.together else Effect.PURE


def _changes(statement: Statement, row: Opcode) -> bool:
    words = frozenset(statement.instruction.opcode)
    return bool(
        row.access in ("store", "atomic")
        or row.ends
        or row.asynchronous
        or row.strong
        or row.fence
        or row.stack
        or row.registers
        or row.accumulates
        or row.tensor_map
        or row.polls == "always"
        or row.name in _HERE
        or words & _ORDERED
        # the carry is a register that no operand names (section 9.7.2)
        or "cc" in words
        or row.name.split(".")[0] in ("addc", "subc", "madc")
        or any(name.startswith(_CHANGING) for name in statement.special)
    )
