"""Assertions in bodies: what must hold for each element of a tile that lies inside."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, cf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, SSAValue

from fragir.dialects import frag
from fragir.passes.points.accesses import PlaceAccesses
from fragir.passes.points.bodies import BodyWriter
from fragir.passes.points.tile_values import Axes, Insert, TileValue, ValueBuilder


def write_assertions(
    build: ValueBuilder, accesses: PlaceAccesses, block: Block, body: BodyWriter, order: Axes
) -> None:
    """A `frag.assert` for each `cf.assert` of a body; elements beyond the end hold anyway."""
    for op in block.ops:
        if not isinstance(op, cf.AssertOp):
            continue
        condition = body.value(op.arg, order)
        for axis in condition.axes:
            if not accesses.exact[axis]:
                condition = _or_beyond(build, accesses, condition, axis)
        made = frag.AssertOp(condition.value, op.msg.data)
        build.add(made)
        made.location = op.location


def _or_beyond(
    build: ValueBuilder, accesses: PlaceAccesses, condition: TileValue, axis: int
) -> TileValue:
    along = accesses.axes[axis]
    linear, end = along.linear, along.end
    assert isinstance(linear, TileValue)
    last = build.scalar(end if isinstance(end, int) else TileValue(end))

    def either(insert: Insert, elements: Sequence[SSAValue]) -> SSAValue:
        holds, place = elements
        beyond = insert(arith.CmpiOp(place, last, "sge"))
        return insert(arith.OrIOp(holds, beyond))

    return build.map([condition, linear], condition.axes, i1, either)
