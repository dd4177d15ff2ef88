"""Memory of i1 as memory of i8 that holds 0 or 1: a lane cannot write less than a byte. Memory of
index as memory of i32, as index has 32 bits on the device.

Bodies compute with i1 and index as before: what they read is compared with 0 or cast, what they
write is extended. Logic between elements that are read and written is done on bytes, so that a
reduction stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    UnitAttr,
    i1,
    i8,
    i32,
)
from xdsl.dialects.linalg import ops
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.frag.kernels import CONDITIONS
from fragir.dialects.shorthands import constant_of, is_stored_wider

LOGIC = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)


STORED: dict[Attribute, IntegerType] = {i1: i8, IndexType(): i32}
"""What elements are stored as, by the type that bodies compute with."""


def widen_elements(function: func.FuncOp) -> None:
    """Replaces memory and tensors of i1 by such of i8, of index by such of i32.

    Structured operations are generics by now.
    """
    wide: dict[SSAValue, Attribute] = {}  # with the type that bodies compute with
    for value in list(_values(function)):
        if is_stored_wider(value.type):
            element = cast("Any", value.type).element_type
            made = Rewriter.replace_value_with_new_type(value, _stored_type(value.type))
            wide[made] = element
    if not wide:
        return
    _note_conditions(function, wide)
    for op in list(function.walk()):
        if not any(value in wide for value in (*op.operands, *op.results)):
            continue
        if isinstance(op, ops.GenericOp):
            _body(op, [wide.get(value) for value in op.operands])
        elif isinstance(op, ops.FillOp):
            (value,) = op.inputs
            made = ops.FillOp([_extend(value, op)], op.outputs, [x.type for x in op.res])
            made.location = op.location
            results = list(op.res)
            Rewriter.replace_op(op, made)
            for old, new in zip(results, made.res, strict=True):
                wide[new] = wide[old]
        elif isinstance(op, arith.ConstantOp):
            op.properties["value"] = _widened_constant(op.value)
        else:
            _elements(op)
    function.update_function_type()


def _note_conditions(function: func.FuncOp, wide: Mapping[SSAValue, Attribute]) -> None:
    """Arguments and results that were of i1 say so: callers may give them as bool."""
    types: list[Any] = list(function.function_type.outputs.data)
    results = [_has_elements(type_) and type_.element_type == i1 for type_ in types]
    arguments = [wide.get(argument) == i1 for argument in function.body.block.args]
    if any(arguments):
        function.arg_attrs = _with_conditions(function.arg_attrs, arguments)
    if any(results):
        function.res_attrs = _with_conditions(function.res_attrs, results)


def _has_elements(type_: Attribute) -> bool:
    return isinstance(type_, MemRefType | TensorType)


def _with_conditions(
    given: ArrayAttr[DictionaryAttr] | None, conditions: Sequence[bool]
) -> ArrayAttr[DictionaryAttr]:
    known = given.data if given is not None else [DictionaryAttr({}) for _ in conditions]
    return ArrayAttr(
        DictionaryAttr({**one.data, CONDITIONS: UnitAttr()}) if condition else one
        for one, condition in zip(known, conditions, strict=True)
    )


def _values(function: func.FuncOp) -> Iterator[SSAValue]:
    for op in function.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _stored_type(type_: Attribute) -> Attribute:
    known: Any = type_
    stored = STORED[known.element_type]
    if isinstance(type_, MemRefType):
        return MemRefType(stored, known.shape, known.layout, known.memory_space)
    return TensorType(stored, known.shape, known.encoding)


def _widened_constant(value: Attribute) -> Attribute:
    assert isinstance(value, DenseIntOrFPElementsAttr)
    stored = STORED[value.get_element_type()]
    numbers = [abs(int(x)) if stored == i8 else int(x) for x in value.get_values()]
    return DenseIntOrFPElementsAttr.from_list(TensorType(stored, value.get_shape()), numbers)


# --- bodies ---------------------------------------------------------------------------------------


def _body(op: ops.GenericOp, wide: Sequence[Attribute | None]) -> None:
    """What is read becomes i1 or index, what is written i8 or i32."""
    block, first = op.body.block, op.body.block.first_op
    end = block.last_op
    assert first is not None
    assert end is not None
    read: dict[SSAValue, SSAValue] = {}  # what i1 and index were read from
    for argument, element in zip(block.args, wide, strict=True):
        if element is not None:
            stored = Rewriter.replace_value_with_new_type(argument, STORED[element])
            if stored.uses:
                read[_use_narrow(stored, element, InsertPoint.before(first), op)] = stored
    inputs = len(op.inputs)
    for number, value in enumerate(list(end.operands)):
        if wide[inputs + number] is not None:
            end.operands[number] = _as_stored(value, read, end)
            if isinstance(value.owner, (*LOGIC, arith.CmpiOp)):
                _erase_unused(value.owner)


def _as_stored(value: SSAValue, read: Mapping[SSAValue, SSAValue], before: Operation) -> SSAValue:
    """A byte of an i1, an i32 of an index: logic between bytes that were read is done on them."""
    if value in read:
        return read[value]
    op = value.owner
    again = isinstance(op, LOGIC) and value.type == i1 and all(x in read for x in op.operands)
    if not isinstance(op, Operation) or not again:
        return _extend(value, before)
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
    """An operation on memory or tensors: what it reads and writes of their elements."""
    element = op.results[0].type if op.name in _READING else None
    if element is not None:
        stored = Rewriter.replace_value_with_new_type(op.results[0], STORED[element])
        if stored.uses:
            _use_narrow(stored, element, InsertPoint.after(op), op)
    elif op.name in _WRITING:
        op.operands[0] = _extend(op.operands[0], op)
    elif op.name == "tensor.from_elements":
        for number, value in enumerate(list(op.operands)):
            op.operands[number] = _extend(value, op)
    for region in op.regions:
        end = region.block.last_op
        for number, value in enumerate(list(end.operands) if end is not None else []):
            if end is not None and value.type in STORED:
                end.operands[number] = _extend(value, end)


_READING = ("tensor.extract", "memref.load")
_WRITING = ("tensor.insert", "memref.store", "tensor.splat")


def _use_narrow(stored: SSAValue, element: Attribute, at: InsertPoint, like: Operation) -> SSAValue:
    """Lets all that use a byte use whether it is not 0, and all that use an i32 use an index."""
    made: list[Operation]
    if element == i1:
        zero = arith.ConstantOp(IntegerAttr(0, i8))
        made = [zero, arith.CmpiOp(stored, zero.result, "ne")]
    else:
        made = [arith.IndexCastOp(stored, element)]
    narrow = made[-1]
    for op in made:
        op.location = like.location
    stored.replace_uses_with_if(narrow.results[0], lambda use: use.operation is not narrow)
    Rewriter.insert_op(made, at)
    return narrow.results[0]


def _extend(value: SSAValue, before: Operation) -> SSAValue:
    known, stored = constant_of(value), STORED[value.type]
    if known is not None:
        made: Operation = arith.ConstantOp(
            IntegerAttr(known & 1 if stored == i8 else known, stored)
        )
    elif stored == i8:
        made = arith.ExtUIOp(value, i8)
    else:
        made = arith.IndexCastOp(value, stored)
    made.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return made.results[0]
