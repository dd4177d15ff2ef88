"""What a layout computes: forced sums and linear bits; and the one way to write that.

With exclusive-ored modes a layout is (offset + sum of added digits) ^ (columns of the xored bits).
The same function may be written in many ways: `a [2:1] b [2:^1]` and `a [2:^1] b [2:1]` are one.
Its *kernel* depends on the function only. Cut all digits to bits (size two) and odd rests. A bit is
*linear* if setting it moves the point by ^column whatever the other digits are: every xored bit is,
and so is an added one that never carries, or always the same way. The other digits are *forced*:
odd, or carrying into each other; they must be added, from the offset on. So

    point = (offset + forced sums) ^ (columns of the linear bits)

>>> from fragir.layout.layout import Layout
>>> k = Layout.parse("row [8:^144 3:1024] col [64:2] dims (byte)").kernel
>>> k.columns("col"), [(digit.axis, digit.place, digit.size) for digit in k.forced]
(((2,), (4,), (8,), (16,), (32,), (64,)), [('row', 8, 3)])

Points are packed into one number, `width` bits a dimension, the last dimension lowest; sums of
different dimensions never meet, so one addition or exclusive or moves all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

from fragir.layout.f2 import Subspace
from fragir.layout.modes import (
    LARGEST_TABLE,
    Axis,
    LayoutError,
    Mode,
    Point,
    XorMode,
    coalesce_modes,
)


class Bit(NamedTuple):
    """A linear bit of an axis's coordinate: of value `place`, it moves the point by ^`column`."""

    axis: str
    place: int
    column: int  # packed
    size = 2


class Forced(NamedTuple):
    """A digit that must be added: odd, or a bit that carries. It steps by `stride`."""

    axis: str
    place: int
    size: int
    stride: int  # packed

    def __str__(self) -> str:
        return f"the digit of size {self.size} at place {self.place} of axis {self.axis}"


class LayoutKernel:
    """The linear bits and forced digits of a layout; without its predicate."""

    def __repr__(self) -> str:
        return f"<kernel: {len(self.bits)} linear bits, {len(self.forced)} forced digits>"

    def __init__(
        self,
        names: Sequence[str],
        rank: int,
        width: int,
        start: int,
        bits: Sequence[Bit],
        forced: Sequence[Forced],
    ) -> None:
        self.names = tuple(names)
        self.rank = rank
        self.width = width
        self.start = start  # the offset, packed
        self.bits = tuple(bits)
        self.forced = tuple(forced)

    @cached_property
    def clusters(self) -> tuple[Cluster, ...]:
        """The clusters of the offset and the forced sums."""
        return tuple(clusters_of(self.start, self.forced))

    def point(self, packed: int) -> Point:
        """The coordinates that `pack` made one number of."""
        return unpack(packed, self.rank, self.width)

    @property
    def is_linear(self) -> bool:
        """Whether all digits are linear bits and there is no offset."""
        return not self.forced and not self.start

    def columns(self, axis: str) -> tuple[Point, ...]:
        """Where each bit of an axis moves the point, lowest first.

        Raises LayoutError naming a digit that is no linear bit.
        """
        return tuple(map(self.point, self.packed_columns(axis)))

    def packed_columns(self, axis: str) -> tuple[int, ...]:
        """`columns`, each packed into one number."""
        columns, digits = self._by_axis
        if axis in digits:
            raise LayoutError(f"No linear bits: {digits[axis]} is added with carries.")
        return columns.get(axis, ())

    @cached_property
    def _by_axis(self) -> tuple[dict[str, tuple[int, ...]], dict[str, Forced]]:
        columns: dict[str, list[Bit]] = {}
        for bit in self.bits:
            columns.setdefault(bit.axis, []).append(bit)
        return (
            {
                axis: tuple(bit.column for bit in sorted(bits, key=_place))
                for axis, bits in columns.items()
            },
            {digit.axis: digit for digit in reversed(self.forced)},
        )

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """The offset plus every sum of forced digits, packed, each once."""
        if prod(len(cluster.values) for cluster in self.clusters) > LARGEST_TABLE:
            raise LayoutError(
                f"More than {LARGEST_TABLE} sums of digits that carry would be looked at."
            )
        sums = [0]
        for cluster in self.clusters:
            sums = [a + b for a in sums for b in sorted(cluster.values)]
        return tuple(sums)

    @cached_property
    def bounds(self) -> tuple[Point, Point]:
        """Per dimension the least and the largest coordinate of any point."""
        least, most = list[int](), list[int]()
        for dim in range(self.rank):
            at = (self.rank - 1 - dim) * self.width
            mask = (1 << self.width) - 1
            # Bits with no smaller combination: taken or left from the highest on.
            columns = sorted(Subspace(bit.column >> at & mask for bit in self.bits), reverse=True)
            low, high = mask, 0
            for start in {value >> at & mask for value in self.sums}:  # any order
                less = more = start
                for column in columns:
                    less, more = min(less, less ^ column), max(more, more ^ column)
                low, high = min(low, less), max(high, more)
            least.append(low)
            most.append(high)
        return tuple(least), tuple(most)

    def covers(self, shape: Point | None) -> bool:
        """Whether every point of a box is held exactly once, and nothing else is.

        The box is of this shape from zero on, or, without, what lies between `bounds`.
        """
        start, most = self.bounds
        if shape is not None and any(high >= e for high, e in zip(most, shape, strict=True)):
            return False
        if shape is not None:
            start = (0,) * self.rank
        end = shape or tuple(high + 1 for high in most)
        slots = 2 ** len(self.bits) * prod(digit.size for digit in self.forced)
        return slots == prod(e - s for s, e in zip(start, end, strict=True)) and self.is_injective

    @property
    def is_injective(self) -> bool:
        """Whether no two slots hold the same point."""
        span = Subspace(bit.column for bit in self.bits)
        count = prod(digit.size for digit in self.forced)
        return (
            len(span) == len(self.bits)
            and len(self.sums) == count
            and len({span.rest(value) for value in self.sums}) == count
        )

    @cached_property
    def canonical(self) -> tuple[Axis, ...]:
        """The axes with as much added as can be; the same for all layouts of one function.

        From the forced sums on, the linear bits are gone through by (how many bits their column
        has, the column, the name of the axis, the place). A bit is added where that is the same
        function: where its column meets nothing that is added already, or only what the sum
        absorbs. The order and what is asked are properties of the function, so the choice is too.
        """
        clusters = list(self.clusters)
        digits: dict[str, list[tuple[int, Mode]]] = {name: [] for name in self.names}
        for digit in self.forced:
            digits[digit.axis].append((digit.place, Mode(digit.size, self.point(digit.stride))))
        for bit in sorted(self.bits, key=_order):
            stride = _stride(self, clusters, bit)
            if stride is None:
                mode: Mode = XorMode(2, self.point(bit.column))
            else:
                mode = Mode(2, self.point(stride))
                if stride == bit.column != 0:  # it meets nothing
                    clusters.append(Cluster(stride, frozenset((0, stride)), ()))
                elif stride:
                    clusters = with_digit(clusters, Forced(bit.axis, bit.place, 2, stride))
            digits[bit.axis].append((bit.place, mode))
        return tuple(
            Axis(name, coalesce_modes(mode for _, mode in sorted(found, key=lambda pair: pair[0])))
            for name, found in digits.items()
        )


