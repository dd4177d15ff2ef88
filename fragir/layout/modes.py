"""What a layout is made of: modes, the digits of an axis; axes; conditions on their coordinates.

`fragir.layout.layout` explains them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

from fragir.errors import FragirError

Point: TypeAlias = tuple[int, ...]

LARGEST_TABLE = 1 << 20
"""Slots that are looked at one by one, as for a table; what is larger is an error at once."""

WARP = 32
"""Lanes of a warp."""

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


def axis(name: str, *modes: tuple[int, Point]) -> Axis:
    """An axis from (size, strides) pairs: `axis("lane", (4, (0, 2)), (8, (1, 0)))`."""
    return Axis(name, tuple(Mode(size, stride) for size, stride in modes))


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


def default_dims(rank: int) -> tuple[str, ...]:
    """The names of the dimensions where none are given. Raises LayoutError beyond three."""
    if rank not in DEFAULT_DIMS:
        raise LayoutError(f"A layout of {rank} dimensions needs names for them: dims (...).")
    return DEFAULT_DIMS[rank]


def check_parts(
    axes: tuple[Axis, ...],
    dims: tuple[str, ...],
    offset: Point,
    where: tuple[Condition, ...],
) -> None:
    """LayoutError unless these are the parts of a layout."""
    if not all(isinstance(axis, Axis) for axis in _given(axes)):
        raise LayoutError(f"The axes of a layout are a tuple of Axis, not {axes!r}.")
    rank = len(dims)
    names = {axis.name for axis in axes}
    if len(names) != len(axes):
        listed = ", ".join(axis.name for axis in axes)
        raise LayoutError(f"An axis name appears twice in {listed}.")
    if len(set(dims)) != rank:
        raise LayoutError(f"A dimension name appears twice in {', '.join(dims)}.")
    for axis in axes:
        for mode in axis.modes:
            if mode.size < 1:
                raise LayoutError(f"Mode {mode} of axis {axis.name} has no positive size.")
            if len(mode.stride) != rank:
                raise LayoutError(
                    f"Mode {mode} of axis {axis.name} has {len(mode.stride)} strides, but the "
                    f"layout has the {rank} dimensions {', '.join(dims)}."
                )
            if min(mode.stride, default=0) < 0:
                raise LayoutError(f"Mode {mode} of axis {axis.name} has a negative stride.")
    if offset:
        if len(offset) != rank or min(offset) < 0:
            raise LayoutError(f"Offset {offset} is not {rank} non-negative numbers.")
    for condition in where:
        if condition.axis not in names:
            raise LayoutError(f"Condition {condition} names no axis of the layout.")
        if condition.divisor < 1 or not 0 <= condition.value < condition.modulus:
            raise LayoutError(f"Condition {condition} can never hold.")


def _given(value: object) -> tuple[object, ...]:
    """The items of a tuple; one that is nothing for anything else."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
