"""Named operations as `linalg.generic`."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.rewriter import Rewriter


def generalise(function: func.FuncOp) -> None:
    """Replaces every structured operation but fills by its maps, iterators and body."""
    named = [
        op
        for op in function.walk()
        if isinstance(op, LinalgStructuredOperation)
        and not isinstance(op, ops.GenericOp | ops.FillOp)
    ]
    for op in named:
        maps, iterators = op.get_indexing_maps(), op.get_iterator_types()
        results = [result.type for result in op.res]
        made = ops.GenericOp(
            op.inputs, op.outputs, op.detach_region(op.body), maps, iterators, results
        )
        made.attributes.update(op.attributes)
        made.location = op.location
        for inner in made.body.walk():
            inner.location = op.location
        for old, new in zip(op.res, made.res, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, made)
