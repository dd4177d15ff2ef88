"""Elements of a lane's vectors: xDSL's `vector` dialect, as far as registers can say it."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import vector
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.dialects.narrow import is_vector
from fragir.errors import FragirError
from fragir.passes.lowering.access import split
from fragir.passes.lowering.lane_builder import Lanes


def position(op: Any, count: int) -> int:
    """The one element that is meant; FragirError where it is not known while compiling."""
    found = op.get_mixed_position()
    if len(found) != 1 or not isinstance(found[0], int) or not 0 <= found[0] < count:
        raise FragirError(
            f"{op.name} takes one element of a vector by its number, 0 to {count - 1}",
            hint="registers have no addresses: select among the elements",
        )
    return found[0]


def _elements(lanes: Lanes, value: SSAValue) -> list[SSAValue]:
    if not is_vector(value.type) or len(value.type.get_shape()) != 1:
        raise FragirError(f"a lane has vectors of one dimension, not {value.type}")
    return split(lanes.state.ar, lanes.scalar(value), 1)


def extract(lanes: Lanes, op: vector.ExtractOp) -> None:
    elements = _elements(lanes, op.vector)
    lanes.state.values[op.result] = elements[position(op, len(elements))]


def insert(lanes: Lanes, op: vector.InsertOp) -> None:
    elements = _elements(lanes, op.dest)
    elements[position(op, len(elements))] = lanes.scalar(op.source)
    lanes.state.values[op.result] = lanes.insert(ptx.PackOp(elements)).result


def broadcast(lanes: Lanes, op: vector.BroadcastOp) -> None:
    if is_vector(op.source.type):
        raise FragirError("a lane has vectors of one dimension; a number is repeated")
    scalar, count = lanes.scalar(op.source), ptx.length(op.vector.type)
    lanes.state.values[op.vector] = lanes.state.ar.splat(scalar, count)


def shuffle(lanes: Lanes, op: vector.ShuffleOp) -> None:
    elements = [*_elements(lanes, op.v1), *_elements(lanes, op.v2)]
    picked = [elements[number] for number in op.mask.get_values()]
    lanes.state.values[op.result] = lanes.insert(ptx.PackOp(picked)).result
