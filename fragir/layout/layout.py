"""What a layout is: which lane holds which element of a matrix, in which of its registers.

A tensor-core instruction spreads a matrix over the 32 lanes of a warp, and every lane keeps its
share, its *fragment*, in registers. A layout is the map from *hardware coordinates* (`lane`,
`element` = position in the lane's fragment, low to high as in the PTX ISA, `warp`, ...) to
*matrix coordinates* (`row`, `col`). It is written as a list of *modes* for each hardware axis.

Modes
-----
A mode `size:(row stride, col stride)` is a digit. The coordinate of an axis is cut into digits,
fastest first: with the modes `4:(0,2) 8:(1,0)` lane 13 has the digits 13 % 4 = 1 and 13 // 4 = 3.
Every digit moves the point by its stride, so lane 13 starts at 1*(0,2) + 3*(1,0) = (3, 2). This is
the accumulator of every `mma` with 16 rows and 8 columns (PTX ISA 9.2, section 9.7.14.5):

>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> c(lane=13, element=0)
(3, 2)
>>> c(lane=13, element=3)             # element 3 has the digits 1, 1: one right, eight down
(11, 3)
>>> c.shape, c.size("lane"), c.size("element")
((16, 8), 32, 4)

The other way round, all hardware coordinates that hold a given point:

>>> c.inverse(11, 3)
[{'lane': 13, 'element': 3}]
>>> c.is_bijection()
True

Python builds the same value from its parts, and equal values print, compare and hash alike:

>>> from fragir.layout.modes import axis
>>> c == layout(axis("lane", (4, (0, 2)), (8, (1, 0))), axis("element", (2, (0, 1)), (2, (8, 0))))
True

Sizes are any positive numbers, not only powers of two. A `wgmma` accumulator of 24 columns is
spread over 128 threads (four warps below each other) and has a mode of size three:

>>> d = Layout.parse("warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]")
>>> d.shape, d(warp=3, lane=31, element=11)
((64, 24), (63, 23))

Replication
-----------
A mode with stride zero moves nothing: all its digits hold the same element. Two warps that both
hold the accumulator, each a copy:

>>> two = Layout.parse("warp [2:(0,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> two.replication(), two.is_bijection(), len(two.inverse(11, 3))
(2, False, 2)

Offset and predicate
--------------------
`offset (r,c)` is added to every point. `where` limits who holds anything: `lane/2%4==1` reads
(lane // 2) % 4 == 1, several conditions are joined by `and`. Sparse metadata, say, comes from every
fourth lane only. A slot that holds nothing gives None:

>>> some = Layout.parse("lane [4:(0,0) 8:(1,0)] element [4:(0,1)] offset (16,0) where lane%4==1")
>>> some(lane=5, element=2), some(lane=6, element=2)
((17, 2), None)
>>> print(some)
lane [4:(0,0) 8:(1,0)] element [4:(0,1)] offset (16,0) where lane/1%4==1

More or fewer dimensions
------------------------
A stride has as many components as the layout has dimensions. Without `dims` one dimension is named
`index`, two are `row, col`, three are `row, col, product` (an `mma.m8n8k4` is four independent
products). Named otherwise, they are part of the text. A layout need not start at hardware: a
shared-memory layout has the *axes* row and col and the *dimension* byte, so that composing it with
a fragment says which byte each lane reads (see `fragir.layout.compose`).

>>> m8n8k4 = Layout.parse("lane [2:(1,0,0) 2:(0,2,0) 4:(0,0,1) 2:(4,0,0)] "
...                       "element [2:(0,1,0) 2:(2,0,0) 2:(0,4,0)]")
>>> m8n8k4.dims, m8n8k4.shape
(('row', 'col', 'product'), (8, 8, 4))
>>> tile = Layout.parse("row [8:32] col [16:2] dims (byte)")
>>> tile(row=3, col=5)
(106,)

The value and the function
--------------------------
`==` compares what is written, `equivalent` compares the functions. `simplified` is the shortest
way to write a function, and it is unique: it drops modes of size one and merges neighbours where
the slower one's stride is the faster one's stride times its size.

>>> long = Layout.parse("lane [2:(0,1) 2:(0,2) 1:(5,5) 8:(1,0)]")
>>> print(long.simplified())
lane [4:(0,1) 8:(1,0)]
>>> long == long.simplified(), long.equivalent(long.simplified())
(False, True)

Exclusive or
------------
A mode `size:^column` of 2^k values flips bits: bit i of its digit those of column << i. The point
is (offset + sum of the added digits) ^ (columns of the others). So every map that is linear over
bits is a layout, and swizzled shared memory too, here with 128 bytes:

>>> swizzled = Layout.parse("row [8:^144] col [64:2] dims (byte)")
>>> swizzled(row=3, col=8) == (3 * 128 + (16 ^ 3 * 16),)
True

A function has many such texts, but one simplified form, with as much added as can be:

>>> other = Layout.parse("row [2:144 4:^288] col [8:2 8:^16] dims (byte)")
>>> print(other.simplified())
row [8:^144] col [64:2] dims (byte)

Such an `XorMode` has no `stride`: what only knows sums refuses it by name. What all else computes
with is the layout's `kernel` (`fragir.layout.exclusive`).

Limits: strides are not negative, and xored digits are bits, so their sizes are powers of two. What
cannot be said as a layout is an error that names the mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, ClassVar

from fragir.errors import require_whole_number
from fragir.layout.display import Drawn
from fragir.layout.modes import (
    DEFAULT_DIMS,
    Axis,
    Condition,
    LayoutError,
    Point,
    check_parts,
    coalesce_modes,
    default_dims,
    needed_conditions,
)
from fragir.layout.slots import (
    Nested,
    copies,
    covers_box,
    do_all_hold,
    each_slot,
    flipped_point,
    nested_points,
    slot_array,
    tabulated,
    without_flips,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fragir.layout.exclusive import LayoutKernel


@dataclass(frozen=True)
class Layout(Drawn):
    """A map from hardware coordinates to matrix coordinates, as explained above.

    `axes` keep the order they are given in. An empty `offset` means zeros. `where` limits which
    slots hold anything; all its conditions must hold. Raises LayoutError for a malformed layout.
    """

    axes: tuple[Axis, ...]
    dims: tuple[str, ...] = DEFAULT_DIMS[2]
    offset: Point = ()
    where: tuple[Condition, ...] = ()
    exclusive: ClassVar[bool] = False
    """Whether a mode is combined by exclusive or."""

    def __post_init__(self) -> None:
        if check_parts(self.axes, self.dims, self.offset, self.where):
            object.__setattr__(self, "exclusive", True)
        if self.offset and not any(self.offset):
            object.__setattr__(self, "offset", ())

    # What it is made of

    @property
    def rank(self) -> int:
        """The number of matrix dimensions."""
        return len(self.dims)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, in order."""
        return tuple(axis.name for axis in self.axes)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every axis by name, in order."""
        return {axis.name: axis.size for axis in self.axes}

    @property
    def origin(self) -> Point:
        """The offset written out: where the point starts before any digit moves it."""
        return self.offset or (0,) * self.rank

    def axis(self, name: str) -> Axis:
        """The axis of that name. Raises LayoutError if there is none."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise LayoutError(f"The layout has no axis {name}; it has {', '.join(self.names)}.")

    def size(self, axis: str) -> int:
        """How many values the coordinate of an axis has. Raises LayoutError if there is none."""
        return self.axis(axis).size

    @cached_property
    def kernel(self) -> LayoutKernel:
        """Its bits that are linear, with their columns, and the digits that must be added."""
        from fragir.layout.exclusive import kernel_of

        return kernel_of(self.axes, self.origin)

    @cached_property
    def shape(self) -> Point:
        """Per dimension one more than the largest coordinate, offset included, predicate not."""
        if self.exclusive:
            return tuple([most + 1 for most in self.kernel.bounds[1]])
        shape = [start + 1 for start in self.origin]
        for axis in self.axes:
            for mode in axis.modes:
                for dim, stride in enumerate(mode.stride):
                    shape[dim] += (mode.size - 1) * stride
        return tuple(shape)

    # The function

    def __call__(self, **coordinates: int) -> Point | None:
        """The matrix coordinates of the element in this slot; None if the slot holds nothing.

        Raises LayoutError for an unknown axis and a coordinate out of range or missing (axes of
        size one may be), FragirError for one that is no whole number."""
        for name, value in coordinates.items():
            self.axis(name)
            if type(value) is not int:  # numpy's, which have no bits
                coordinates[name] = require_whole_number(value, name)
        if self.exclusive:
            return flipped_point(self._sums(**coordinates), self.axes, coordinates)
        point = list(self.origin)
        for axis in self.axes:
            rest = coordinate = coordinates.get(axis.name, -1)
            if axis.name not in coordinates:
                if axis.size > 1:
                    raise LayoutError(f"The coordinate of axis {axis.name} is missing.")
                continue
            for mode in axis.modes:
                rest, digit = divmod(rest, mode.size)
                if digit:
                    for dim, stride in enumerate(mode.stride):
                        point[dim] += digit * stride
            if rest:
                raise LayoutError(
                    f"{axis.name}={coordinate} is outside of its axis, 0 to {axis.size - 1}."
                )
        for condition in self.where:
            if not condition(coordinates.get(condition.axis, 0)):
                return None
        return tuple(point)

    @cached_property
    def _sums(self) -> Layout:
        """The layout without its exclusive-ored modes' columns."""
        return Layout(without_flips(self.axes, self.rank), self.dims, self.offset, self.where)

    def slots(self) -> Iterator[tuple[Point, Point | None]]:
        """Every slot as (its coordinates in the order of the axes, what it holds).

        The last axis changes fastest, as in `table`. LayoutError beyond `LARGEST_TABLE`.
        """
        return each_slot(self.axes, self.origin, self.where)

    def table(self) -> Nested:
        """Nested lists in the order of the axes; innermost the point, or None.

        >>> Layout.parse("lane [2:(1,0)] element [2:(0,1)]").table()
        [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]
        """
        return nested_points((point for _, point in self.slots()), tuple(self.sizes.values()))

    def array(self) -> NDArray[np.int64]:
        """The table as an array of shape (sizes of the axes..., rank); -1 where nothing is held."""
        if max(self.shape, default=0) > 1 << 63:
            raise LayoutError("The coordinates of the layout do not fit 64 bits.")
        return slot_array(self.axes, self.origin, self.where)

    @cached_property
    def holders(self) -> dict[Point, list[Point]]:
        """For every point that is held its slots (coordinates in the order of the axes)."""
        holders: dict[Point, list[Point]] = {}
        for slot, point in self.slots():
            if point is not None:
                holders.setdefault(point, []).append(slot)
        return holders

    def inverse(self, *point: int) -> list[dict[str, int]]:
        """Every hardware coordinate that holds this point, in order; empty if none does."""
        return [dict(zip(self.names, slot, strict=True)) for slot in self.holders.get(point, ())]

    def is_bijection(self, shape: Point | None = None) -> bool:
        """Whether every slot holds something and every point of the tile is held exactly once.

        The tile is `shape` from the coordinate zero, or without, what lies between the layout's
        offset (its least coordinates, under exclusive or) and its `shape`.
        """
        if self.exclusive:
            return do_all_hold(self.axes, self.where) and self.kernel.covers(shape)
        start = self.origin if shape is None else (0,) * self.rank
        end = self.shape if shape is None else shape
        extents = [e - s for s, e in zip(start, end, strict=True)]
        if prod(self.sizes.values()) != prod(extents) or self.origin != start:
            return False
        return do_all_hold(self.axes, self.where) and covers_box(self.axes, extents)

    def replication(self) -> int:
        """How many slots hold each element.

        Raises LayoutError if elements differ in this, naming two of them.
        """
        return copies(self.holders)

    # Writing the same function differently

    def simplified(self) -> Layout:
        """The shortest layout that is the same function; the axes and their order stay."""
        axes = self._canonical
        where = needed_conditions(self.where, self.sizes) if self.where else ()
        return Layout(axes, self.dims, self.offset, where)

    def equivalent(self, other: Layout) -> bool:
        """Whether both are the same function. Axes of size one and the order of axes do not count.

        >>> a = Layout.parse("lane [4:(1,0) 8:(0,1)] warp [1:(0,0)]")
        >>> a.equivalent(Layout.parse("lane [2:(1,0) 2:(2,0) 8:(0,1)]"))
        True
        """
        mine, others = self._essence, other._essence
        if self.dims != other.dims or {n: a.size for n, a in mine.items()} != {
            n: a.size for n, a in others.items()
        }:
            return False
        if not self.where and not other.where:
            return self.offset == other.offset and mine == others
        tables = [tabulated(one.names, one.slots(), tuple(mine)) for one in (self, other)]
        return tables[0] == tables[1]

    @property
    def _canonical(self) -> tuple[Axis, ...]:
        if self.exclusive:
            return self.kernel.canonical
        return tuple(Axis(a.name, coalesce_modes(a.modes)) for a in self.axes)

    @cached_property
    def _essence(self) -> dict[str, Axis]:
        return {axis.name: axis for axis in self._canonical if axis.modes}

    def formula(self) -> str:
        """The layout in the notation of the PTX ISA, which `fragir.layout.formula` reads.

        Raises LayoutError for an axis whose name means another axis in formulas (`i`).
        """
        from fragir.layout.text import formula_of

        return formula_of(self.simplified().axes, self.dims, self.origin, self.where)

    # Text

    @cached_property
    def _text(self) -> str:
        from fragir.layout.text import text_of  # its expressions are compiled where text is met

        return text_of(self.axes, self.dims, self.offset, self.where)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Layout.parse({self._text!r})"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.dims, self.offset, self.where))

    @staticmethod
    def parse(text: str) -> Layout:
        """The layout of a text as `str` prints it. Raises LayoutError with the column.

        Without `dims` the number of strides decides: one `index`, two `row, col`, three
        `row, col, product`. Blanks are free; in `where`, `/1` may be left out.
        """
        return _parse_cached(text)


@lru_cache(maxsize=4096)
def _parse_cached(text: str) -> Layout:
    from fragir.layout.text import parts_of

    axes, dims, offset, where = parts_of(text)
    return layout(*axes, dims=dims, offset=offset, where=where)


def layout(
    *axes: Axis,
    dims: tuple[str, ...] | None = None,
    offset: Point = (),
    where: Iterable[Condition] = (),
) -> Layout:
    """A layout from its axes; without `dims` the number of strides decides as in `Layout.parse`."""
    if dims is None:
        rank = next((len(m.step) for a in axes for m in a.modes), len(offset) or 2)
        dims = default_dims(rank)
    return Layout(axes, dims, offset, tuple(where))
