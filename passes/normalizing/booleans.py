"""Memory of i1 as memory of i8 that holds 0 or 1: a lane cannot write less than a byte.

Bodies compute with i1 as before: what they read is compared with 0, what they write is extended.
Logic between elements that are read and written is done on bytes, so that a reduction stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    TensorType,
    i1,
    i8,
)
from xdsl.dialects.linalg import ops
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.constants import constant_of
from fragir.dialects.narrow import holds_i1

LOGIC = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)


def widen_booleans(function: func.FuncOp) -> None:
    """Replaces memory and tensors of i1 by such of i8; structured operations are generics."""
    wide: set[SSAValue] = set()
    for value in list(_values(function)):
        if holds_i1(value.type):
            wide.add(Rewriter.replace_value_with_new_type(value, _widened(value.type)))
    if not wide:
        return
    for op in list(function.walk()):
        if not any(value in wide for value in (*op.operands, *op.results)):
            continue
        if isinstance(op, ops.GenericOp):
            _body(op, [value in wide for value in op.operands])
        elif isinstance(op, ops.FillOp):
            (value,) = op.inputs
            made = ops.FillOp([_extended(value, op)], op.outputs, [x.type for x in op.res])
            made.location = op.location
            Rewriter.replace_op(op, made)
            wide.update(made.res)
        elif isinstance(op, arith.ConstantOp):
            op.properties["value"] = _bytes(op.value)
        else:
            _elements(op)
    function.update_function_type()


def _values(function: func.FuncOp) -> Iterator[SSAValue]:
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _widened(type_: Attribute) -> Attribute:
    if isinstance(type_, MemRefType):
        return MemRefType(i8, type_.shape, type_.layout, type_.memory_space)
    assert isinstance(type_, TensorType)
    return TensorType(i8, type_.shape, type_.encoding)


def _bytes(value: Attribute) -> Attribute:
    assert isinstance(value, DenseIntOrFPElementsAttr)
    numbers = [int(bool(number)) for number in value.get_values()]
    return DenseIntOrFPElementsAttr.from_list(TensorType(i8, value.get_shape()), numbers)


# --- bodies ---------------------------------------------------------------------------------------


def _body(op: ops.GenericOp, wide: Sequence[bool]) -> None:
    """What is read becomes i1, what is written i8."""
    block, first = op.body.block, op.body.block.first_op
    end = block.last_op
    assert first is not None
    assert end is not None
    read: dict[SSAValue, SSAValue] = {}  # the bytes that i1 were read from
    for argument, is_wide in zip(block.args, wide, strict=True):
        if is_wide:
            byte = Rewriter.replace_value_with_new_type(argument, i8)
            if byte.uses:
                read[_narrow(byte, InsertPoint.before(first), op)] = byte
    inputs = len(op.inputs)
    for number, value in enumerate(list(end.operands)):
        if wide[inputs + number]:
            end.operands[number] = _byte_of(value, read, end)
            if isinstance(value.owner, (*LOGIC, arith.CmpiOp)):
                _erase_unused(value.owner)


def _byte_of(value: SSAValue, read: Mapping[SSAValue, SSAValue], before: Operation) -> SSAValue:
    """An i1 as a byte: logic between bytes that were read is done again on them."""
    if value in read:
        return read[value]
    op = value.owner
    if not isinstance(op, LOGIC) or any(operand not in read for operand in op.operands):
        return _extended(value, before)
    made = type(op).create(operands=[read[x] for x in op.operands], result_types=[i8])
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return made.results[0]


def _erase_unused(op: Operation) -> None:
    operands = list(op.operands)
    if not any(result.uses for result in op.results):
        Rewriter.erase_op(op)
        for value in operands:
            if isinstance(value.owner, arith.CmpiOp | arith.ConstantOp):
                _erase_unused(value.owner)


# --- elements -------------------------------------------------------------------------------------


def _elements(op: Operation) -> None:
    """An operation on memory or tensors: those i1 that it reads and writes are elements."""
    for number, value in enumerate(list(op.operands)):
        if value.type == i1:
            op.operands[number] = _extended(value, op)
    for region in op.regions:
        end = region.block.last_op
        for number, value in enumerate(list(end.operands) if end is not None else []):
            if end is not None and value.type == i1:
                end.operands[number] = _extended(value, end)
    for result in list(op.results):
        if result.type == i1:
            byte = Rewriter.replace_value_with_new_type(result, i8)
            if byte.uses:
                _narrow(byte, InsertPoint.after(op), op)


def _narrow(byte: SSAValue, at: InsertPoint, like: Operation) -> SSAValue:
    """Lets all that use a byte use whether it is not 0."""
    zero = arith.ConstantOp(IntegerAttr(0, i8))
    narrow = arith.CmpiOp(byte, zero.result, "ne")
    for made in (zero, narrow):
        made.location = like.location
    byte.replace_uses_with_if(narrow.result, lambda use: use.operation is not narrow)
    Rewriter.insert_op([zero, narrow], at)
    return narrow.result


def _extended(value: SSAValue, before: Operation) -> SSAValue:
    known = constant_of(value)
    made: Operation = arith.ExtUIOp(value, i8)
    if known is not None:
        made = arith.ConstantOp(IntegerAttr(known & 1, i8))
    made.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return made.results[0]
