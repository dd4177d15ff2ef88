"""What xDSL says at length.

Isinstance with type parameters, numbers of constants, walks in order.
"""

from __future__ import annotations

from typing import Any, TypeGuard, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue

# -- narrow ----------------------------------------------------------------------------------------
# Types of xDSL with their type parameter, which isinstance alone leaves open.
#
# These compare classes exactly: attributes of xDSL are final, and isinstance on their abstract base
# classes costs a call in Python, which counts where every operation is asked.


def memref_type(type_: Attribute) -> MemRefType[Attribute]:
    """A type that the caller knows to be a memref."""
    assert isinstance(type_, MemRefType)
    return cast("MemRefType[Attribute]", type_)


def is_memref(type_: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """Whether a type is a memref."""
    return type(type_) is MemRefType


def is_stored_wider(type_: Attribute) -> bool:
    """Whether a type is memory or a tensor of i1 or index, which arrays hold as i8 and i32."""
    kind = type(type_)
    if kind is not MemRefType and kind is not TensorType:
        return False
    element = cast("Any", type_).element_type
    return element == i1 or type(element) is IndexType


def is_vector(type_: Attribute) -> TypeGuard[VectorType[Attribute]]:
    """Whether a type is a vector."""
    return type(type_) is VectorType


def is_array(attribute: Attribute) -> TypeGuard[DenseArrayBase[Any]]:
    """Whether an attribute is an `array<...>`."""
    return isinstance(attribute, DenseArrayBase)


def integers(array: DenseArrayBase[Any]) -> list[int]:
    """The numbers of an `array<i64: ...>`."""
    return [int(value) for value in array.get_values()]


# -- walking ---------------------------------------------------------------------------------------
# The operations of a program in order, in less time than `Operation.walk` takes.


def operations_in(op: Operation) -> list[Operation]:
    """An operation and all inside of it, in order: what `op.walk()` has, as a list."""
    found: list[Operation] = []
    _collect(op, found)
    return found


def _collect(op: Operation, found: list[Operation]) -> None:
    found.append(op)
    for region in op.regions:
        for block in region.blocks:
            inner = block.first_op
            while inner is not None:
                if inner.regions:
                    _collect(inner, found)
                else:
                    found.append(inner)
                inner = inner.next_op


# -- constants -------------------------------------------------------------------------------------
# Numbers that stand in a program as `arith.constant`.

_INDEX = IndexType()


def constant_of(value: SSAValue) -> int | None:
    """The whole number that a value is; None where it is no constant."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def index_constant(number: int) -> arith.ConstantOp:
    """A number as an index."""
    return arith.ConstantOp(IntegerAttr(number, _INDEX))
