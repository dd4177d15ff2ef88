"""Matrices in shared memory whose rows lie in another order than their numbers.

An order of rows says which row lies where the matrix would have its rows 0, 1, 2, ...; it is an
`ExplicitLayoutAttr` of one axis and one dimension, `row [2:1 4:4 2:2 4:16] dims (row)`, a bijection
of all rows. Whole rows are moved, so whoever copies rows does so at no cost, and a matrix keeps
every property that hangs on its columns: 16 bytes side by side, the swizzle, K-major descriptors.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from fragir.dialects.frag.attributes import ExplicitLayoutAttr, SharedAttr
from fragir.dialects.frag.memory_layout import memory_layout
from fragir.layout import Axis, Layout, Mode
from fragir.layout.composition import compose, identity
from fragir.layout.inversion import inverse
from fragir.layout.reorder import in_order

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
