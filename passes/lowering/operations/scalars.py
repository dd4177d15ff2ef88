"""Numbers and indices: constants and index arithmetic are folded, others taken over."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IntegerAttr

from fragir.dialects import frag
from fragir.dialects.limits import check_index
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.lane_builder import Lanes

Build = Callable[[Arithmetic, Value, Value, str | None], Value]


def constant(lanes: Lanes, op: arith.ConstantOp) -> None:
    state = lanes.state
    if isinstance(op.value, IntegerAttr) and op.result.type == INDEX:
        state.values[op.result] = check_index(op.value.value.data, "an index")
        return
    value = op.value
    state.values[op.result] = state.ar.pure(
        ("constant", value), (), lambda: arith.ConstantOp(value)
    )


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
