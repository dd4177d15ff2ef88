"""Where something lies: affine expressions of loops, as numbers, scalars or tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from fragir.dialects.constants import constant_of
from fragir.passes.contraction.affine_values import Number, computed, value_of
from fragir.passes.points.tile_values import (
    I32,
    Axes,
    Insert,
    Place,
    TileValue,
    ValueBuilder,
)


def union(axes: Sequence[Axes], order: Axes) -> Axes:
    """All of these axes, in an order that has them."""
    return tuple(axis for axis in order if any(axis in some for some in axes))


def place_of(
    build: ValueBuilder, expression: AffineExpr, loops: Sequence[Place], order: Axes
) -> Place:
    """An expression of loops; a tile along those axes, in that order, on which it depends."""
    if isinstance(expression, AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return expression.value
    used = {e.position: loops[e.position] for e in expression.dfs() if isinstance(e, AffineDimExpr)}
    tiles = {at: x for at, x in used.items() if isinstance(x, TileValue) and x.axes}
    numbers: dict[int, Number] = {}
    if not tiles:
        for at, place in used.items():
            numbers[at] = place if isinstance(place, int) else place.value
        found = computed(build.put, expression, numbers, is_index=True)
        return found if isinstance(found, int) else TileValue(found)
    for at, place in used.items():
        if at not in tiles:
            numbers[at] = place if isinstance(place, int) else build.scalar(place)
    axes = union([tile.axes for tile in tiles.values()], order)

    def body(insert: Insert, elements: Sequence[SSAValue]) -> SSAValue:
        every = {**numbers, **dict(zip(tiles, elements, strict=True))}
        return value_of(insert, computed(insert, expression, every, is_index=False), False)

    return build.map(list(tiles.values()), axes, I32, body)


def part_of(build: ValueBuilder, linear: Place, behind: Number, extent: Number | None) -> Place:
    """A loop's place, of all places of several loops, counted through. `behind`: how many of them
    have one place of the loop; `extent`: the loop's size, but of the outermost one.
    """
    if behind == 1 and extent is None:
        return linear
    steps: list[tuple[type[arith.DivUIOp | arith.RemUIOp], Number]] = []
    if behind != 1:
        steps.append((arith.DivUIOp, behind))
    if extent is not None:
        steps.append((arith.RemUIOp, extent))

    def divided(insert: Insert, x: SSAValue, is_index: bool) -> SSAValue:
        for op, by in steps:
            x = insert(op(x, value_of(insert, by, is_index)))
        return x

    if isinstance(linear, TileValue) and linear.axes:
        steps = [
            (op, by if isinstance(by, int) else build.scalar(TileValue(by))) for op, by in steps
        ]
        return build.map([linear], linear.axes, I32, lambda at, x: divided(at, x[0], False))
    return TileValue(divided(build.put, build.index(linear), True))


def number_of(value: SSAValue) -> Number:
    """A constant as a number."""
    found = constant_of(value)
    return value if found is None else found