@lru_cache(maxsize=4096)
def kernel_of(axes: tuple[Axis, ...], origin: Point) -> LayoutKernel:
    """The kernel of a layout of these parts."""
    width = _width(axes, origin)
    start = pack(origin, width)
    chain = list[Bit | Forced]()
    for axis in axes:
        place = 1
        for mode in coalesce_modes(axis.modes):
            size, step = mode.size, pack(mode.step, width)
            while not size & 1:
                if mode.xor or not step:
                    chain.append(Bit(axis.name, place, step))
                else:
                    chain.append(Forced(axis.name, place, 2, step))
                size, step, place = size >> 1, step << 1, place << 1
            if size > 1:
                chain.append(Forced(axis.name, place, size, step))
                place *= size
    chain = _with_linear(start, chain)
    forced = [digit for digit in chain if isinstance(digit, Forced)]
    bits = [bit for bit in chain if isinstance(bit, Bit)]
    return LayoutKernel([axis.name for axis in axes], len(origin), width, start, bits, forced)


def _with_linear(start: int, chain: list[Bit | Forced]) -> list[Bit | Forced]:
    """The digits with those that are added and linear as bits."""
    added = [digit for digit in chain if isinstance(digit, Forced)]
    apart = _are_apart(start, added)
    clusters = [] if apart else clusters_of(start, added)
    found = list[Bit | Forced]()
    for digit in chain:
        if isinstance(digit, Forced) and digit.size == 2:
            column: int | None = digit.stride
            if not apart:
                column = _column(start, digit, next(c for c in clusters if digit in c.digits))
            if column is not None:
                digit = Bit(digit.axis, digit.place, column)
        found.append(digit)
    return found


def _are_apart(start: int, digits: Iterable[Forced]) -> bool:
    """Whether no two of these share bits, nor one with the offset: no sum carries."""
    seen = start
    for digit in digits:
        reached = reach(digit)
        if seen & reached:
            return False
        seen |= reached
    return True


