"""Memory operands as `frag.matmul` takes them: signs of bytes, row vectors, sizes of buffers."""

from __future__ import annotations

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    i64,
)
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.dialects.constants import constant_of
from fragir.dialects.narrow import memref_type
from fragir.passes.contraction.product import Factor, Product


def name_of(value: SSAValue) -> str:
    """A value as messages call it."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"argument {value.index}" if isinstance(value, BlockArgument) else "a memref"


def is_local(value: SSAValue) -> bool:
    """Whether a buffer is the function's own."""
    return isinstance(value.owner, memref.AllocOp)


def retype(function: func.FuncOp, product: Product, factor: Factor) -> SSAValue:
    """A or B with the sign of its bytes in its type: `i8` that the body extends by extui is ui8.

    The array that is passed stays the same, so the function's argument gets the new type.
    """
    memory = factor.memory
    type_ = memref_type(memory.type)
    if type_.element_type == factor.element:
        return memory
    others = [u.operation for u in memory.uses if not isinstance(u.operation, memref.DimOp)]
    if not isinstance(memory, BlockArgument) or others != [product.op]:
        fail(
            product.op,
            f"the product reads {name_of(memory)} as unsigned, but others use it too; declare it "
            f"as a memref of {factor.element}",
        )
    new = MemRefType(factor.element, type_.shape, type_.layout, type_.memory_space)
    index = memory.index
    function.replace_argument_type(memory, new, Rewriter())
    return function.body.block.args[index]


def column_of(
    function: func.FuncOp, product: Product, vector: SSAValue, anchor: Operation
) -> SSAValue:
    """A vector of one value a row as a matrix of one column, which broadcasts along the rows."""
    type_ = memref_type(vector.type)
    if not isinstance(type_.layout, NoneAttr):
        fail(
            product.op,
            f"{name_of(vector)} holds one value a row and has strides; declare it as a matrix of "
            "one column, memref<?x1x...>, and index it by (row, 0)",
        )
    (size,) = type_.get_shape()
    shape: list[SSAValue] = []
    if size == DYNAMIC_INDEX:
        _name_size(function, product, vector)
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        length = memref.DimOp(vector, zero)
        for op in (zero, length):
            op.location = product.op.location
            Rewriter.insert_op(op, InsertPoint.before(anchor))
        shape.append(length.result)
    column = memref.ExpandShapeOp.build(
        operands=[vector, shape],
        properties={
            "reassociation": ArrayAttr([ArrayAttr([IntegerAttr(0, i64), IntegerAttr(1, i64)])]),
            "static_output_shape": DenseArrayBase.from_list(i64, [size, 1]),
        },
        result_types=[MemRefType(type_.element_type, [size, 1])],
    )
    column.location = product.op.location
    column.result.name_hint = vector.name_hint
    Rewriter.insert_op(column, InsertPoint.before(anchor))
    return column.result


def _name_size(function: func.FuncOp, product: Product, vector: SSAValue) -> None:
    """Notes that the vector is as long as C has rows, so that a launch checks it."""
    if not isinstance(vector, BlockArgument):
        return
    entries = _attributes(function)
    rows = "m"
    for value, dim in (
        (product.a.memory, 1 if product.a.transposed else 0),
        (product.c, 0),
    ):
        if not isinstance(value, BlockArgument):
            continue
        given = frag.sizes_of(entries[value.index].data.get("frag.sizes"))
        if given:
            rows = given[dim]
            break
    entry = entries[vector.index]
    if "frag.sizes" in entry.data:
        return
    sizes = ArrayAttr([StringAttr(rows)])
    entries[vector.index] = DictionaryAttr({**entry.data, "frag.sizes": sizes})
    function.arg_attrs = ArrayAttr(entries)


def _attributes(function: func.FuncOp) -> list[DictionaryAttr]:
    count = len(function.body.block.args)
    given = function.arg_attrs
    return list(given.data) if given is not None else [DictionaryAttr({})] * count


def replace_sizes(allocation: memref.AllocOp) -> None:
    """Puts the sizes that a buffer was allocated with in the place of every memref.dim of it."""
    type_ = memref_type(allocation.memref.type)
    dynamic = iter(allocation.dynamic_sizes)
    sizes = [next(dynamic) if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
    for use in list(allocation.memref.uses):
        op = use.operation
        if not isinstance(op, memref.DimOp):
            continue
        position = constant_of(op.index)
        if position is None:
            fail(op, "memref.dim takes a constant number of a dimension")
        if not 0 <= position < len(sizes):
            fail(op, f"{type_} has no dimension {position}")
        size = sizes[position]
        if isinstance(size, int):
            constant = arith.ConstantOp(IntegerAttr(size, IndexType()))
            constant.location = op.location
            Rewriter.insert_op(constant, InsertPoint.before(op))
            size = constant.result
        op.result.replace_all_uses_with(size)
        Rewriter.erase_op(op)
