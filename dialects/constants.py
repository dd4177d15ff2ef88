"""Numbers that stand in a program as `arith.constant`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import SSAValue

_INDEX = IndexType()


def constant_of(value: SSAValue) -> int | None:
    """The whole number that a value is; None where it is no constant."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def index_constant(number: int) -> arith.ConstantOp:
    """A number as an index."""
    return arith.ConstantOp(IntegerAttr(number, _INDEX))
