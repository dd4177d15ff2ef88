"""Layouts from bases over F2: for every bit of every axis the point that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.distribution import dims_of
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Point, XorMode
from fragir.layout.texts.cursor import Cursor

Bases = Sequence[Point]


def from_bases(axes: Iterable[tuple[str, Bases]], dims: tuple[str, ...]) -> Layout:
    """The layout of these bases, lowest bit first, simplified. Axes keep their order."""
    return Layout(
        tuple(Axis(name, tuple(XorMode(2, basis) for basis in bases)) for name, bases in axes), dims
    ).simplified()


def bases_of(layout: Layout) -> list[tuple[str, tuple[Point, ...]]]:
    """For every axis the points of its bits, lowest first.

    Raises LayoutError for a predicate or an offset, and naming a digit that is not linear.
    """
    if layout.where or layout.offset:
        raise LayoutError(f"A layout with an offset or predicate is not linear: {layout}.")
    return [(axis.name, layout.kernel.columns(axis.name)) for axis in layout.axes]


def inverse_bases(bases: Bases, shape: Point, cursor: Cursor, at: int = 0) -> Layout:
    """From the elements of a tensor to their places, given the elements of the places' bits."""
    sizes = [extent.bit_length() - 1 for extent in shape]
    shifts = [sum(sizes[:dim]) for dim in range(len(shape))]
    span = Subspace()
    for number, point in enumerate(bases):
        if len(point) != len(shape) or any(x >= e for x, e in zip(point, shape, strict=True)):
            text = "x".join(map(str, shape))
            raise cursor.error(f"The point {list(point)} is not inside of {text}.", at)
        packed = sum(x << shift for x, shift in zip(point, shifts, strict=True))
        span.add(packed, 1 << number)
    axes: list[tuple[str, list[Point]]] = []
    for dim, (name, size) in enumerate(zip(dims_of(len(shape)), sizes, strict=True)):
        columns: list[Point] = []
        for bit in range(size):
            found = span.solve(1 << shifts[dim] + bit)
            if found is None:
                raise cursor.error(f"No place holds {1 << bit} along dimension {dim}.", at)
            columns.append((found,))
        axes.append((name, columns))
    return from_bases(axes, ("index",))
