"""Memory at lane level: a memref's pointer, shape and strides, and the address of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.shared import LaneOffset, SharedMatrix, shared_offset

ACCESS_BITS = 128  # the widest load or store
BASE_ALIGNMENT = 16  # bytes; what a launch guarantees of every pointer


class LaneMemory(NamedTuple):
    """A buffer. Strides count elements in global memory; in shared memory, where `matrix` says how
    the last two dimensions lie, the leading ones count bytes.
    """

    pointer: SSAValue
    shape: tuple[Value, ...]
    strides: tuple[Value, ...]
    element: Attribute
    matrix: SharedMatrix | None = None

    @property
    def bits(self) -> int:
        return ptx.bits(self.element)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    def contiguous(self) -> int | None:
        """The dimension in which neighbours lie side by side; None where none is known to."""
        for dim in range(len(self.shape) - 1, -1, -1):
            if self.strides[dim] == 1:
                return dim
        return None


def strides_of(type_: MemRefType[Attribute]) -> tuple[int, ...] | None:
    """Static strides in elements with DYNAMIC_INDEX for unknown ones; None for row-major order."""
    if isinstance(type_.layout, NoneAttr):
        return None
    if not isinstance(type_.layout, StridedLayoutAttr):
        raise FragirError(
            f"{type_} has a layout that is no strided<...>", hint="write strided<[...]>"
        )
    offset = type_.layout.offset
    if (isinstance(offset, IntAttr) and offset.data != 0) or isinstance(offset, NoneAttr):
        raise FragirError(f"{type_} has an offset", hint="pass a pointer to its first element")
    return tuple(
        stride.data if isinstance(stride, IntAttr) else DYNAMIC_INDEX
        for stride in type_.layout.strides.data
    )


def row_major(ar: Arithmetic, shape: Sequence[Value]) -> tuple[Value, ...]:
    """Strides of the usual order, last dimension fastest."""
    strides: list[Value] = [1]
    for size in reversed(shape[1:]):
        strides.append(ar.mul(strides[-1], size))
    return tuple(reversed(strides))


def shared_memory(ar: Arithmetic, pointer: SSAValue, type_: MemRefType[Attribute]) -> LaneMemory:
    """A memref in #frag.shared at a pointer."""
    leading = type_.get_shape()[:-2]
    return stacked(ar, pointer, leading, SharedMatrix.of(type_), type_.element_type)


def stacked(
    ar: Arithmetic,
    pointer: SSAValue,
    leading: Sequence[int],
    matrix: SharedMatrix,
    element: Attribute,
) -> LaneMemory:
    """Matrices in shared memory, one behind the other."""
    stack = row_major(ar, (*leading, 1))[:-1]
    strides = (*(ar.mul(stride, matrix.bytes) for stride in stack), matrix.panel_cols, 1)
    return LaneMemory(pointer, (*leading, matrix.rows, matrix.cols), strides, element, matrix)


class MemoryPlace:
    """Elements of one access: coordinates are lanes + `at` in every dimension of the memory.

    `lanes` comes from lane, warp and thread, `at` from the operation's indices (a value or a
    number) and `constant` from the position in the fragment.
    """

    def __init__(self, lanes: tuple[LaneOffset, ...], at: tuple[Value, ...]):
        self.lanes, self.at = lanes, at
        # what is known already: addresses by pointer and step along dimensions of unknown stride,
        # and whether an element lies inside by dimension and step
        self.bases: dict[tuple[SSAValue, tuple[int, ...]], tuple[SSAValue, int]] = {}
        self.tests: dict[tuple[SSAValue, int, int], Predicate] = {}

    def coordinate(self, ar: Arithmetic, dim: int, constant: int) -> Value:
        """The whole coordinate."""
        return ar.total([self.lanes[dim].value, self.at[dim], constant])


def address(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, constant: Sequence[int]
) -> tuple[SSAValue, int]:
    """The address of an element, as a pointer and a number of bytes to add."""
    if memory.matrix is not None:
        return _shared_address(ar, memory, memory.matrix, place, constant)
    steps = zip(constant, memory.strides, strict=True)
    known = sum(c * stride for c, stride in steps if isinstance(stride, int)) * memory.size
    moving = zip(constant, memory.strides, strict=True)
    unknown = tuple(0 if isinstance(stride, int) else c for c, stride in moving)
    base = place.bases.get((memory.pointer, unknown))
    if base is None:
        base = place.bases[memory.pointer, unknown] = _base(ar, memory, place, unknown)
    return base[0], base[1] + known


