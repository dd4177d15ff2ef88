"""Affine expressions as operations of arith."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

Kind = AffineBinaryOpKind
Number = int | SSAValue
Insert = Callable[[Operation], SSAValue]
_OPERATIONS: Mapping[Kind, Callable[[SSAValue, SSAValue], Operation]] = {
    Kind.Add: arith.AddiOp,
    Kind.Mul: arith.MuliOp,
    Kind.FloorDiv: arith.FloorDivSIOp,
    Kind.CeilDiv: arith.CeilDivSIOp,
}


def value_of(insert: Insert, number: Number, is_index: bool) -> SSAValue:
    """A number as a value, of index or i32."""
    if isinstance(number, int):
        return insert(arith.ConstantOp(IntegerAttr(number, IndexType() if is_index else i32)))
    return number


def computed(
    insert: Insert, expression: AffineExpr, loops: Mapping[int, Number], is_index: bool
) -> Number:
    """An expression of dimensions, whose numbers are given; what is known is folded."""
    if isinstance(expression, AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return expression.value
    assert isinstance(expression, AffineBinaryOpExpr)
    x = computed(insert, expression.lhs, loops, is_index)
    y = computed(insert, expression.rhs, loops, is_index)
    kind = expression.kind
    if isinstance(x, int) and isinstance(y, int):
        return _folded(kind, x, y)
    if (kind is Kind.Add and y == 0) or (kind is not Kind.Add and kind is not Kind.Mod and y == 1):
        return x
    if (kind is Kind.Add and x == 0) or (kind is Kind.Mul and x == 1):
        return y
    if kind is Kind.Mul and 0 in (x, y):
        return 0
    left, right = value_of(insert, x, is_index), value_of(insert, y, is_index)
    if kind is not Kind.Mod:
        return insert(_OPERATIONS[kind](left, right))
    times = insert(arith.MuliOp(insert(arith.FloorDivSIOp(left, right)), right))
    return insert(arith.SubiOp(left, times))


def _folded(kind: Kind, x: int, y: int) -> int:
    ways = {
        Kind.Add: lambda: x + y,
        Kind.Mul: lambda: x * y,
        Kind.Mod: lambda: x % y,
        Kind.FloorDiv: lambda: x // y,
        Kind.CeilDiv: lambda: -(-x // y),
    }
    return ways[kind]()
