"""Memory at lane level: a memref's pointer, shape and strides, and the address of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from xdsl.ir import Attribute, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.layout import Layout, LayoutError
from fragir.layout.shared import ATOM
from fragir.passes.lowering.arithmetic import (
    Arithmetic,
    Distance,
    Predicate,
    Stride,
    Value,
    factors_of,
    times,
)
from fragir.passes.lowering.layout_arithmetic import KnownMoves, LaneOffset, position, position_rule

# -- strides ---------------------------------------------------------------------------------------
# What is known and computed of strides, also of those that are products of sizes.


def low(ar: Arithmetic, stride: Stride) -> Value:
    """The lowest 32 bits of a stride: what tells its rest by a power of two."""
    factors, scale = factors_of(stride)
    result: Value = 1
    for factor in factors:
        result = ar.mul(result, factor)
    return ar.mul(result, (scale + (1 << 31)) % (1 << 32) - (1 << 31))


def divisor(ar: Arithmetic, stride: Stride) -> int:
    """A number that divides a stride, as of a value."""
    if not isinstance(stride, Distance):
        return ar.divisor(stride)
    result = abs(stride.scale)
    for factor in stride.factors:
        result *= ar.divisor(factor)
    return result


def quotient(ar: Arithmetic, stride: Stride, by: int) -> Stride:
    """A stride divided by a power of two that divides it, see `divisor`."""
    factors, scale = factors_of(stride)
    shared = _common(scale, by)
    result: Stride = scale // shared
    by //= shared
    for factor in factors:
        shared = _common(ar.divisor(factor), by)
        result = times(result, ar.quotient(factor, shared))
        by //= shared
    assert by == 1
    return result


def _common(x: int, y: int) -> int:
    """The largest power of two that divides both."""
    return (x | y) & -(x | y)


ACCESS_BITS = 128  # the widest load or store
BASE_ALIGNMENT = 16  # bytes; what a launch guarantees of every pointer


class LaneMemory(NamedTuple):
    """A buffer. In global memory strides count elements; in shared memory there are none, and
    `layout` says at which element from the pointer on each one lies. In a ring that is slot 0; the
    memory is that of `slot`, a number and the bytes from one slot to the next.
    """

    pointer: SSAValue
    shape: tuple[Value, ...]
    strides: tuple[Stride, ...]
    element: Attribute
    layout: Layout | None = None
    slot: tuple[Value, int] = (0, 0)
    aligned: int = BASE_ALIGNMENT
    """Bytes of which the pointer is known to be a multiple."""

    @property
    def bits(self) -> int:
        return ptx.bits(self.element)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    def contiguous(self) -> int | None:
        """The dimension in which neighbours lie side by side; None where none is known to."""
        if self.layout is not None:
            return side_by_side(self.layout)[0]
        for dim in range(len(self.shape) - 1, -1, -1):
            if self.strides[dim] == 1:
                return dim
        return None

    @property
    def run(self) -> int:
        """Of shared memory: elements that lie side by side, in groups aligned to their number."""
        assert self.layout is not None
        return side_by_side(self.layout)[1]


@lru_cache(maxsize=1024)
def side_by_side(layout: Layout) -> tuple[int | None, int]:
    """The axis along which elements lie side by side, and how many: an aligned group of so many
    begins at a multiple of that number.

    >>> side_by_side(Layout.parse("row [8:^72 8:512] col [64:1]"))
    (1, 8)
    """
    layout = layout.simplified()
    best: tuple[int | None, int] = None, 1
    for number, axis in enumerate(layout.axes):
        if not axis.modes or axis.modes[0].xor or axis.modes[0].stride[0] != 1:
            continue
        run = 0 if len(axis.modes) == 1 else axis.modes[0].size
        others = [mode for a in layout.axes for mode in a.modes if mode is not axis.modes[0]]
        run = gcd(run, layout.origin[0], *(mode.step[0] for mode in others))
        if run == 0:
            run = axis.size
        if run >= best[1]:
            best = number, run
    return best


def row_major(shape: Sequence[Value]) -> tuple[Stride, ...]:
    """Strides of the usual order, last dimension fastest."""
    strides: list[Stride] = [1]
    for size in reversed(shape[1:]):
        strides.append(times(size, strides[-1]))
    return tuple(reversed(strides[: len(shape)]))


def shared_memory(
    pointer: SSAValue, layout: Layout, shape: Sequence[Value], element: Attribute
) -> LaneMemory:
    """Shared memory at a pointer, in which a layout says where the elements of a shape lie."""
    return LaneMemory(pointer, tuple(shape), (), element, layout)


def shared_bytes(layout: Layout, bits: int) -> int:
    """Bytes of shared memory that a layout of elements needs, in whole accesses or swizzles."""
    size = -(-layout.shape[0] * bits // 8)
    whole = ATOM if layout.exclusive else ACCESS_BITS // 8
    return -(-size // whole) * whole


@lru_cache(maxsize=1024)
def in_bytes(layout: Layout, bits: int) -> Layout:
    """A layout of elements of so many bits, a power of two, as one of bytes.

    FragirError where an element does not begin at a byte.
    """
    offset, rest = divmod(layout.origin[0] * bits, 8)
    if rest:
        raise _small()
    try:
        axes = tuple([axis.scaled(bits, 8) for axis in layout.axes])
    except LayoutError as error:
        raise _small() from error
    return Layout(axes, ("byte",), (offset,))


def _small() -> FragirError:
    return FragirError("elements of less than a byte are not placed in shared memory")


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
        self.moves: KnownMoves = {}

    def coordinate(self, ar: Arithmetic, dim: int, constant: int) -> Value:
        """The whole coordinate. The constant comes last: where a loop gives tiles, sums of lanes
        and constants would be kept in registers around it."""
        return ar.add(ar.total([self.lanes[dim].value, self.at[dim]]), constant)


def address(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, constant: Sequence[int]
) -> tuple[SSAValue, int]:
    """The address of an element, as a pointer and a number of bytes to add."""
    if memory.layout is not None:
        return shared_address(ar, memory, memory.layout, place, constant)
    steps = zip(constant, memory.strides, strict=True)
    known = sum(c * stride for c, stride in steps if isinstance(stride, int)) * memory.size
    moving = zip(constant, memory.strides, strict=True)
    unknown = tuple(0 if isinstance(stride, int) else c for c, stride in moving)
    base = place.bases.get((memory.pointer, unknown))
    if base is None:
        base = place.bases[memory.pointer, unknown] = _base(ar, memory, place, unknown)
    return ar.reachable(base[0], base[1] + known)


def _base(
    ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, constant: Sequence[int]
) -> tuple[SSAValue, int]:
    """The address where the constant steps only in dimensions whose stride is not known."""
    terms = [
        (part, stride)
        for dim, stride in enumerate(memory.strides)
        for part in (*_along(ar, memory, place, dim), constant[dim])
        if part != 0
    ]
    pointer, immediate = memory.pointer, 0
    # what differs from element to element last, so that they share the rest
    for part, stride in sorted(terms, key=lambda t: (_depth(ar, t), isinstance(t[0], int))):
        pointer, more = ar.offset(pointer, part, memory.size, stride)
        immediate += more
    return pointer, immediate


def _along(ar: Arithmetic, memory: LaneMemory, place: MemoryPlace, dim: int) -> tuple[Value, ...]:
    """The coordinate in one dimension, in parts: one where each would take a product of its own
    that no loop shares, and several instructions."""
    lane, at, stride = place.lanes[dim].value, place.at[dim], memory.strides[dim]
    dear = isinstance(stride, Distance) or (memory.size > 1 and not isinstance(stride, int))
    if dear and not isinstance(lane, int) and not isinstance(at, int):
        if ar.depth(lane) == ar.depth(at):
            return (ar.total([lane, at]),)
    return lane, at


def _depth(ar: Arithmetic, term: tuple[Value, Stride]) -> int:
    """How many loops deep a term is known."""
    return max(ar.depth(part) for part in (term[0], *factors_of(term[1]).factors))


def shared_address(
    ar: Arithmetic,
    memory: LaneMemory,
    layout: Layout,
    place: MemoryPlace,
    constant: Sequence[int],
) -> tuple[SSAValue, int]:
    """`address` in shared memory where a layout, whose axes the coordinates are, lays it out."""
    rule = position_rule(in_bytes(layout, memory.bits))
    terms, immediate, _ = position(ar, rule, place.lanes, place.at, constant, known=place.moves)
    pointer = memory.pointer
    number, step = memory.slot
    for term in terms if number == 0 else sorted((*terms, ar.mul(number, step)), key=ar.depth):
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
    return _is_always_inside(place, dim, constant, extent) or ar.below(coordinate, extent)


def _is_always_inside(place: MemoryPlace, dim: int, constant: int, extent: Value) -> bool:
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
    known = gcd(memory.aligned * 8 // memory.bits, _divisor(ar, place, contiguous))
    if memory.layout is not None:
        known = gcd(known, memory.run)
    for dim, stride in enumerate(memory.strides):
        if dim != contiguous and memory.shape[dim] != 1:
            known = gcd(known, divisor(ar, stride))
    if masked:
        known = gcd(known, ar.divisor(memory.shape[contiguous]))
    return known


def _divisor(ar: Arithmetic, place: MemoryPlace, dim: int) -> int:
    return gcd(ar.divisor(place.lanes[dim].value), ar.divisor(place.at[dim]))
