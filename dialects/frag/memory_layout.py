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
from fragir.dialects.frag.attributes import (
    HALVED,
    ExplicitLayoutAttr,
    SharedAttr,
    TensorMemoryAttr,
    strides_of_layout,
)
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.layout.shared import swizzled_elements

ELEMENTS = ("index",)
"""The dimension of a memref's layout: elements from the first one on."""

Strides = tuple[int, ...]


def shared_swizzle(type_: MemRefType[Attribute]) -> int:
    """The bytes of the swizzle that a memref's memory space names; 0 for none."""
    space = type_.memory_space
    return space.swizzle.data if isinstance(space, SharedAttr) else 0


def halved_dimension(type_: MemRefType[Attribute]) -> int | None:
    """The dimension of a matrix of which each block of a pair has half, 0 or 1; None: of none."""
    space = type_.memory_space
    if not isinstance(space, SharedAttr) or not space.pair.data:
        return None
    return HALVED.index(space.pair.data)


def own_part(type_: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """What a block has of memory: of a pair's its half, else all of it."""
    dimension = halved_dimension(type_)
    if dimension is None:
        return type_
    shape = [size // (1 + (at == dimension)) for at, size in enumerate(type_.get_shape())]
    return MemRefType(type_.element_type, shape, memory_space=SharedAttr(shared_swizzle(type_)))


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


def check_memory(operation: str, type_: MemRefType[Attribute], *, pair: bool = False) -> None:
    """VerifyException unless a memref's layout, where it is one of ours, is sound, or where it lies
    in tensor memory, which operations of its own read and write; or, without `pair`, where a pair
    of blocks shares it."""
    if isinstance(type_.memory_space, TensorMemoryAttr):
        raise VerifyException(
            f"{operation}: {type_} lies in tensor memory, which frag.tcgen05_mma and "
            "frag.tcgen05_store write and frag.tcgen05_load reads"
        )
    halved = halved_dimension(type_)
    if halved is not None:
        if not pair:
            raise VerifyException(
                f"{operation}: {type_} is a pair's, half of it in each block; frag.copy tma fills "
                "it and frag.tcgen05_mma pair reads it"
            )
        shape = type_.get_shape()
        if len(shape) != 2 or shape[halved] % 2 or not isinstance(type_.layout, NoneAttr):
            raise VerifyException(
                f"{operation}: {type_} has no halves; a pair shares a matrix of two dimensions, "
                "the divided one even, with a swizzle and no layout of its own"
            )
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
