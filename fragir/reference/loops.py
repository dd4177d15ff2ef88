"""The loops of structured operations, as dimensions of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.run import Run

_COORDINATES = "coordinates along loops"
_KINDS: dict[AffineBinaryOpKind, Callable[[Any, Any], Any]] = {
    AffineBinaryOpKind.Add: operator.add,
    AffineBinaryOpKind.Mul: operator.mul,
    AffineBinaryOpKind.Mod: operator.mod,
    AffineBinaryOpKind.FloorDiv: lambda x, y: x // y,
    AffineBinaryOpKind.CeilDiv: lambda x, y: -(-x // y),
}


def maps_of(op: LinalgStructuredOperation) -> list[AffineMap]:
    """The indexing maps, one an operand."""
    return [attribute.data for attribute in op.get_indexing_maps()]


def extents_of(run: Run, op: LinalgStructuredOperation) -> list[int]:
    """How far each loop runs, as the shapes of operands say; 1 where none does."""
    maps = maps_of(op)
    extents = [1] * maps[0].num_dims
    for map_, operand in zip(maps, op.operands, strict=True):
        for expression, size in zip(map_.results, run[operand].value.shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    return extents


def grid(extents: Sequence[int]) -> list[Any]:
    """Where along each loop every place is: arrays with one dimension a loop, of its size."""
    return list(np.ogrid[tuple(slice(size) for size in extents)])


def spread(x: Bounded, map_: AffineMap, places: Sequence[Any]) -> Bounded:
    """An operand at places along loops, with one dimension a loop where it depends on any."""
    if not map_.results:
        return x
    index = np.broadcast_arrays(*(place_at(e, places) for e in map_.results))
    for dim, (at, size) in enumerate(zip(index, x.value.shape, strict=True)):
        if at.size and not 0 <= at.min() <= at.max() < size:
            raise FragirError(
                f"the loops go from {at.min()} to {at.max()} along dimension {dim} of an operand, "
                f"which has {size}; sizes have to go with each other"
            )
    return Bounded(x.value[tuple(index)], x.bound[tuple(index)])


def place_at(expression: AffineExpr, places: Sequence[Any]) -> Any:
    """An affine expression of numbers for its dimensions."""
    if isinstance(expression, AffineDimExpr):
        return places[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return np.asarray(expression.value)
    if not isinstance(expression, AffineBinaryOpExpr):
        raise FragirError(f"the reference does not know the place {expression}")
    x, y = (place_at(part, places) for part in (expression.lhs, expression.rhs))
    return _KINDS[expression.kind](x, y)


def body(
    run: Run,
    op: LinalgStructuredOperation,
    arguments: Sequence[Bounded],
    places: Sequence[Any],
    shape: Sequence[int],
) -> list[Bounded]:
    """What an operation's body gives at places along its loops."""
    outer = run.kept.get(_COORDINATES)
    run.kept[_COORDINATES] = places
    try:
        return run.region(op.body.block, arguments, shape)
    finally:
        run.kept[_COORDINATES] = outer


def index(run: Run, op: IndexOp) -> None:
    """Where along a loop an element is."""
    run[op.result] = exactly(np.asarray(run.kept[_COORDINATES][op.dim.value.data], np.int64))
