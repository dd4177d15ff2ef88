"""Reductions of linalg: what a body combines, and the number that changes nothing."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, SSAValue, TypedAttribute

from fragir.dialects.elements import element_bits
from fragir.dialects.frag.combinations import COMBINATIONS

KINDS = {
    name: kind
    for kind in ("add", "mul", "max", "min", "and", "or", "xor")
    for name in (COMBINATIONS[kind].floats, COMBINATIONS[kind].integers)
    if name is not None
}
"""How `frag.reduce` calls an operation on two elements."""


class Combining(NamedTuple):
    """`old combined with x`, as a body yields it."""

    op: Operation
    kind: str
    x: SSAValue


def combining_of(op: LinalgStructuredOperation) -> Combining | None:
    """How a reduction combines; None where its body does something else."""
    block = op.body.block
    end, old = block.last_op, block.args[-1]
    if len(op.outputs) != 1 or not isinstance(end, ops.YieldOp) or old.uses.get_length() != 1:
        return None
    made = end.operands[0].owner
    if not isinstance(made, Operation) or made.name not in KINDS or old not in made.operands:
        return None
    if made.results[0].uses.get_length() != 1:
        return None
    x = made.operands[1 if made.operands[0] is old else 0]
    return Combining(made, KINDS[made.name], x)


def neutral(kind: str, type_: Attribute) -> TypedAttribute | None:
    """The number that combined with another one gives that; None where there is none."""
    if type_.name == IntegerType.name:
        bits = element_bits(type_)
        lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
        numbers = {"add": 0, "mul": 1, "max": lowest, "min": highest, "and": -1, "or": 0, "xor": 0}
        return IntegerAttr(numbers[kind], IntegerType(bits))
    floats = {"add": 0.0, "mul": 1.0, "max": -inf, "min": inf}
    if kind not in floats or not isinstance(type_, AnyFloat):
        return None
    return FloatAttr(floats[kind], type_)
