"""Operations on numbers that stand around linalg operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.ir import Block, Operation
from xdsl.rewriter import Rewriter


def is_scalar(op: Operation) -> bool:
    """Whether an operation only computes with numbers."""
    return op.name.partition(".")[0] in ("arith", "math") and not op.regions


def erase_dead(candidates: Sequence[Operation], block: Block) -> None:
    """Erases scalars of a block that nothing uses, starting from some operations."""
    pending = list(candidates)
    while pending:
        op = pending.pop()
        dead = all(result.uses.get_length() == 0 for result in op.results)
        if op.parent is block and dead and (isinstance(op, memref.DimOp) or is_scalar(op)):
            pending += owners(op)
            Rewriter.erase_op(op)


def owners(op: Operation) -> list[Operation]:
    """The operations that compute an operation's operands."""
    return [value.owner for value in op.operands if isinstance(value.owner, Operation)]