def _column(start: int, digit: Forced, cluster: Cluster) -> int | None:
    """What adding a bit flips, if it always is the same; else None."""
    start &= cluster.mask
    column = start ^ (start + digit.stride)
    others = [other for other in cluster.digits if other is not digit]
    for other in others:  # most that carry differently show it here
        value = start + other.stride
        if value ^ (value + digit.stride) != column:
            return None
    values: Collection[int] = (start,)
    for other in others:
        values = _sums(values, multiples(other))
    return column if all(value ^ (value + digit.stride) == column for value in values) else None


# Sums of digits


class Cluster(NamedTuple):
    """Digits whose sums share bits, with all their sums; clusters have no bit in common."""

    mask: int
    values: frozenset[int]
    digits: tuple[Forced, ...]


def clusters_of(start: int, digits: Iterable[Forced]) -> list[Cluster]:
    """The clusters of an offset and added digits (those that do not move left out)."""
    clusters = [Cluster(start, frozenset((start,)), ())] if start else []
    for digit in digits:
        if digit.stride:
            clusters = with_digit(clusters, digit)
    return clusters


def with_digit(clusters: list[Cluster], digit: Forced) -> list[Cluster]:
    """The clusters with one digit more: those that it meets become one."""
    values = frozenset(multiples(digit))
    mask, digits = reach(digit), (digit,)
    while met := [cluster for cluster in clusters if cluster.mask & mask]:
        clusters = [cluster for cluster in clusters if not cluster.mask & mask]
        for cluster in met:
            values = _sums(values, cluster.values)
            digits = (*cluster.digits, *digits)
        mask = 0
        for value in sorted(values):  # sums may reach new bits, which may meet further clusters
            mask |= value
    return [*clusters, Cluster(mask, values, digits)]


def meeting(clusters: Iterable[Cluster], mask: int) -> Iterable[int]:
    """The sums of those clusters that share bits with a mask."""
    values = frozenset((0,))
    for cluster in clusters:
        if cluster.mask & mask:
            values = _sums(values, cluster.values)
    return values


def _sums(first: Collection[int], second: Collection[int]) -> frozenset[int]:
    """All sums of two; LayoutError where they are too many to look at."""
    if len(first) * len(second) > 4 * LARGEST_TABLE:
        _check_size(range(len(first) * len(second)))
    sums = frozenset([a + b for a in first for b in second])
    _check_size(sums)
    return sums


def multiples(digit: Forced) -> Sequence[int]:
    """How far the digit moves for each of its values."""
    _check_size(range(min(digit.size, LARGEST_TABLE + 1)))
    return range(0, digit.size * digit.stride, digit.stride) if digit.stride else (0,)


def reach(digit: Forced) -> int:
    """The bits that a digit alone can set."""
    if digit.size == 2:
        return digit.stride
    if not digit.stride & (digit.stride - 1):
        return ((1 << (digit.size - 1).bit_length()) - 1) * digit.stride
    reached = 0
    for value in multiples(digit):
        reached |= value
    return reached


def _check_size(values: Collection[int]) -> None:
    if len(values) > LARGEST_TABLE:
        raise LayoutError(
            f"More than {LARGEST_TABLE} sums of digits that carry would be looked at."
        )


def _order(bit: Bit) -> tuple[int, int, str, int]:
    return bit.column.bit_count(), bit.column, bit.axis, bit.place


def _place(bit: Bit) -> int:
    return bit.place


def _stride(k: LayoutKernel, clusters: list[Cluster], bit: Bit) -> int | None:
    """By how much the bit may be added to these sums with the same effect; None if it may not."""
    column = bit.column
    met = 0
    for cluster in clusters:
        met |= cluster.mask & column
    if not met:
        return column
    if not column & k.start:
        return None
    moved = k.start ^ column
    steps = [b - a for a, b in zip(k.point(k.start), k.point(moved), strict=True)]
    if min(steps) < 0:
        return None
    stride = moved - k.start
    values = meeting(clusters, column | stride)
    return stride if all(value + stride == value ^ column for value in values) else None


# Points as one number


def pack(point: Point, width: int) -> int:
    """The coordinates as one number, `width` bits each, the last lowest."""
    packed = 0
    for value in point:
        packed = packed << width | value
    return packed


def unpack(packed: int, rank: int, width: int) -> Point:
    """The coordinates that `pack` made one number of."""
    if rank == 1:
        return (packed,)
    mask = (1 << width) - 1
    return tuple(packed >> (rank - 1 - dim) * width & mask for dim in range(rank))


def _width(axes: tuple[Axis, ...], origin: Point) -> int:
    """Bits that hold every sum and every column of a coordinate."""
    sums = list(origin)
    flips = 0
    for axis in axes:
        for mode in axis.modes:
            for dim, step in enumerate(mode.step):
                if mode.xor:
                    flips |= step * mode.size >> 1
                else:
                    sums[dim] += step * (mode.size - 1)
    return max(max(sums, default=0).bit_length(), flips.bit_length(), 1)
