"""A layout seen from the matrix: which digit of which axis moves along which dimension."""

from collections.abc import Iterable
from typing import NamedTuple

from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Mode, coalesce_modes


class Digit(NamedTuple):
    """One mode of an axis that moves along one dimension only (or nowhere)."""

    axis: str
    mode: Mode
    place: int  # the product of the sizes of the axis's faster modes
    dim: int | None  # None: stride zero
    stride: int  # along dim

    @property
    def size(self) -> int:
        return self.mode.size

    def __str__(self) -> str:
        return f"mode {self.mode} of axis {self.axis}"


def digits_of(layout: Layout, what: str) -> list[Digit]:
    """The digits of all axes, coalesced.

    Raises LayoutError, beginning with `what`, for a mode along two dimensions at once.
    """
    digits: list[Digit] = []
    for axis in layout.axes:
        place = 1
        for mode in coalesce_modes(axis.modes):
            moved = [dim for dim, stride in enumerate(mode.stride) if stride]
            if len(moved) > 1:
                names = " and ".join(layout.dims[dim] for dim in moved)
                raise LayoutError(f"{what}: mode {mode} of axis {axis.name} moves along {names}.")
            dim = moved[0] if moved else None
            stride = 0 if dim is None else mode.stride[dim]
            digits.append(Digit(axis.name, mode, place, dim, stride))
            place *= mode.size
    return digits


def along(digits: Iterable[Digit], dim: int) -> list[Digit]:
    """The digits that move along a dimension, finest first."""
    return sorted((d for d in digits if d.dim == dim), key=lambda d: (d.stride, d.size))


def unit(dim: int, rank: int, stride: int) -> tuple[int, ...]:
    """A stride along one dimension."""
    return tuple(stride if other == dim else 0 for other in range(rank))
