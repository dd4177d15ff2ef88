"""Memory under another type: what an operation gives that looks at its first operand."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import SSAValue

VIEWS = (memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.SubviewOp)
"""Operations whose result is memory of their first operand."""


def root_of(value: SSAValue) -> SSAValue:
    """The argument or allocation that memory is a view of."""
    while isinstance(value.owner, VIEWS):
        value = value.owner.operands[0]
    return value
