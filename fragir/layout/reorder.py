"""Counting a dimension in another order, and the orders that make a conversion free.

The sum over K of a product does not depend on the order of K: A's columns and B's rows may be
permuted alike. So the accumulator of one product can be the A operand of the next without moving
anything between lanes, where A may take its K in the order in which the accumulator has its
columns. Two accumulators of `mma.m16n8k32` and the A operand of e4m3, whose lanes hold other
columns:

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]")
>>> a = Layout.parse("lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16)]")
>>> order = free_order(a, c, 1)
>>> print(order)
index [2:1 2:8 4:2]
>>> print(in_order(a, 1, order))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(0,8) 2:(8,0) 2:(0,16)]

Every lane now holds the same elements as in `c`, in other registers.
"""

from __future__ import annotations

from functools import lru_cache

from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import (
    DEFAULT_DIMS,
    Axis,
    LayoutError,
    Mode,
    Point,
    binary_digits,
    coalesce_modes,
)


def in_order(layout: Layout, dim: int, order: Layout) -> Layout:
    """The layout with the coordinate x of a dimension replaced by order(x).

    `order` is a bijection of one axis and one dimension; beyond its extent it repeats, which must
    divide the layout's. Raises LayoutError where it does not, or where no layout says the result.
    """
    extent = layout.shape[dim]
    period = order.axes[0].size
    if extent % period:
        raise LayoutError(
            f"{layout.dims[dim]} has the extent {extent}, which its order {order.axes[0]} of "
            f"{period} does not divide."
        )
    axes: list[Axis] = []
    for other, (name, size) in enumerate(zip(layout.dims, layout.shape, strict=True)):
        modes = (Mode(size, (1,)),)
        if other == dim:
            modes = (*order.axes[0].modes, Mode(size // period, (period,)))
        axes.append(Axis(name, tuple(_moved_mode(m, other, layout.rank) for m in modes)))
    return compose(Layout(tuple(axes), layout.dims), layout)


@lru_cache(maxsize=1024)
def free_order(operand: Layout, source: Layout, dim: int) -> Layout | None:
    """The order of a dimension in which `operand` is `source` with its registers renamed.

    Lanes and warps say where their bits of the coordinate go; the registers' bits go in order.
    None where lanes or warps differ otherwise, or where the dimension's digits are no bits.
    The inverse of the order is what the source's dimension may be permuted by instead.
    """
    if operand.dims != source.dims or operand.offset or source.offset:
        return None
    images: dict[int, int] = {}
    for name in ("lane", "warp"):
        pairs = zip(_bits(operand, name), _bits(source, name), strict=False)
        if len(_bits(operand, name)) != len(_bits(source, name)):
            return None
        for mine, other in pairs:
            if mine[:dim] + mine[dim + 1 :] != other[:dim] + other[dim + 1 :]:
                return None
            if bool(mine[dim]) != bool(other[dim]):
                return None
            if mine[dim] and images.setdefault(mine[dim], other[dim]) != other[dim]:
                return None
    mine, others = (_along(side, dim) for side in (operand, source))
    if len(mine[0]) != len(others[0]) or mine[1] != others[1]:
        return None
    images.update(zip(mine[0], others[0], strict=True))
    extent = 1
    modes: list[Mode] = []
    while extent in images:
        modes.append(Mode(2, (images[extent],)))
        extent *= 2
    while modes and modes[-1].stride == (1 << (len(modes) - 1),):
        modes.pop()  # the order repeats
    order = Layout((Axis("index", coalesce_modes(modes)),), DEFAULT_DIMS[1])
    return order if order.is_bijection() else None


def _moved_mode(mode: Mode, dim: int, rank: int) -> Mode:
    return Mode(mode.size, tuple(mode.stride[0] * (d == dim) for d in range(rank)))


def _bits(layout: Layout, axis: str) -> list[Point]:
    """The strides of an axis's digits of size two; those of odd size by their own."""
    modes = layout.axis(axis).modes if axis in layout.names else ()
    digits = (digit for mode in modes for digit in binary_digits(mode))
    # an odd digit with its size is equal to another one only
    return [d.stride if d.size == 2 else (*d.stride, d.size) for d in digits]


def _along(layout: Layout, dim: int) -> tuple[list[int], list[Point]]:
    """The registers' strides of size two along a dimension, ascending, and the odd digits' own.

    Digits that go on where another ends count as one, so that three of 64 columns after 64 are
    the same as 64 after three.
    """
    modes = layout.axis("element").modes if "element" in layout.names else ()
    along = sorted((m for m in modes if m.stride[dim]), key=lambda mode: mode.stride)
    merged = Layout((Axis("element", coalesce_modes(along)),), layout.dims)
    moved = _bits(merged, "element")
    bits = sorted(stride[dim] for stride in moved if len(stride) == layout.rank)
    return bits, sorted(stride for stride in moved if len(stride) > layout.rank)
