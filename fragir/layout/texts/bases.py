"""Layouts from bases over F2: for every bit of every axis the point that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.layout.layout import Layout
from fragir.layout.modes import DEFAULT_DIMS, Axis, LayoutError, Point, XorMode

Bases = Sequence[Point]

_FOUR = ("outer", "inner", "row", "col")


def dims_of(rank: int) -> tuple[str, ...]:
    """The names of a tensor's dimensions. Raises LayoutError beyond four."""
    if not 1 <= rank <= 4:
        raise LayoutError(f"A tensor of {rank} dimensions is not read; there are 1 to 4.")
    return DEFAULT_DIMS.get(rank, _FOUR)


def from_bases(axes: Iterable[tuple[str, Bases]], dims: tuple[str, ...]) -> Layout:
    """The layout of these bases, lowest bit first, simplified. Axes keep their order."""
    return Layout(
        tuple(Axis(name, tuple(XorMode(2, basis) for basis in bases)) for name, bases in axes), dims
    ).simplified()
