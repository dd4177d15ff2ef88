"""`affine.apply` and `affine.min` as arith: the sizes and places that others compute with them."""

from __future__ import annotations

from xdsl.dialects import affine, arith, func
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.passes.structured.values import computed, value_of


def expand_affine(function: func.FuncOp) -> None:
    """Replaces them wherever they stand."""
    for op in list(function.walk()):
        if isinstance(op, affine.ApplyOp | affine.MinOp):
            _expand(op)


def _expand(op: affine.ApplyOp | affine.MinOp) -> None:
    def insert(made: Operation) -> SSAValue:
        made.location = op.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.results[0]

    map_ = op.map.data
    numbers = dict(enumerate(op.operands))
    dims = [AffineExpr.dimension(at) for at in range(map_.num_dims)]
    symbols = [AffineExpr.dimension(map_.num_dims + at) for at in range(map_.num_symbols)]
    found: SSAValue | None = None
    for expression in map_.results:
        one = expression.replace_dims_and_symbols(dims, symbols)
        value = value_of(insert, computed(insert, one, numbers, is_index=True), True)
        found = value if found is None else insert(arith.MinSIOp(found, value))
    assert found is not None
    name = op.results[0].name_hint
    Rewriter.replace_op(op, [], [found])
    if found not in numbers.values():
        found.name_hint = name
