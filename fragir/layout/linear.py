"""Layouts as matrices over F2: Triton's linear layouts.

Where all sizes are powers of two, a coordinate is a row of bits, and a layout says for each bit
where it moves the point, its *basis*; the points of all bits that are set are added without carry
(exclusive or). What is a layout with disjoint bits is also linear over F2:

>>> from fragir.layout.layout import Layout
>>> c = to_linear(Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"))
>>> print(c)
f2:{"lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "register": [[0, 1], [8, 0]]}
>>> LinearLayout.parse(str(c)) == c
True
>>> print(to_layout(c))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]

Swizzles are linear too, and every bijection has an inverse. Here the banks of a swizzled row:

>>> swizzled = LinearLayout.parse('f2:{"row": [[5], [10]], "col": [[1], [2]]} dims (bank)')
>>> swizzled(row=1, col=1), print(inverse(swizzled))
f2:{"bank": [[0, 1], [0, 2], [1, 1], [2, 2]]}
((4,), None)
>>> print(to_layout(swizzled))
row [4:^5] col [4:1] dims (bank)

A `Layout` with exclusive-ored modes says all of this too, and mixed radix, offset and predicate
with it; `LinearLayout` is its view as bases. Every function of layouts takes either.

The text form is Triton's notation: `element` is called `register` there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from fragir.layout.arguments import takes
from fragir.layout.display import Drawn
from fragir.layout.f2 import Subspace, packed_bits, rank, unpacked_bits, xor
from fragir.layout.layout import Layout
from fragir.layout.modes import DEFAULT_DIMS, Axis, LayoutError, Point, XorMode, coalesce_modes
from fragir.layout.text import Bases, axes_of, bases_of, check_bases, dims_of


@dataclass(frozen=True)
class LinearLayout(Drawn):
    """For every axis the points that its bits stand for, lowest bit first.

    Dimensions have as many bits as the highest basis needs.
    """

    axes: tuple[tuple[str, Bases], ...]
    dims: tuple[str, ...] = DEFAULT_DIMS[2]

    def __repr__(self) -> str:
        return f"LinearLayout.parse({str(self)!r})"

    def __post_init__(self) -> None:
        if not _is_axes(self.axes):
            raise LayoutError(
                f"The axes of a layout over F2 are ((name, (points...)), ...), not {self.axes!r}."
            )
        check_bases(self.axes, self.dims)

    def __call__(self, **coordinates: int) -> Point:
        """The point at these coordinates; axes left out stand at zero.

        Raises LayoutError for an unknown axis or a coordinate out of range.
        """
        point = (0,) * len(self.dims)
        axes = dict(self.axes)
        for name, coordinate in coordinates.items():
            if name not in axes:
                raise LayoutError(f"The layout has no axis {name}; it has {', '.join(axes)}.")
            if not 0 <= coordinate < 1 << len(axes[name]):
                raise LayoutError(f"{name}={coordinate} is outside of its axis.")
            for bit, basis in enumerate(axes[name]):
                if coordinate >> bit & 1:
                    point = xor(point, basis)
        return point

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, in order."""
        return tuple(name for name, _ in self.axes)

    def as_layout(self) -> Layout:
        """The same function as a layout, simplified."""
        axes = (Axis(name, tuple(XorMode(2, b) for b in bases)) for name, bases in self.axes)
        return Layout(tuple(axes), self.dims).simplified()

    @cached_property
    def bits(self) -> Point:
        """The number of bits of every dimension."""
        return tuple(
            max((basis[dim].bit_length() for _, bases in self.axes for basis in bases), default=0)
            for dim in range(len(self.dims))
        )

    @property
    def shape(self) -> Point:
        """The extent of every dimension, a power of two."""
        return tuple(1 << bits for bits in self.bits)

    @property
    def bases(self) -> dict[str, list[list[int]]]:
        """Triton's notation: `{"register": [[0, 1], [8, 0]], "lane": ...}`."""
        return {
            "register" if name == "element" else name: [list(basis) for basis in bases]
            for name, bases in self.axes
        }

    def __str__(self) -> str:
        text = f"f2:{json.dumps(self.bases)}"
        shown = any(bases for _, bases in self.axes)
        if self.dims != DEFAULT_DIMS.get(len(self.dims) if shown else 2):
            text += f" dims ({','.join(self.dims)})"
        return text

    @staticmethod
    def of(bases: dict[str, list[list[int]]], dims: Sequence[str] = ()) -> LinearLayout:
        """A layout from Triton's notation; `register` becomes the axis `element`.

        Without `dims` the length of the bases decides, as in `Layout.parse`.
        """
        axes = axes_of(bases)
        return LinearLayout(axes, tuple(dims) or dims_of(axes))

    @staticmethod
    def parse(text: str) -> LinearLayout:
        """The layout of a text as `str` prints it, or with Triton's `register = [[0, 1]]`.

        Raises LayoutError.
        """
        axes, dims = bases_of(text)
        return LinearLayout(axes, dims)

    # As one matrix: a column of output bits for every input bit

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """For every bit of every axis in order, the output bits as one number, first dim lowest."""
        return tuple(packed_bits(basis, self.bits) for _, bases in self.axes for basis in bases)

    @property
    def rank(self) -> int:
        """The rank of the matrix: the bits of the image."""
        return rank(self.columns)

    @property
    def is_bijection(self) -> bool:
        """Whether every point of `shape` is held exactly once."""
        return self.rank == len(self.columns) == sum(self.bits)


