"""Tiles whose layouts are the same function, written in two ways, where xDSL compares texts.

A `frag.convert` in between, which moves nothing, makes one type of them.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.frag.pointwise import ConvertOp
from fragir.dialects.frag.types import TileType


def respell(module: ModuleOp) -> bool:
    """Joins what loops yield, functions return, and calls hand over and get; whether anything."""
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, func.FuncOp)}
    changed = False
    for op in list(module.walk()):
        if isinstance(op, func.CallOp):
            called = functions.get(op.callee.string_value())
            if called is not None:
                changed |= _join(op, list(called.function_type.inputs))
                changed |= _join_results(op, list(called.function_type.outputs))
        elif isinstance(op, func.ReturnOp):
            owner = op.parent_op()
            if isinstance(owner, func.FuncOp):
                changed |= _join(op, list(owner.function_type.outputs))
        elif isinstance(op, scf.YieldOp):
            loop = op.parent_op()
            if isinstance(loop, scf.ForOp):
                changed |= _join(op, [value.type for value in loop.iter_args])
    return changed


def _join(op: Operation, wanted: list[Attribute]) -> bool:
    """Operands get the types that are wanted."""
    changed = False
    for number, (value, type_) in enumerate(zip(op.operands, wanted, strict=False)):
        if value.type != type_ and _alike(value.type, type_):
            op.operands[number] = _converted(op, value, type_, InsertPoint.before(op))
            changed = True
    return changed


def _join_results(call: func.CallOp, given: list[Attribute]) -> bool:
    """Results get the types that the function gives, and are converted into those written."""
    changed = False
    for result, type_ in zip(call.results, given, strict=False):
        written = result.type
        if written != type_ and _alike(written, type_):
            uses = list(result.uses)
            result = Rewriter.replace_value_with_new_type(result, type_)
            converted = _converted(call, result, written, InsertPoint.after(call))
            for use in uses:
                use.operation.operands[use.index] = converted
            changed = True
    return changed


def _alike(one: Attribute, other: Attribute) -> bool:
    if not isinstance(one, TileType) or not isinstance(other, TileType):
        return False
    placed = one.placement is not None and other.placement is not None
    return placed and one.element_type == other.element_type and one.goes_with(other)


def _converted(op: Operation, value: SSAValue, type_: Attribute, at: InsertPoint) -> SSAValue:
    assert isinstance(type_, TileType)
    made = ConvertOp(value, type_)
    made.location = op.location
    Rewriter.insert_op(made, at)
    return made.result
