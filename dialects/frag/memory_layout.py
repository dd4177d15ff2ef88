"""Where the elements of a memref lie: its layout as a value, and what a layout attribute must say.

A memref's own layout maps one coordinate a dimension to a number of elements:

    memref<64x64xf16, #frag.layout<"row [8:^72 8:512] col [64:1]">, #frag.shared>

`#frag.shared<swizzle = 128>` is short for the layout of a swizzled matrix, here the same; without
a layout and a swizzle elements lie row after row, with `strided<...>` by its strides. All four are
one value, `memory_layout`, with an axis for every dimension in order; an axis may be longer than
the dimension, where a swizzle or a pitch leaves places without an element.

Whether an access without `masked` stays in its memory, as far as types and constants tell, is here
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TypeVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_bits
from fragir.dialects.frag.attributes import ExplicitLayoutAttr, SharedAttr, strides_of_layout
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.layout.composition import compose, identity
from fragir.layout.inversion import inverse
from fragir.layout.regrouping import in_order
from fragir.layout.shared import swizzled_elements

ELEMENTS = ("index",)
"""The dimension of a memref's layout: elements from the first one on."""

Strides = tuple[int, ...]


def shared_swizzle(type_: MemRefType[Attribute]) -> int:
    """The bytes of the swizzle that a memref's memory space names; 0 for none."""
    space = type_.memory_space
    return space.swizzle.data if isinstance(space, SharedAttr) else 0


def memory_layout(type_: MemRefType[Attribute]) -> Layout:
    """Where the elements of a memref with static sizes lie, in elements from its pointer on.

    An axis for every dimension, in order. FragirError, with a way out, for a layout that does not
    give every element its own place.
    """
    layout, swizzle = type_.layout, shared_swizzle(type_)
    if isinstance(layout, NoneAttr):
        bits = element_bits(type_.element_type)
        if type_.get_shape()[-1] * bits % 8:
            raise FragirError(f"a row of {type_} does not end at a whole byte")
        return swizzled_elements(type_.get_shape(), bits, swizzle)
    if swizzle:
        raise FragirError(
            f"{type_} has a layout and a swizzle",
            hint="the layout says all: write #frag.shared without a swizzle",
        )
    if isinstance(layout, ExplicitLayoutAttr):
        return _require_memory_layout(layout.data, type_.get_shape())
    strides = strides_of(type_)
    assert strides is not None
    if DYNAMIC_INDEX in strides:
        raise FragirError(f"{type_} has strides that are not known")
    return _require_memory_layout(_strided_layout(type_.get_shape(), strides), type_.get_shape())


def check_memory(operation: str, type_: MemRefType[Attribute]) -> None:
    """VerifyException unless a memref's layout, where it is one of ours, is sound."""
    if not isinstance(type_.layout, ExplicitLayoutAttr):
        return
    try:
        if DYNAMIC_INDEX in type_.get_shape():
            raise FragirError(f"{type_} has a layout and dynamic sizes; a layout's are static")
        if isinstance(type_.memory_space, SharedAttr):
            memory_layout(type_)
        else:
            strides_of(type_)
    except FragirError as error:
        raise VerifyException(f"{operation}: {error}") from error


