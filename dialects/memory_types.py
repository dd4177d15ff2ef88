"""Types of views and parts: memory in another shape, parts by offsets, sizes and strides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import TypeVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, SSAValue

from fragir.dialects.shorthands import integers
from fragir.errors import FragirError

RESHAPES = (memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp)
"""Operations that give another shape of the same memory, their first operand: all its elements, in
the same order."""
VIEWS = (*RESHAPES, memref.ReinterpretCastOp, memref.SubviewOp)
"""Those whose result is memory of their first operand."""


def root_of(value: SSAValue) -> SSAValue:
    """The argument or allocation that memory is a view of."""
    while isinstance(value.owner, VIEWS):
        value = value.owner.operands[0]
    return value


# -- slices ----------------------------------------------------------------------------------------
# Parts of memory and tensors, as operations with lists of offsets, sizes and strides say them.

NumberT = TypeVar("NumberT")


def mixed_numbers(static: DenseArrayBase, dynamic: Sequence[NumberT]) -> list[int | NumberT]:
    """A list of which some numbers stand in the text and others are values."""
    given: Iterator[NumberT] = iter(dynamic)
    return [next(given) if n == DYNAMIC_INDEX else n for n in integers(static)]


def kept_dims(sizes: Sequence[int | SSAValue], shape: Sequence[int], what: str) -> list[int]:
    """The dimensions of a part that its type keeps: it may leave out some of size 1.

    FragirError where the type is of another shape.
    """
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        wanted = shape[len(kept)] if len(kept) < len(shape) else None
        if wanted is not None and (size == wanted or (wanted < 0 and not isinstance(size, int))):
            kept.append(dim)
        elif size != 1:
            break
    else:
        if len(kept) == len(shape):
            return kept
    given = "x".join(str(size) if isinstance(size, int) else "?" for size in sizes)
    words = "x".join("?" if size < 0 else str(size) for size in shape)
    raise FragirError(
        f"{what} takes a part of {given}, which is not of the shape {words}",
        hint="a type may leave out only dimensions of size 1",
    )


Memory = MemRefType[Attribute]
Strides = list[int | None]


def known_strides(type_: Memory) -> Strides:
    """Strides in elements, None for those that the type does not say.

    Of layouts other than `strided<...>` none is known.
    """
    shape, layout = type_.get_shape(), type_.layout
    if isinstance(layout, StridedLayoutAttr):
        return [entry.data if isinstance(entry, IntAttr) else None for entry in layout.strides]
    if not isinstance(layout, NoneAttr):
        return [None] * len(shape)
    return [
        None if DYNAMIC_INDEX in shape[dim + 1 :] else prod(shape[dim + 1 :])
        for dim in range(len(shape))
    ]


def collapsed_type(type_: Memory, groups: Sequence[Sequence[int]]) -> Memory | None:
    """Memory with some dimensions as one; None where its type does not say that they lie behind
    each other.
    """
    shape = type_.get_shape()
    new = [_product([shape[dim] for dim in group]) for group in groups]
    if isinstance(type_.layout, NoneAttr):
        return MemRefType(type_.element_type, new, type_.layout, type_.memory_space)
    if not isinstance(type_.layout, StridedLayoutAttr):
        return None
    strides, kept = known_strides(type_), Strides()
    for group in groups:
        long = [dim for dim in group if shape[dim] != 1]
        for first, second in pairwise(long):
            step = strides[second]
            if step is None or shape[second] < 0 or strides[first] != step * shape[second]:
                return None
        kept.append(strides[long[-1] if long else group[-1]])
    return _strided_type(type_, new, kept)


def expanded_type(type_: Memory, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Memory:
    """Memory with several dimensions for one."""
    if not isinstance(type_.layout, StridedLayoutAttr):
        return MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
    strides: Strides = [1] * len(shape)
    for group, step in zip(groups, known_strides(type_), strict=True):
        for dim in reversed(group):
            strides[dim] = step
            step = None if step is None or shape[dim] < 0 else step * shape[dim]
    return _strided_type(type_, shape, strides)


def part_type(
    type_: Memory,
    offsets: Sequence[SSAValue | int],
    sizes: Sequence[SSAValue | int],
    strides: Sequence[SSAValue | int],
    shape: Sequence[int],
) -> Memory:
    """A part of memory, of a shape that may leave out dimensions of size 1."""
    whole = memref.SubviewOp.infer_result_type(type_, offsets, sizes, strides)
    kept = kept_dims(sizes, shape, memref.SubviewOp.name)
    found = known_strides(whole)
    return _strided_type(whole, shape, [found[dim] for dim in kept])


def _strided_type(like: Memory, shape: Sequence[int], strides: Sequence[int | None]) -> Memory:
    layout = like.layout
    assert isinstance(layout, StridedLayoutAttr)
    new = StridedLayoutAttr(list(strides), layout.offset)
    return MemRefType(like.element_type, shape, new, like.memory_space)


def _product(sizes: Sequence[int]) -> int:
    if 0 in sizes:
        return 0 if DYNAMIC_INDEX not in sizes else DYNAMIC_INDEX
    return DYNAMIC_INDEX if DYNAMIC_INDEX in sizes else prod(sizes)
