"""Types of xDSL with their type parameter, which isinstance alone leaves open.

These compare classes exactly: attributes of xDSL are final, and isinstance on their abstract base
classes costs a call in Python, which counts where every operation is asked.
"""

from __future__ import annotations

from typing import Any, TypeGuard, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    MemRefType,
    TensorType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute


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
