"""Views of memory: what they are views of, and how large they are."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from fragir.dialects.constants import constant_of
from fragir.dialects.narrow import memref_type
from fragir.dialects.slices import kept_dims, mixed

VIEWS = (
    memref.CastOp,
    memref.CollapseShapeOp,
    memref.ExpandShapeOp,
    memref.ReinterpretCastOp,
    memref.SubviewOp,
)
"""Operations whose result is memory of their first operand."""
RESHAPES = (memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp)
"""Those whose result has all elements of the operand, in the same order."""
Insert = Callable[[Operation], SSAValue]
"""Puts an operation into the program; its result."""


def root_of(value: SSAValue) -> SSAValue:
    """The argument or allocation that memory is a view of."""
    while isinstance(value.owner, VIEWS):
        value = value.owner.operands[0]
    return value


def size_of(memory: SSAValue, dim: int, insert: Insert) -> SSAValue | int:
    """A size of memory, as far as possible a number or that of an argument's dimension."""
    size = memref_type(memory.type).get_shape()[dim]
    if size >= 0:
        return size
    op = memory.owner
    if isinstance(op, memref.CastOp):
        return size_of(op.source, dim, insert)
    if isinstance(op, memref.AllocOp):
        shape = memref_type(memory.type).get_shape()
        return _known(op.dynamic_sizes[sum(n < 0 for n in shape[:dim])])
    if isinstance(op, memref.SubviewOp):
        sizes = mixed(op.static_sizes, op.sizes)
        kept = kept_dims(sizes, memref_type(memory.type).get_shape(), op.name)
        return _known(sizes[kept[dim]])
    if isinstance(op, memref.ReinterpretCastOp):
        return _known(mixed(op.static_sizes, op.sizes)[dim])
    if isinstance(op, memref.ExpandShapeOp):
        return _known(mixed(op.static_output_shape, op.output_shape)[dim])
    if isinstance(op, memref.CollapseShapeOp):
        group = [entry.value.data for entry in op.reassociation.data[dim]]
        known = [size_of(op.src, at, insert) for at in group]
        return product_of(known, insert)
    return insert(memref.DimOp(memory, insert(_number(dim))))


def product_of(sizes: list[SSAValue | int], insert: Insert) -> SSAValue | int:
    """The product of sizes."""
    number, total = 1, None
    for size in sizes:
        if isinstance(size, int):
            number *= size
        else:
            total = size if total is None else insert(arith.MuliOp(total, size))
    if total is None or number == 0:
        return number
    return total if number == 1 else insert(arith.MuliOp(total, insert(_number(number))))


def is_named(size: SSAValue | int) -> bool:
    """Whether a launch knows a size: a number, or a dimension of an argument."""
    if isinstance(size, int) or constant_of(size) is not None:
        return True
    op = size.owner
    return (
        isinstance(op, memref.DimOp)
        and isinstance(op.source, BlockArgument)
        and constant_of(op.index) is not None
    )


def _known(size: SSAValue | int) -> SSAValue | int:
    if isinstance(size, int):
        return size
    number = constant_of(size)
    return size if number is None else number


def _number(number: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(number, IndexType()))
