"""Tiles in registers: filled, cast, mapped, converted."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag
from fragir.passes.lowering.access import join, split
from fragir.passes.lowering.elementwise import cast_op, clone_elementwise
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.state import LoweringState, fragments_of


def fill(lanes: Lanes, op: frag.FillOp) -> None:
    tile = op.tile.type
    vector = _splat(lanes.state, op.value, tile.chunk)
    lanes.state.tiles[op.tile] = [vector] * fragments_of(tile)


def _splat(state: LoweringState, value: SSAValue, count: int) -> SSAValue:
    constant = value.owner
    if isinstance(constant, arith.ConstantOp) and _is_zero(constant.value):
        return state.ar.zero(VectorType(value.type, [count]))
    return state.ar.splat(state.scalar(value), count)


def _is_zero(attribute: Attribute) -> bool:
    value = getattr(attribute, "value", None)
    data = getattr(value, "data", None)
    return data == 0 and str(data) != "-0.0"


def cast(lanes: Lanes, op: frag.CastOp) -> None:
    source, target = frag.tile_of(op.source), op.result.type
    first, second = source.element_type, target.element_type
    ar, fragments = lanes.state.ar, lanes.fragments(op.source)
    if source.chunk == target.chunk:
        lanes.bind_each(op.result, lambda i: cast_op(ar, fragments[i], first, second))
        return
    # elements of less than a byte in one vector, others by the instruction's
    whole = cast_op(ar, join(ar, fragments), first, second)
    parts = split(ar, whole, target.chunk)
    lanes.bind_each(op.result, lambda i: parts[i])


def map_(lanes: Lanes, op: frag.MapOp) -> None:
    state = lanes.state
    columns = [lanes.fragments(tile) for tile in op.tiles]
    chunk, block = op.result.type.chunk, op.body.block

    def make(i: int) -> SSAValue:
        values = [column[i] for column in columns]
        return clone_elementwise(state.ar, block, values, chunk, state.scalar)

    lanes.bind_each(op.result, make)


def convert(lanes: Lanes, op: frag.ConvertOp) -> None:
    from fragir.passes.lowering.convert import convert

    state, source = lanes.state, frag.tile_of(op.source)
    fragments = state.tiles[op.source]
    state.tiles[op.result] = convert(state, source, op.result.type, fragments)
