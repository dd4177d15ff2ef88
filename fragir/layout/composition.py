"""Composition: `compose(outer, inner)` is the layout x -> outer(inner(x)).

The dimensions of the inner layout are the axes of the outer one. A fragment maps lanes to (row,
col), a shared-memory tile maps (row, col) to bytes, so their composition says which byte every
lane's elements stand at:

>>> from fragir.layout.layout import Layout
>>> fragment = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> tile = Layout.parse("row [16:16] col [8:2] dims (byte)")
>>> print(compose(tile, fragment))
lane [4:4 8:16] element [2:2 2:128] dims (byte)

With one axis and one dimension this is CuTe's composition. A mode of the inner layout is split
where it runs through several digits of the outer one; the sum of its digits must never carry from
one digit of the outer layout into the next, because there the result is no sum of digits any more.
Each such case is an error that names the mode, also where CuTe would answer with a wrong layout:

>>> column = Layout.parse("index [6:1]")
>>> print(compose(Layout.parse("index [2:10 6:1]"), column))
index [2:10 3:1]
>>> compose(Layout.parse("index [4:10 6:1]"), column)
Traceback (most recent call last):
...
fragir.layout.modes.LayoutError: Mode 6:1 of axis index does not fit the outer layout's axis \
index [4:10 6:1]: its multiples carry between digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Protocol, cast

from fragir.errors import kind_of
from fragir.layout.arguments import takes
from fragir.layout.fitting import compose_kernels
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, coalesce_modes
from fragir.layout.synthesis import from_function

# Above so many slots a composition that is no sum of digits is refused without trying every slot.
LARGEST_TRIED = 1 << 16


class AddressMap(Protocol):
    """A map of addresses of any number, which takes its size from what it is composed with."""

    def after(self, inner: Any) -> Layout:
        """x -> self(inner(x))."""
        ...

    def before(self, outer: Any) -> Layout:
        """x -> outer(self(x))."""
        ...


def compose(outer: Layout | AddressMap, inner: Layout | AddressMap) -> Layout:
    """The layout with the axes of `inner` and the dimensions of `outer`.

    What can be a layout (shared-memory layouts, those over F2, chains) is taken as one, and a
    swizzle as one of as many addresses as the other has. `chained` answers also where the result is
    no layout of digits.

    Raises LayoutError where the dimensions and axes do not match, where a coordinate would leave
    the outer layout, where the result is no layout, and where the outer layout's predicate holds
    for a part of the inner layout only.
    """
    if hasattr(outer, "after"):
        return cast("AddressMap", outer).after(inner)
    if hasattr(inner, "before"):
        return cast("AddressMap", inner).before(outer)
    return _compose(cast("Layout", outer), cast("Layout", inner))


@takes(Layout, Layout)
def _compose(outer: Layout, inner: Layout) -> Layout:
    if set(inner.dims) != set(outer.names):
        raise LayoutError(
            f"The inner layout's dimensions ({', '.join(inner.dims)}) are not the outer layout's "
            f"axes ({', '.join(outer.names)})."
        )
    for axis in outer.axes:
        extent = inner.shape[inner.dims.index(axis.name)]
        if extent > axis.size:
            raise LayoutError(
                f"The inner layout reaches {axis.name} {extent - 1}, but the outer layout's axis "
                f"{axis.name} has the size {axis.size}."
            )
    _check_predicate(outer, inner)
    if outer.exclusive or inner.exclusive:
        return _by_bits(outer, inner)
    try:
        return _by_digits(outer, inner)
    except LayoutError:
        # Carries can cancel. Then the table still is a layout; that is rare, so try it last.
        if prod(inner.sizes.values()) > LARGEST_TRIED:
            raise
        try:
            found = from_function(inner.sizes, _function(outer, inner), outer.dims)
        except LayoutError:
            found = None
        if found is None:
            raise
        return replace(found, where=inner.where)


def _function(outer: Layout, inner: Layout) -> Callable[[Point], Point]:
    plain = replace(inner, where=())
    table = dict(plain.slots())
    per_axis = {axis.name: axis.points(outer.rank) for axis in outer.axes}

    def function(slot: Point) -> Point:
        point = table[slot]
        assert point is not None  # there is no predicate any more
        parts = [per_axis[name][at] for name, at in zip(plain.dims, point, strict=True)]
        return tuple(map(sum, zip(outer.origin, *parts, strict=True)))

    return function


def _by_bits(outer: Layout, inner: Layout) -> Layout:
    order = [inner.dims.index(name) for name in outer.names]
    kernel = compose_kernels(outer.kernel, inner.kernel, order, inner.axes)
    return Layout(kernel.canonical, outer.dims, kernel.point(kernel.start), inner.where)


def _by_digits(outer: Layout, inner: Layout) -> Layout:
    radix = Radix(outer, inner.dims)
    carried = list(radix.digits(inner.origin))
    axes: list[Axis] = []
    for axis in inner.axes:
        modes: list[Mode] = []
        for mode in coalesce_modes(axis.modes):
            pieces = radix.split(mode)
            if pieces is None:
                raise LayoutError(
                    f"Mode {mode} of axis {axis.name} does not fit the outer layout's "
                    f"{radix.describe(mode.stride)}: its multiples carry between digits."
                )
            for size, digits in pieces:
                carried = [c + (size - 1) * d for c, d in zip(carried, digits, strict=True)]
                if any(c >= n for c, n in zip(carried, radix.sizes, strict=True)):
                    raise LayoutError(
                        f"Mode {mode} of axis {axis.name} carries between digits of the outer "
                        f"layout's {radix.describe(mode.stride)} when it is added to the offset "
                        "and the modes before it."
                    )
                modes.append(Mode(size, radix.value(digits)))
        axes.append(Axis(axis.name, tuple(modes)))
    start = radix.value(radix.digits(inner.origin))
    offset = tuple(a + b for a, b in zip(outer.origin, start, strict=True))
    return Layout(tuple(axes), outer.dims, offset, inner.where)


def identity(sizes: Mapping[str, int], dims: Iterable[str] | None = None) -> Layout:
    """The layout that maps every axis to the dimension of its name.

    With `dims`, further dimensions may be named and the order chosen.

    >>> print(identity({"row": 4, "col": 3}))
    row [4:(1,0)] col [3:(0,1)]
    """
    if not isinstance(cast("object", sizes), Mapping):
        raise LayoutError(f"identity takes sizes by name, not {kind_of(sizes)}.")
    names = tuple(dims) if dims is not None else tuple(sizes)
    return Layout(
        tuple(
            Axis(name, (Mode(size, tuple(int(name == other) for other in names)),))
            for name, size in sizes.items()
        ),
        names,
    )


class Radix:
    """The mixed-radix number system that a layout's axes are: its digits and their strides."""

    def __init__(self, layout: Layout, order: Iterable[str]) -> None:
        self.layout = layout
        self.order = tuple(order)
        self.rank = layout.rank
        self.groups = [coalesce_modes(layout.axis(name).modes) for name in self.order]
        self.sizes = [mode.size for group in self.groups for mode in group]
        self.strides = [mode.stride for group in self.groups for mode in group]

    def describe(self, stride: Point) -> str:
        """The axes that a stride moves along, for messages."""
        moved = [n for n, s in zip(self.order, stride, strict=True) if s] or list(self.order)
        return "axis " + " and ".join(str(self.layout.axis(name)) for name in moved)

    def digits(self, point: Point) -> Point:
        """The digits of a coordinate (in `order`). It must be inside of the axes.

        What an axis of size one gets stays zero.
        """
        digits: list[int] = []
        for coordinate, group in zip(point, self.groups, strict=True):
            for mode in group:
                coordinate, digit = divmod(coordinate, mode.size)
                digits.append(digit)
        return tuple(digits)

    def value(self, digits: Point) -> Point:
        """The sum of digits times strides."""
        point = [0] * self.rank
        for digit, stride in zip(digits, self.strides, strict=True):
            if digit:
                for dim, step in enumerate(stride):
                    point[dim] += digit * step
        return tuple(point)

    def split(self, mode: Mode) -> list[tuple[int, Point]] | None:
        """A mode as a chain of (size, digits of the stride) without a carry; None if impossible."""
        return self._split(mode.size, mode.stride, self.sizes)

    def _split(self, size: int, stride: Point, room: list[int]) -> list[tuple[int, Point]] | None:
        if size == 1:
            return []
        digits = self.digits(stride)
        most = (
            min((n - 1) // d for n, d in zip(room, digits, strict=True) if d) + 1
            if any(digits)
            else size
        )
        for piece in range(min(size, most), 1, -1):
            if size % piece:
                continue
            left = [n - (piece - 1) * d for n, d in zip(room, digits, strict=True)]
            rest = self._split(size // piece, tuple(piece * s for s in stride), left)
            if rest is not None:
                return [(piece, digits), *rest]
        return None


def _check_predicate(outer: Layout, inner: Layout) -> None:
    if not outer.where:
        return
    refused = next((c for c in outer.where if not _is_always_inside(c.axis, outer, inner)), None)
    if refused is not None:
        raise LayoutError(f"The outer layout's condition {refused} does not hold everywhere.")


def _is_always_inside(name: str, outer: Layout, inner: Layout) -> bool:
    dim = inner.dims.index(name)
    conditions = [c for c in outer.where if c.axis == name]
    return all(condition(point[dim]) for point in inner.holders for condition in conditions)