@takes(Layout)
def to_linear(layout: Layout) -> LinearLayout:
    """The same function over F2.

    Raises LayoutError naming a mode whose size is no power of two or whose bits another mode (or
    the mode itself) also moves, so that there would be carries; and for an offset or predicate.
    """
    if layout.offset or layout.where:
        raise LayoutError(f"A layout with an offset or predicate is not linear: {layout}.")
    if not layout.exclusive or layout.kernel.forced:
        return LinearLayout(_bases_of_sums(layout), layout.dims)
    return LinearLayout(
        tuple((name, layout.kernel.columns(name)) for name in layout.names), layout.dims
    )


def _bases_of_sums(layout: Layout) -> tuple[tuple[str, Bases], ...]:
    """The bases of a layout without carries.

    Raises LayoutError naming the first mode that is no power of two or moves bits that others move.
    """
    seen = [0] * layout.rank
    axes: list[tuple[str, Bases]] = []
    for axis in layout.axes:
        bases: list[Point] = []
        for mode in coalesce_modes(axis.modes):
            if mode.size & (mode.size - 1):
                raise LayoutError(f"Mode {mode} of axis {axis.name} is not a power of two.")
            for bit in range(mode.size.bit_length() - 1):
                basis = tuple([step << bit for step in mode.step])
                if not mode.xor and any([s & b for s, b in zip(seen, basis, strict=True)]):
                    raise LayoutError(
                        f"Mode {mode} of axis {axis.name} carries: its bits are moved twice."
                    )
                if not mode.xor:
                    seen = [s | b for s, b in zip(seen, basis, strict=True)]
                bases.append(basis)
        axes.append((axis.name, tuple(bases)))
    return tuple(axes)


@takes(Layout)
def to_layout(layout: Layout | LinearLayout) -> Layout:
    """A layout over F2, or what else is the same as one, as modes, simplified.

    Columns that share bits with others are exclusive-ored modes; the others are added.
    """
    assert isinstance(layout, Layout)  # takes() has seen to it
    return layout.simplified()


@takes(LinearLayout, LinearLayout)
def compose(outer: LinearLayout, inner: LinearLayout) -> LinearLayout:
    """x -> outer(inner(x)). Raises LayoutError unless the inner dimensions fit the outer axes."""
    sizes = {name: len(bases) for name, bases in outer.axes}
    for name, bits in zip(inner.dims, inner.bits, strict=True):
        if bits > sizes.get(name, -1):
            raise LayoutError(
                f"The inner layout's dimension {name} of {bits} bits does not fit the outer "
                f"layout's axes {', '.join(f'{n} of {b} bits' for n, b in sizes.items())}."
            )
    axes = tuple(
        (
            name,
            tuple(outer(**dict(zip(inner.dims, basis, strict=True))) for basis in bases),
        )
        for name, bases in inner.axes
    )
    return LinearLayout(axes, outer.dims)