def one_matrix(type_: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The type of one matrix of a stack in shared memory, the last two dimensions.

    FragirError where the matrices of the stack are not laid out alike.
    """
    layout = type_.layout
    if not isinstance(layout, NoneAttr):
        layout = ExplicitLayoutAttr(matrix_layout(memory_layout(type_)))
    return MemRefType(type_.element_type, type_.get_shape()[-2:], layout, type_.memory_space)


def strides_of(type_: MemRefType[Attribute]) -> Strides | None:
    """Static strides in elements with DYNAMIC_INDEX for unknown ones; None for row-major order.

    FragirError for a layout that has none.
    """
    layout = type_.layout
    if isinstance(layout, NoneAttr):
        return None
    if isinstance(layout, ExplicitLayoutAttr):
        strides = strides_of_layout(memory_layout(type_))
        if strides is None:
            raise FragirError(
                f"{type_} has a layout without strides",
                hint="only shared memory (#frag.shared) can be laid out by any layout",
            )
        return strides
    if not isinstance(layout, StridedLayoutAttr):
        raise FragirError(
            f"{type_} has a layout that is neither strided<...> nor #frag.layout<...>",
            hint="write strided<[...]>",
        )
    return tuple(
        stride.data if isinstance(stride, IntAttr) else DYNAMIC_INDEX
        for stride in layout.strides.data
    )


def matrix_layout(layout: Layout) -> Layout:
    """The layout of one matrix of a stack: the last two axes.

    FragirError where the matrices of the stack are not one layout at different places.
    """
    *leading, row, col = layout.axes
    matrix = Layout((row, col), layout.dims, layout.offset)
    if leading:
        simple = layout.simplified()
        steps = [mode for axis in simple.axes[:-2] for mode in axis.modes]
        flips = 0
        for axis in simple.axes[-2:]:
            for mode in axis.modes:
                if mode.xor:
                    flips |= mode.step[0] * mode.size // 2
        alike = 1 << flips.bit_length()
        if simple.offset or any(mode.xor or mode.step[0] % alike for mode in steps):
            raise FragirError(
                f"the matrices of a stack laid out by {layout} are not alike",
                hint=f"step from one to the next by multiples of {alike} elements",
            )
    return matrix


@lru_cache(maxsize=1024)
def _strided_layout(shape: tuple[int, ...], strides: Strides) -> Layout:
    axes = [
        Axis(f"d{number}", (Mode(size, (stride,)),))
        for number, (size, stride) in enumerate(zip(shape, strides, strict=True))
    ]
    return Layout(tuple(axes), ELEMENTS)


@lru_cache(maxsize=1024)
def _require_memory_layout(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout, if it gives every element of the shape its own place; else FragirError."""
    sizes = layout.sizes
    if layout.dims != ELEMENTS:
        raise FragirError(
            f"a memref's layout has one dimension, index, not {', '.join(layout.dims)}",
            hint="it counts elements: write one number a mode and no dims",
        )
    if layout.where:
        raise FragirError(f"a memref's layout has no predicate: {layout}")
    if len(sizes) != len(shape):
        raise FragirError(
            f"{layout} has {len(sizes)} axes, the memref {len(shape)} dimensions",
            hint="write an axis for every dimension, in order",
        )
    names = layout.names
    if {"row", "col"} <= set(names) and names[-2:] != ("row", "col"):
        raise FragirError(
            f"{layout} names its axes {', '.join(names)}",
            hint="axes stand in the order of the memref's dimensions, so row and col come last",
        )
    for (name, size), extent in zip(sizes.items(), shape, strict=True):
        if size < extent:
            raise FragirError(
                f"axis {name} of {layout} has {size} coordinates, the memref's dimension {extent}"
            )
    if not _are_apart(layout) and not layout.kernel.is_injective:
        raise FragirError(f"{layout} puts several elements at one place")
    return layout


def _are_apart(layout: Layout) -> bool:
    """Whether every digit steps beyond all smaller ones: a simple reason to be injective."""
    if layout.exclusive:
        return False
    reached = 0
    digits = [(mode.stride[0], mode.size) for a in layout.axes for mode in a.modes if mode.size > 1]
    for stride, size in sorted(digits):
        if stride <= reached:
            return False
        reached += (size - 1) * stride
    return True


# --- accesses within ------------------------------------------------------------------------------


def number(index: int | SSAValue) -> int | None:
    """A constant index; None for one that is known at run time only."""
    if isinstance(index, int):
        return index
    owner = index.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        value: Attribute | None = owner.properties.get("value")
        if isinstance(value, IntegerAttr):
            return value.value.data
    return None


AnyT = TypeVar("AnyT")


def last_two_turned(sizes: tuple[AnyT, ...]) -> tuple[AnyT, ...]:
    """What memory has of a tile that it holds transposed: the last two dimensions change places."""
    return (*sizes[:-2], *sizes[:-3:-1])


def check_inside(
    name: str,
    sizes: Sequence[int],
    indices: Sequence[int | SSAValue],
    extents: Sequence[int],
    maskable: bool = True,
) -> None:
    """VerifyException where `extents` elements a dimension from the indices on leave the memory."""
    for dim, (size, index, extent) in enumerate(zip(sizes, indices, extents, strict=True)):
        first = number(index)
        low = 0 if first is None else first
        if low >= 0 and (size == DYNAMIC_INDEX or low + extent <= size):
            continue
        at = f" from {low} on" if first is not None else ""
        what = f"{extent} elements{at}" if extent > 1 else f"index {low}"
        raise VerifyException(
            f"{name}: {what} in dimension {dim} "
            + ("lie" if extent > 1 else "lies")
            + (" outside of the memory" if low < 0 else f" outside of its {size}")
            + ("; write `masked`, then what lies outside is 0 or dropped" if maskable else "")
        )


# -- row orders ------------------------------------------------------------------------------------
# Matrices in shared memory whose rows lie in another order than their numbers.
#
# An order of rows says which row lies where the matrix would have its rows 0, 1, 2, ...; it is an
# `ExplicitLayoutAttr` of one axis and one dimension, `row [2:1 4:4 2:2 4:16] dims (row)`, a
# bijection
# of all rows. Whole rows are moved, so whoever copies rows does so at no cost, and a matrix keeps
# every property that hangs on its columns: 16 bytes side by side, the swizzle, K-major
# descriptors.

ROW = "row"


@lru_cache(maxsize=256)
def row_order(order: Layout, rows: int) -> ExplicitLayoutAttr:
    """The order of so many rows that begins with `order` and goes on like it.

    FragirError where the order's extent does not divide them.
    """
    whole = in_order(identity({ROW: rows}), 0, order)
    return ExplicitLayoutAttr(Layout((Axis(ROW, whole.axes[0].modes),), (ROW,)).simplified())


@lru_cache(maxsize=256)
def rows_as_they_are(rows: int) -> ExplicitLayoutAttr:
    """The order in which every row lies at its number's place."""
    return ExplicitLayoutAttr(Layout((Axis(ROW, (Mode(rows, (1,)),)),), (ROW,)))


def type_in_row_order(
    type_: MemRefType[Attribute], order: ExplicitLayoutAttr
) -> MemRefType[Attribute]:
    """The type of a shared matrix, or of a stack of them, with its rows in an order."""
    layout = memory_layout(type_)
    axes = dict(zip(layout.names, type_.get_shape(), strict=True))
    whole = {name: max(size, layout.size(name)) for name, size in axes.items()}
    places = in_order(identity(whole), len(axes) - 2, order.data)
    lies = compose(layout, inverse(places)).simplified()
    return MemRefType(type_.element_type, type_.get_shape(), ExplicitLayoutAttr(lies), SharedAttr())


@lru_cache(maxsize=1024)
def tile_in_rows_order(layout: Layout, dim: int, first: int, order: Layout) -> Layout | None:
    """A tile's layout as if its memory had its rows, which run along `dim`, as they are.

    `first` is the tile's first row in memory. None where the tile does not have whole repetitions
    of the order.
    """
    order = repeated_part(inverse(order).simplified())
    if first % order.axes[0].size or layout.shape[dim] % order.axes[0].size:
        return None
    return in_order(layout, dim, order)


def repeated_part(order: Layout) -> Layout:
    """The part of an order that it repeats."""
    modes = list(order.axes[0].modes)
    while modes and modes[-1].stride[0] == prod(mode.size for mode in modes[:-1]):
        modes.pop()
    return Layout((Axis(ROW, tuple(modes)),), (ROW,))