def _base(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, constant: Sequence[int]
) -> tuple[SSAValue, int]:
    """The address where the constant steps only in dimensions whose stride is not known."""
    terms = [
        (part, stride)
        for dim, stride in enumerate(memory.strides)
        for part in (place.lanes[dim].value, place.at[dim], constant[dim])
        if part != 0
    ]
    pointer, immediate = memory.pointer, 0
    for part, stride in sorted(terms, key=lambda t: max(ar.depth(t[0]), ar.depth(t[1]))):
        pointer, more = ar.offset(pointer, part, memory.size, stride)
        immediate += more
    return pointer, immediate


def _shared_address(
    ar: Arithmetic,
    memory: LaneMemory,
    matrix: SharedMatrix,
    place: MemoryPlace,
    constant: Sequence[int],
) -> tuple[SSAValue, int]:
    *leading, row, col = range(len(memory.shape))
    at_row, at_col = ar.add(place.at[row], constant[row]), ar.add(place.at[col], constant[col])
    value, immediate = shared_offset(
        ar, matrix, place.lanes[row], place.lanes[col], (at_row, at_col)
    )
    terms: list[Value] = [value]
    for dim in leading:
        whole = place.coordinate(ar, dim, constant[dim])
        terms.append(ar.mul(whole, memory.strides[dim]))
    pointer = memory.pointer
    for term in sorted(terms, key=ar.depth):
        pointer, more = ar.offset(pointer, term)
        immediate += more
    return pointer, immediate


def inside(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, constant: Sequence[int]
) -> Predicate:
    """Whether the element lies inside the memory's shape."""
    result: Predicate = True
    for dim in range(len(memory.shape)):
        key = memory.pointer, dim, constant[dim]
        test = place.tests.get(key)
        if test is None:
            test = place.tests[key] = _inside(ar, memory, place, dim, constant[dim])
        result = ar.both(result, test)
    return result


def _inside(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, dim: int, constant: int
) -> Predicate:
    """Whether one coordinate lies inside.

    Where the extent and the place's beginning are multiples of some number, a group of so many
    elements lies inside or outside whole, and one test serves all of it.
    """
    extent, at, mask = memory.shape[dim], place.at[dim], place.lanes[dim].mask
    unit = gcd(ar.divisor(extent), ar.divisor(at))
    unit &= -unit  # a power of two: what lanes add to a group is then told by their low bits
    if mask is not None:
        if mask + constant < unit:
            return ar.below(at, extent)
        if (mask & (unit - 1)) + constant % unit < unit:
            constant -= constant % unit
    coordinate = place.coordinate(ar, dim, constant)
    return _always_inside(place, dim, constant, extent) or ar.below(coordinate, extent)


def _always_inside(place: MemoryPlace, dim: int, constant: int, extent: Value) -> bool:
    at, mask = place.at[dim], place.lanes[dim].mask
    return (
        isinstance(extent, int)
        and isinstance(at, int)
        and mask is not None
        and at >= 0
        and at + mask + constant < extent
    )


def alignment(ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, masked: bool) -> int:
    """Elements by which every access at lanes + at is known to be aligned (without constants).

    With a mask it also divides the extent, so that an aligned group lies inside or outside whole.
    """
    contiguous = memory.contiguous()
    if contiguous is None:
        return 1
    known = BASE_ALIGNMENT * 8 // memory.bits
    for dim, stride in enumerate(memory.strides):
        if dim == contiguous:
            known = gcd(known, _divisor(ar, place, dim))
        elif memory.matrix is None and memory.shape[dim] != 1:
            known = gcd(known, ar.divisor(stride))
    if masked:
        known = gcd(known, ar.divisor(memory.shape[contiguous]))
    return known


def _divisor(ar: Arithmetic, place: MemoryPlace, dim: int) -> int:
    return gcd(ar.divisor(place.lanes[dim].value), ar.divisor(place.at[dim]))
