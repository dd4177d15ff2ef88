"""What a layout is made of: modes, the digits of an axis; axes; conditions on their coordinates.

`fragir.layout.layout` explains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from operator import add
from typing import TYPE_CHECKING, ClassVar, Never, TypeAlias, cast

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
    xor: ClassVar[bool] = False  # whether the digit is exclusive-ored: then it is an XorMode

    @property
    def step(self) -> Point:
        """The stride, or the column of an `XorMode`: where the digit 1 moves the point."""
        return self.stride

    def moving(self, size: int, step: Point) -> Mode:
        """A digit of the same kind, added or exclusive-ored, with another size and step."""
        return Mode(size, step)

    def __str__(self) -> str:
        return _mode_text(self.size, "", self.stride)


class XorMode(Mode):
    """A digit of `size` = 2^k values whose bit i is exclusive-ored: point ^= column << i.

    It has no stride: asking for one is a LayoutError, so that what knows sums only fails instead
    of giving a wrong layout.
    """

    __slots__ = ("column",)
    xor: ClassVar[bool] = True
    column: Point

    def __init__(self, size: int, column: Point) -> None:
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "column", column)

    @property
    def step(self) -> Point:
        """The column: where the digit 1 moves the point."""
        return self.column

    def moving(self, size: int, step: Point) -> XorMode:
        """A digit of the same kind with another size and column."""
        return XorMode(size, step)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:  # of a slot that is never set: stride
            if name != "stride":
                raise AttributeError(f"XorMode has no attribute {name}")
            raise LayoutError(
                f"Mode {self} is combined by exclusive or and has no stride; what was asked is "
                "only done with modes that are added."
            )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, XorMode) and self.size == other.size and self.column == other.column
        )

    def __hash__(self) -> int:
        return hash((self.size, self.column, True))

    def __repr__(self) -> str:
        return f"XorMode(size={self.size!r}, column={self.column!r})"

    def __str__(self) -> str:
        return _mode_text(self.size, "^", self.column)

    def __reduce__(self) -> tuple[type[XorMode], tuple[int, Point]]:
        return XorMode, (self.size, self.column)


def _mode_text(size: int, kind: str, step: Point) -> str:
    if len(step) == 1:
        return f"{size}:{kind}{step[0]}"
    return f"{size}:{kind}({','.join(map(str, step))})"


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

    def scaled(self, times: int, over: int = 1) -> Axis:
        """The axis with every step `times` / `over` as long: elements counted in bytes, say.

        Modes of size one are left out. Raises LayoutError naming a mode whose step would be no
        whole number, and one that flips bits, which only a power of two moves to others.
        """
        modes: list[Mode] = []
        for mode in self.modes:
            if mode.size > 1:
                step = [s * times for s in mode.step]
                if any([s % over for s in step]) or (mode.xor and times * over & times * over - 1):
                    raise LayoutError(
                        f"Mode {mode} of axis {self.name} has no steps {times}/{over} as long."
                    )
                modes.append(mode.moving(mode.size, tuple([s // over for s in step])))
        return Axis(self.name, tuple(modes))

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
            steps = [tuple([digit * s for s in mode.stride]) for digit in range(mode.size)]
            points = [tuple(map(add, point, step)) for step in steps for point in points]
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


def axis(name: str, *modes: tuple[int, Point] | Mode) -> Axis:
    """An axis from modes or (size, strides) pairs: `axis("lane", (4, (0, 2)), (8, (1, 0)))`."""
    return Axis(name, tuple(mode if isinstance(mode, Mode) else Mode(*mode) for mode in modes))


def coalesce_modes(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    """The same digits with as few modes as possible; no mode has size one."""
    merged: list[Mode] = []
    for mode in modes:
        if mode.size == 1:
            continue
        if mode.xor and not any(mode.step):
            mode = Mode(mode.size, mode.step)  # a digit that moves nothing is written in one way
        if merged:
            last = merged[-1]
            if mode.xor or last.xor:
                if not _is_continued(last, mode):
                    merged.append(mode)
                else:
                    merged[-1] = last.moving(last.size * mode.size, last.step)
                continue
            if mode.stride == tuple([s * last.size for s in last.stride]):
                merged[-1] = Mode(last.size * mode.size, last.stride)
                continue
        merged.append(mode)
    return tuple(merged)


def _is_continued(last: Mode, mode: Mode) -> bool:
    """Whether a mode is of the kind of the one before it and begins where that one ends."""
    return last.xor == mode.xor and tuple(s * last.size for s in last.step) == mode.step


def binary_digits(mode: Mode) -> Iterator[Mode]:
    """A mode as digits of size two of its kind, fastest first; what is odd of its size comes last.

    >>> [str(digit) for digit in binary_digits(Mode(12, (3,)))]
    ['2:3', '2:6', '3:12']
    >>> [str(digit) for digit in binary_digits(XorMode(4, (5,)))]
    ['2:^5', '2:^10']
    """
    size, step = mode.size, mode.step
    while size % 2 == 0:
        yield mode.moving(2, step)
        size, step = size // 2, tuple([2 * s for s in step])
    if size > 1:
        yield mode.moving(size, step)


def needed_conditions(
    where: Iterable[Condition], sizes: Mapping[str, int]
) -> tuple[Condition, ...]:
    """The conditions that do not always hold, each once, sorted."""
    refusing = {c for c in where if not all(map(c, range(sizes[c.axis])))}
    return tuple(sorted(refusing, key=str))


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
) -> bool:
    """LayoutError unless these are the parts of a layout; whether a mode is exclusive-ored."""
    exclusive = False
    if not all(isinstance(axis, Axis) for axis in _items_of(axes)):
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
            if mode.xor:
                exclusive = True
                stride = mode.step
                if mode.size & (mode.size - 1):
                    raise LayoutError(
                        f"Mode {mode} of axis {axis.name} is exclusive-ored bit by bit; its size "
                        "must be a power of two."
                    )
            else:
                stride = mode.stride
            if len(stride) != rank:
                raise LayoutError(
                    f"Mode {mode} of axis {axis.name} has {len(stride)} strides, but the "
                    f"layout has the {rank} dimensions {', '.join(dims)}."
                )
            if stride and min(stride) < 0:
                raise LayoutError(f"Mode {mode} of axis {axis.name} has a negative stride.")
    if offset:
        if len(offset) != rank or min(offset) < 0:
            raise LayoutError(f"Offset {offset} is not {rank} non-negative numbers.")
    for condition in where:
        if condition.axis not in names:
            raise LayoutError(f"Condition {condition} names no axis of the layout.")
        if condition.divisor < 1 or not 0 <= condition.value < condition.modulus:
            raise LayoutError(f"Condition {condition} can never hold.")
    return exclusive


def _items_of(value: object) -> tuple[object, ...]:
    """The items of a tuple; one that is nothing for anything else."""
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (None,)