@takes(LinearLayout)
def inverse(linear: LinearLayout) -> LinearLayout:
    """The inverse of a bijection. Raises LayoutError if some slots hold the same point."""
    if linear.rank < len(linear.columns):
        raise LayoutError(f"No inverse: several slots hold the same point in {linear}.")
    return right_inverse(linear)


@takes(LinearLayout)
def right_inverse(linear: LinearLayout) -> LinearLayout:
    """R with linear(R(p)) == p for every point p of the shape; free bits are zero in R.

    Raises LayoutError naming a dimension's bit that no slot reaches.
    """
    span = Subspace(linear.columns)
    sizes = [len(bases) for _, bases in linear.axes]
    axes: list[tuple[str, Bases]] = []
    place = 0
    for name, bits in zip(linear.dims, linear.bits, strict=True):
        bases: list[Point] = []
        for bit in range(bits):
            inputs = span.solve(1 << (place + bit))
            if inputs is None:
                raise LayoutError(f"No right inverse: nothing holds {name} {1 << bit} alone.")
            bases.append(unpacked_bits(inputs, sizes))
        axes.append((name, tuple(bases)))
        place += bits
    return LinearLayout(tuple(axes), linear.names)


@takes(LinearLayout, LinearLayout)
def divide(linear: LinearLayout, fragment: LinearLayout) -> LinearLayout:
    """The rest with `product(fragment, rest) == linear`: how a tile is made of fragments.

    The rest counts in fragments. Raises LayoutError naming the axis or basis for which the tile is
    not made of fragments.
    """
    if linear.dims != fragment.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(linear.dims)}) and ({', '.join(fragment.dims)}) differ."
        )
    parts = dict(fragment.axes)
    axes: list[tuple[str, Bases]] = []
    for name, bases in linear.axes:
        first = parts.pop(name, ())
        if bases[: len(first)] != first:
            raise LayoutError(f"Axis {name} does not begin with the fragment's {list(first)}.")
        rest: list[Point] = []
        for basis in bases[len(first) :]:
            if any(b & ((1 << bits) - 1) for b, bits in zip(basis, fragment.bits, strict=True)):
                raise LayoutError(f"Basis {basis} of axis {name} moves inside of a fragment.")
            rest.append(tuple(b >> bits for b, bits in zip(basis, fragment.bits, strict=True)))
        axes.append((name, tuple(rest)))
    missing = [name for name, bases in parts.items() if bases]
    if missing:
        raise LayoutError(f"The layout has no axis {missing[0]}, which the fragment has.")
    return LinearLayout(tuple(axes), linear.dims)


@takes(LinearLayout, LinearLayout)
def product(fragment: LinearLayout, grid: LinearLayout) -> LinearLayout:
    """The fragment at every point of the grid; in shared axes the fragment's bits come first.

    Raises LayoutError if the dimensions differ.
    """
    if fragment.dims != grid.dims:
        raise LayoutError(
            f"The dimensions ({', '.join(fragment.dims)}) and ({', '.join(grid.dims)}) differ."
        )
    axes = dict(fragment.axes)
    for name, bases in grid.axes:
        moved = tuple(
            tuple(b << bits for b, bits in zip(basis, fragment.bits, strict=True))
            for basis in bases
        )
        axes[name] = axes.get(name, ()) + moved
    return LinearLayout(tuple(axes.items()), fragment.dims)


def _is_axes(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_axis, cast("tuple[object, ...]", value)))


def _is_axis(value: object) -> bool:
    match value:
        case (str(), tuple()):
            bases = cast("tuple[str, tuple[object, ...]]", value)[1]
            return all(
                isinstance(basis, tuple)
                and all(isinstance(x, int) for x in cast("tuple[object, ...]", basis))
                for basis in bases
            )
        case _:
            return False
