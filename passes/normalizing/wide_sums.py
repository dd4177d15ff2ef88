"""Sums of products in floats that nothing sums in: they are formed in f32, and rounded once.

A product of bf16 into bf16 is what torch prints for a linear layer. Neither tensor cores nor an fma
chain would sum it well in bf16; the sum and what the output held before are added in f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float64Type, FloatAttr, f32
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.passes.normalizing.building import TensorBuilder

NARROW = 8
"""Floats of so many bits, and bf16, are no sums of any instruction."""


def widen_sums(function: func.FuncOp) -> None:
    """Makes of each a product in f32 of zeros, and an elementwise operation behind it."""
    for op in list(function.walk()):
        if isinstance(op, ops.GenericOp) and (factors := factors_of(op)) is not None:
            _widen(op, factors)


def factors_of(op: Operation) -> tuple[SSAValue, SSAValue] | None:
    """The arguments of a body that are multiplied and added to the output, extended or not; None
    of all else, and where something sums in the output's type.
    """
    if not isinstance(op, ops.GenericOp) or len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    block = op.body.block
    old, end = block.args[-1], block.last_op
    if not _is_narrow(old.type) or end is None:
        return None
    if all(kind == attrs.IteratorTypeAttr.parallel() for kind in op.iterator_types):
        return None
    total = end.operands[0].owner
    found: list[SSAValue] = []
    if isinstance(total, math.FmaOp) and total.c is old:
        found = [total.a, total.b]
    elif isinstance(total, arith.AddfOp) and old in (total.lhs, total.rhs):
        product = (total.rhs if total.lhs is old else total.lhs).owner
        found = [product.lhs, product.rhs] if isinstance(product, arith.MulfOp) else []
    sources = [x.owner.input if isinstance(x.owner, arith.ExtFOp) else x for x in found]
    if set(sources) != set(block.args[:2]) or old.uses.get_length() != 1:
        return None
    if any(isinstance(x.type, Float64Type) or not isinstance(x.type, AnyFloat) for x in sources):
        return None
    return sources[0], sources[1]


def _is_narrow(type_: object) -> bool:
    return isinstance(type_, BFloat16Type) or (
        isinstance(type_, AnyFloat) and type_.bitwidth <= NARROW
    )


def _widen(op: ops.GenericOp, factors: tuple[SSAValue, SSAValue]) -> None:
    at, before, arguments = TensorBuilder(op), op.outputs[0], op.body.block.args
    start = at.zeros(before, f32)
    block = Block(arg_types=[arguments[0].type, arguments[1].type, f32])
    build = Builder(InsertPoint.at_end(block))
    x, y = (_extend(build, block.args[arguments.index(factor)]) for factor in factors)
    product = build.insert(arith.MulfOp(x, y)).result
    build.insert(ops.YieldOp(build.insert(arith.AddfOp(block.args[2], product)).result))
    made = ops.GenericOp(
        op.inputs,
        [start],
        Region(block),
        list(op.indexing_maps),
        list(op.iterator_types),
        [start.type] if op.res else [],
    )
    total = at.put_optional(made) or start
    fill = before.owner
    from_zero = isinstance(fill, ops.FillOp) and _is_zero(fill.inputs[0])

    def rounded(build: Builder, elements: Sequence[SSAValue]) -> SSAValue:
        value, old = elements
        if not from_zero:
            value = build.insert(arith.AddfOp(_extend(build, old), value)).result
        return build.insert(arith.TruncFOp(value, arguments[2].type)).result

    into = fill.outputs[0] if isinstance(fill, ops.FillOp) and from_zero else before
    at.replace(at.elementwise([total], into, rounded))


def _extend(build: Builder, value: SSAValue) -> SSAValue:
    return value if value.type == f32 else build.insert(arith.ExtFOp(value, f32)).result


def _is_zero(value: SSAValue) -> bool:
    made = value.owner
    known = made.value if isinstance(made, arith.ConstantOp) else None
    return isinstance(known, FloatAttr) and known.value.data == 0
