"""Reductions of linalg: what a body combines, and the number that changes nothing."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypedAttribute

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.reductions import COMBINATIONS
from fragir.passes.contraction.product import is_reduction

KINDS = {
    name: kind
    for kind in ("add", "mul", "max", "min", "and", "or", "xor")
    for name in (COMBINATIONS[kind].floats, COMBINATIONS[kind].integers)
    if name is not None
}
"""How `frag.reduce` calls an operation on two elements."""


class RowCombining(NamedTuple):
    """`old combined with x`, as a body yields it."""

    op: Operation
    kind: str
    x: SSAValue


def combining_of(op: LinalgStructuredOperation) -> RowCombining | None:
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
    return RowCombining(made, KINDS[made.name], x)


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


def only_inside(length: int, element: Attribute, other: FloatAttr) -> Region:
    """Of an element and its place in a row: itself, or another number behind the row's end."""
    i32 = IntegerType(32)
    block = Block(arg_types=[element, i32])
    end = arith.ConstantOp(IntegerAttr(length, i32))
    inside = arith.CmpiOp(block.args[1], end, "slt")
    number = arith.ConstantOp(other)
    chosen = arith.SelectOp(inside, block.args[0], number)
    block.add_ops([end, inside, number, chosen, frag.YieldOp(chosen)])
    return Region(block)


def has_product(op: LinalgStructuredOperation) -> bool:
    """Whether an operation sums products of two inputs: a matrix product, or what is like one."""
    found = combining_of(op) if is_reduction(op) else None
    if found is None:
        return is_reduction(op)
    x = found.x.owner
    return len(op.inputs) == 2 and isinstance(x, arith.MulfOp | arith.MuliOp)
