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

Limits: strides are not negative, and a layout is a sum of digits times strides, without exclusive
or. Swizzled shared memory is a layout followed by a `Swizzle` (`fragir.layout.shared`), maps over
bits are `fragir.layout.linear`. What cannot be said as a layout is an error that names the mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, TypeAlias, cast

from fragir.errors import FragirError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Point: TypeAlias = tuple[int, ...]
Nested: TypeAlias = "list[Nested] | Point | None"

LARGEST_TABLE = 1 << 20
"""Slots that are looked at one by one, as for a table; what is larger is an error at once."""

DEFAULT_DIMS: dict[int, tuple[str, ...]] = {
    1: ("index",),
    2: ("row", "col"),
    3: ("row", "col", "product"),
}


class LayoutError(FragirError):
    """What was asked of a layout cannot be said as a layout; the message names the mode."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One digit of an axis: `size` values, each moving the point by `stride` (per dimension)."""

    size: int
    stride: Point

    def __str__(self) -> str:
        if len(self.stride) == 1:
            return f"{self.size}:{self.stride[0]}"
        return f"{self.size}:({','.join(map(str, self.stride))})"


@dataclass(frozen=True, slots=True)
class Axis:
    """A hardware coordinate and its digits, fastest first."""

    name: str
    modes: tuple[Mode, ...] = ()

    @property
    def size(self) -> int:
        """How many values the coordinate has."""
        return prod(mode.size for mode in self.modes)

    def __str__(self) -> str:
        return f"{self.name} [{' '.join(map(str, self.modes))}]"

    def at(self, coordinate: int, rank: int) -> Point:
        """The point, in `rank` dimensions, that this axis contributes at a coordinate."""
        point = [0] * rank
        for mode in self.modes:
            coordinate, digit = divmod(coordinate, mode.size)
            if digit:
                for dim, stride in enumerate(mode.stride):
                    point[dim] += digit * stride
        return tuple(point)

    def points(self, rank: int) -> list[Point]:
        """`at` for every coordinate in order. LayoutError beyond `LARGEST_TABLE`."""
        if self.size > LARGEST_TABLE:
            raise LayoutError(
                f"Axis {self.name} has {self.size} coordinates; at most {LARGEST_TABLE} are looked "
                "at one by one."
            )
        points: list[Point] = [(0,) * rank]
        for mode in self.modes:
            points = [
                tuple(p + digit * s for p, s in zip(point, mode.stride, strict=True))
                for digit in range(mode.size)
                for point in points
            ]
        return points


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds where (coordinate of `axis` // divisor) % modulus == value."""

    axis: str
    divisor: int
    modulus: int
    value: int

    def __call__(self, coordinate: int) -> bool:
        return coordinate // self.divisor % self.modulus == self.value

    def __str__(self) -> str:
        return f"{self.axis}/{self.divisor}%{self.modulus}=={self.value}"


@dataclass(frozen=True)
class Layout:
    """A map from hardware coordinates to matrix coordinates; the module's docstring explains it.

    `axes` keep the order they are given in. An empty `offset` means zeros. `where` limits which
    slots hold anything; all its conditions must hold. Raises LayoutError for a malformed layout.
    """

    axes: tuple[Axis, ...]
    dims: tuple[str, ...] = DEFAULT_DIMS[2]
    offset: Point = ()
    where: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(axis, Axis) for axis in _given(self.axes)):
            raise LayoutError(f"The axes of a layout are a tuple of Axis, not {self.axes!r}.")
        rank = len(self.dims)
        names = {axis.name for axis in self.axes}
        if len(names) != len(self.axes):
            raise LayoutError(f"An axis name appears twice in {', '.join(self.names)}.")
        if len(set(self.dims)) != rank:
            raise LayoutError(f"A dimension name appears twice in {', '.join(self.dims)}.")
        for axis in self.axes:
            for mode in axis.modes:
                if mode.size < 1:
                    raise LayoutError(f"Mode {mode} of axis {axis.name} has no positive size.")
                if len(mode.stride) != rank:
                    raise LayoutError(
                        f"Mode {mode} of axis {axis.name} has {len(mode.stride)} strides, but the "
                        f"layout has the {rank} dimensions {', '.join(self.dims)}."
                    )
                if min(mode.stride, default=0) < 0:
                    raise LayoutError(f"Mode {mode} of axis {axis.name} has a negative stride.")
        if self.offset:
            if len(self.offset) != rank or min(self.offset) < 0:
                raise LayoutError(f"Offset {self.offset} is not {rank} non-negative numbers.")
            if not any(self.offset):
                object.__setattr__(self, "offset", ())
        for condition in self.where:
            if condition.axis not in names:
                raise LayoutError(f"Condition {condition} names no axis of the layout.")
            if condition.divisor < 1 or not 0 <= condition.value < condition.modulus:
                raise LayoutError(f"Condition {condition} can never hold.")

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
    def shape(self) -> Point:
        """Per dimension one more than the largest coordinate, the offset included.

        The predicate is not considered.
        """
        shape = [start + 1 for start in self.origin]
        for axis in self.axes:
            for mode in axis.modes:
                for dim, stride in enumerate(mode.stride):
                    shape[dim] += (mode.size - 1) * stride
        return tuple(shape)

    # The function

    def __call__(self, **coordinates: int) -> Point | None:
        """The matrix coordinates of the element in this slot; None if the slot holds nothing.

        Raises LayoutError for an unknown axis, a coordinate out of range, or one that is missing
        (which only an axis of size one allows).
        """
        for name in coordinates.keys() - set(self.names):
            self.axis(name)
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

    def slots(self) -> Iterator[tuple[Point, Point | None]]:
        """Every slot as (its coordinates in the order of the axes, what it holds).

        The last axis changes fastest, as in `table`. LayoutError beyond `LARGEST_TABLE`.
        """
        self._check_slots()
        done: list[tuple[Point, Point | None]] = [((), self.origin)]
        for axis in self.axes:
            conditions = [c for c in self.where if c.axis == axis.name]
            points = [
                (index, point if all(c(index) for c in conditions) else None)
                for index, point in enumerate(axis.points(self.rank))
            ]
            done = [
                ((*at, index), None if start is None or step is None else _sum(start, step))
                for at, start in done
                for index, step in points
            ]
        return iter(done)

    def _check_slots(self) -> None:
        if prod(self.sizes.values()) > LARGEST_TABLE:
            raise LayoutError(
                f"The layout has {prod(self.sizes.values())} slots; at most {LARGEST_TABLE} are "
                "looked at one by one."
            )

    def table(self) -> Nested:
        """Nested lists in the order of the axes; innermost the point, or None.

        >>> Layout.parse("lane [2:(1,0)] element [2:(0,1)]").table()
        [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]
        """
        points = (point for _, point in self.slots())

        def nest(axes: tuple[Axis, ...]) -> Nested:
            if not axes:
                return next(points)
            return [nest(axes[1:]) for _ in range(axes[0].size)]

        return nest(self.axes)

    def array(self) -> NDArray[np.int64]:
        """The table as an array of shape (sizes of the axes..., rank); -1 where nothing is held."""
        import numpy as np

        if max(self.shape, default=0) > 1 << 63:
            raise LayoutError("The coordinates of the layout do not fit 64 bits.")
        self._check_slots()
        points, held = np.array(self.origin, np.int64), np.array(True)
        for axis in self.axes:
            conditions = [c for c in self.where if c.axis == axis.name]
            steps = np.array(list(axis.points(self.rank)), np.int64).reshape(-1, self.rank)
            kept = np.array([all(c(i) for c in conditions) for i in range(axis.size)], np.bool_)
            points, held = points[..., None, :] + steps, held[..., None] & kept
        return np.where(held[..., None], points, -1)

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

        The tile is `shape` from the coordinate zero, or, if no shape is given, what lies between
        the layout's offset and its `shape`.
        """
        start = self.origin if shape is None else (0,) * self.rank
        end = self.shape if shape is None else shape
        slots = prod(self.sizes.values())
        if slots != prod(e - s for s, e in zip(start, end, strict=True)):
            return False
        return self.origin == start and self._holds_all() and self._tiles(start, end)

    def _holds_all(self) -> bool:
        """Whether every slot holds something."""
        return all(
            condition.modulus == 1
            or (condition.value == 0 and self.size(condition.axis) <= condition.divisor)
            for condition in self.where
        )

    def _tiles(self, start: Point, end: Point) -> bool:
        """Whether the sums of digits are all the points of a box, each once.

        The point next to the corner along a dimension is one digit's stride, and a row of the box
        is cut by that digit's runs in one way only. So every other stride is a multiple of the
        run along this dimension, and the same holds for the box counted in runs: all digits go
        along one dimension, and each goes on where the finer ones end.
        """
        digits: list[list[tuple[int, int]]] = [[] for _ in self.dims]
        for axis in self.axes:
            for mode in axis.modes:
                moved = [dim for dim, stride in enumerate(mode.stride) if stride]
                if mode.size == 1:
                    continue
                if len(moved) != 1:
                    return False
                digits[moved[0]].append((mode.stride[moved[0]], mode.size))
        for along, first, last in zip(digits, start, end, strict=True):
            covered = 1
            for stride, size in sorted(along):
                if stride != covered:
                    return False
                covered *= size
            if covered != last - first:
                return False
        return True

    def replication(self) -> int:
        """How many slots hold each element.

        Raises LayoutError if elements differ in this, naming two of them.
        """
        counts = {len(slots): point for point, slots in self.holders.items()}
        if len(counts) > 1:
            (few, a), (many, b) = min(counts.items()), max(counts.items())
            raise LayoutError(f"Element {a} is held {few} times, but element {b} {many} times.")
        return next(iter(counts), 0)

    # Writing the same function differently

    def simplified(self) -> Layout:
        """The shortest layout that is the same function; the axes and their order stay."""
        axes = tuple(Axis(a.name, coalesced(a.modes)) for a in self.axes)
        where = tuple(
            sorted(
                {
                    condition
                    for condition in self.where
                    if not all(map(condition, range(self.size(condition.axis))))
                },
                key=str,
            )
        )
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
        names = tuple(mine)
        return self._function(names) == other._function(names)

    @cached_property
    def _essence(self) -> dict[str, Axis]:
        axes = (Axis(a.name, coalesced(a.modes)) for a in self.axes)
        return {axis.name: axis for axis in axes if axis.modes}

    def _function(self, names: tuple[str, ...]) -> dict[Point, Point | None]:
        at = [self.names.index(name) for name in names]
        return {tuple(slot[i] for i in at): point for slot, point in self.slots()}

    def formula(self) -> str:
        """The layout in the notation of the PTX ISA, which `fragir.layout.formula` reads."""
        from fragir.layout.formula import to_formula

        return to_formula(self)

    # Text

    @cached_property
    def _text(self) -> str:
        parts = [str(axis) for axis in self.axes]
        if self.offset:
            parts.append(f"offset {_tuple(self.offset)}")
        if self.where:
            parts.append("where " + " and ".join(map(str, self.where)))
        shown = bool(self.offset) or any(axis.modes for axis in self.axes)
        if self.dims != DEFAULT_DIMS.get(self.rank if shown else 2):
            parts.append(f"dims {_tuple(self.dims)}")
        return " ".join(parts)

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
        from fragir.layout.text import parse

        return parse(text)


def axis(name: str, *modes: tuple[int, Point]) -> Axis:
    """An axis from (size, strides) pairs: `axis("lane", (4, (0, 2)), (8, (1, 0)))`."""
    return Axis(name, tuple(Mode(size, stride) for size, stride in modes))


def layout(
    *axes: Axis,
    dims: tuple[str, ...] | None = None,
    offset: Point = (),
    where: Iterable[Condition] = (),
) -> Layout:
    """A layout from its axes; without `dims` the number of strides decides as in `Layout.parse`."""
    if dims is None:
        rank = next((len(m.stride) for a in axes for m in a.modes), len(offset) or 2)
        dims = default_dims(rank)
    return Layout(axes, dims, offset, tuple(where))


def coalesced(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    """The same digits with as few modes as possible; no mode has size one."""
    merged: list[Mode] = []
    for mode in modes:
        if mode.size == 1:
            continue
        if merged:
            last = merged[-1]
            if all(s * last.size == t for s, t in zip(last.stride, mode.stride, strict=True)):
                merged[-1] = Mode(last.size * mode.size, last.stride)
                continue
        merged.append(mode)
    return tuple(merged)


def _given(value: object) -> tuple[object, ...]:
    """The items of a tuple; one that is nothing for anything else."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)


def _sum(a: Point, b: Point) -> Point:
    if len(a) == 2:  # by far the most frequent case, and this is the innermost loop
        return a[0] + b[0], a[1] + b[1]
    return tuple(x + y for x, y in zip(a, b, strict=True))


def default_dims(rank: int) -> tuple[str, ...]:
    """The names of the dimensions where none are given. Raises LayoutError beyond three."""
    if rank not in DEFAULT_DIMS:
        raise LayoutError(f"A layout of {rank} dimensions needs names for them: dims (...).")
    return DEFAULT_DIMS[rank]


def _tuple(values: Iterable[int | str]) -> str:
    return f"({','.join(map(str, values))})"
