"""What a tensor is built in the place of: destination passing, as MLIR has it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, tensor
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, OpResult, SSAValue

from fragir.dialects.linalg.constants import is_held

PACKING = ("linalg.pack", "linalg.unpack", "tensor.pack", "tensor.unpack")
"""Tensors in tiles, and back, under the names that MLIR has had for them."""
EXTENSIONS = frozenset(
    f"{dialect}.{name}"
    for dialect in ("tm_tensor", "iree_linalg_ext")
    for name in ("sort", "scan", "scatter", "fft")
)
"""Operations beside linalg whose results take the places of their outputs."""
INTO = frozenset(("tensor.insert_slice", "tensor.insert", *PACKING))
"""Operations that put something into their operand `dest`."""


def destination_of(value: SSAValue) -> SSAValue | None:
    """The tensor that a result takes the place of; None of what is new."""
    if not isinstance(value, OpResult):
        return None
    op = value.op
    if isinstance(op, func.CallOp):
        start = chain_start(_returned_value(value))
        return op.operands[start.index] if isinstance(start, BlockArgument) else None
    if isinstance(op, LinalgStructuredOperation):
        return op.outputs[value.index]
    if op.name in EXTENSIONS:
        outputs: Sequence[SSAValue] = getattr(op, "outputs")
        return outputs[value.index]
    if op.name == "linalg.softmax":
        return op.operands[1]
    if op.name in INTO:
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
    before = destination_of(value)
    if before is None or not isinstance(value, OpResult) or not isinstance(value.op, func.CallOp):
        return before is not None
    return is_built(_returned_value(value)) or is_built(before)


def _returned_value(result: OpResult) -> SSAValue:
    """What the function that is called returns for a result."""
    from fragir.dialects.calls import returned_by

    return returned_by(result)


def homes_of(values: Sequence[SSAValue]) -> list[BlockArgument | None]:
    """For each value that is returned the argument that it is computed in the place of.

    None where there is none: it starts from nothing or a constant, or is an argument as it came, or
    another value is returned there already.
    """
    homes: list[BlockArgument | None] = []
    for value in values:
        start = chain_start(value)
        home = start if isinstance(start, BlockArgument) and is_built(value) else None
        home = None if home is not None and is_held(home) else home
        homes.append(None if home in homes else home)
    return homes
