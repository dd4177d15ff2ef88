"""What a tensor is built in the place of: destination passing, as MLIR has it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, OpResult, SSAValue

INTO = frozenset(("tensor.insert_slice", "tensor.insert", "tensor.pack", "tensor.unpack"))
"""Operations that put something into their operand `dest`."""


def destination_of(value: SSAValue) -> SSAValue | None:
    """The tensor that a result takes the place of; None of what is new."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, LinalgStructuredOperation):
        return op.outputs[value.index]
    if op.name == "linalg.softmax":
        return op.operands[1]
    if op.name in INTO or op.name in ("linalg.pack", "linalg.unpack"):
        return op.operands[-1] if op.name == "tensor.insert" else getattr(op, "dest")
    return None


def chain_start(value: SSAValue) -> SSAValue:
    """The tensor that a chain of destinations starts from; casts stand in the chain."""
    while True:
        at = value.owner.source if isinstance(value.owner, tensor.CastOp) else None
        at = at or destination_of(value)
        if at is None:
            return value
        value = at


def is_built(value: SSAValue) -> bool:
    """Whether something is computed in a chain of destinations."""
    while isinstance(value.owner, tensor.CastOp):
        value = value.owner.source
    return destination_of(value) is not None


def homes_of(values: Sequence[SSAValue]) -> list[BlockArgument | None]:
    """For each value that is returned the argument that it is computed in the place of.

    None where there is none: it starts from nothing, or is an argument as it came, or another value
    is returned there already.
    """
    homes: list[BlockArgument | None] = []
    for value in values:
        start = chain_start(value)
        home = start if isinstance(start, BlockArgument) and is_built(value) else None
        homes.append(None if home in homes else home)
    return homes
