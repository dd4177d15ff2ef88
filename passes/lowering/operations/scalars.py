"""Numbers, indices and vectors: constants and index arithmetic are folded, others taken over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.limits import check_index
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.tile_access import split

if TYPE_CHECKING:
    from xdsl.dialects import vector  # few programs have them

# --- numbers --------------------------------------------------------------------------------------

Build = Callable[[Arithmetic, Value, Value, str | None], Value]


def constant(lanes: Lanes, op: arith.ConstantOp) -> None:
    state = lanes.state
    if isinstance(op.value, IntegerAttr) and op.result.type == INDEX:
        state.values[op.result] = check_index(op.value.value.data, "an index")
        return
    state.values[op.result] = state.ar.literal(op.value)


def _divide(ar: Arithmetic, x: Value, y: Value, name: str | None) -> Value:
    if isinstance(y, int) and y > 0:
        return ar.div(x, y, name)
    return ar.insert(arith.DivUIOp(ar.value(x), ar.value(y)), name).result


def _remainder(ar: Arithmetic, x: Value, y: Value, name: str | None) -> Value:
    if isinstance(y, int) and y > 0:
        return ar.rem(x, y, name)
    return ar.insert(arith.RemUIOp(ar.value(x), ar.value(y)), name).result


_INDEX: dict[type[arith.SignlessIntegerBinaryOperation], Build] = {
    arith.AddiOp: Arithmetic.add,
    arith.SubiOp: Arithmetic.sub,
    arith.MuliOp: Arithmetic.mul,
    arith.DivUIOp: _divide,
    arith.RemUIOp: _remainder,
}


def integer(lanes: Lanes, op: arith.SignlessIntegerBinaryOperation) -> None:
    """Index arithmetic folds; that of other integers is as written."""
    state, x, y, result = lanes.state, op.lhs, op.rhs, op.result
    if result.type == INDEX:
        build = _INDEX[type(op)]
        name = result.name_hint
        state.values[result] = build(state.ar, state.values[x], state.values[y], name)
        return
    new = state.ar.insert(type(op)(state.scalar(x), state.scalar(y)), result.name_hint)
    state.values[result] = new.result


def end(lanes: Lanes, op: func.ReturnOp) -> None:
    if op.arguments:
        raise FragirError("a kernel returns nothing", hint="write results to a memref argument")
    for finish in lanes.state.at_end:
        finish(op)
    lanes.state.ar.insert(func.ReturnOp())


def block_id(lanes: Lanes, op: frag.BlockIdOp) -> None:
    state = lanes.state
    register = f"ctaid.{op.dimension.data.value}"
    state.values[op.result] = state.hardware.special(register, op.result.name_hint or "block")


# --- vectors --------------------------------------------------------------------------------------


def require_position(op: Any, count: int) -> int:
    """The one element that is meant; FragirError where it is not known while compiling."""
    found = op.get_mixed_position()
    if len(found) != 1 or not isinstance(found[0], int) or not 0 <= found[0] < count:
        raise FragirError(
            f"{op.name} takes one element of a vector by its number, 0 to {count - 1}",
            hint="registers have no addresses: select among the elements",
        )
    return found[0]


def _require_elements(lanes: Lanes, value: SSAValue) -> list[SSAValue]:
    if not is_vector(value.type) or len(value.type.get_shape()) != 1:
        raise FragirError(f"a lane has vectors of one dimension, not {value.type}")
    return split(lanes.state.ar, lanes.scalar(value), 1)


def extract(lanes: Lanes, op: vector.ExtractOp) -> None:
    elements = _require_elements(lanes, op.vector)
    lanes.state.values[op.result] = elements[require_position(op, len(elements))]


def insert(lanes: Lanes, op: vector.InsertOp) -> None:
    elements = _require_elements(lanes, op.dest)
    elements[require_position(op, len(elements))] = lanes.scalar(op.source)
    lanes.state.values[op.result] = lanes.insert(ptx.PackOp(elements)).result


def broadcast(lanes: Lanes, op: vector.BroadcastOp) -> None:
    if is_vector(op.source.type):
        raise FragirError("a lane has vectors of one dimension; a number is repeated")
    scalar, count = lanes.scalar(op.source), ptx.length(op.vector.type)
    lanes.state.values[op.vector] = lanes.state.ar.splat(scalar, count)


def shuffle(lanes: Lanes, op: vector.ShuffleOp) -> None:
    elements = [*_require_elements(lanes, op.v1), *_require_elements(lanes, op.v2)]
    picked = [elements[number] for number in op.mask.get_values()]
    lanes.state.values[op.result] = lanes.insert(ptx.PackOp(picked)).result
