"""A register layout as three matrices over F2: what the bits of element, lane and warp move.

Where a tile's extents are no powers of two (a wgmma of 96 columns), digits of odd size that both
layouts keep in registers alike are split off: what is left is a conversion over F2 that is done
once for each of their values, with other registers.

>>> from fragir.layout.layout import Layout
>>> rows = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 3:(0,8)]")
>>> pair = pair_of(rows, rows, 32)
>>> pair.source.element, pair.source.lane, pair.target_words
((1,), (2, 4, 8, 16, 32), ((0, 1), (2, 3), (4, 5)))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2, prod

from fragir.layout.combine import permuted
from fragir.layout.exclusive import LayoutKernel
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, Axis, LayoutError, Mode, Point, binary_digits, coalesce_modes

LANE_BITS = 5
AXES = ("element", "lane", "warp")


@dataclass(frozen=True, slots=True)
class RegisterColumns:
    """For every bit of element, lane and warp, lowest first, the packed point that it moves by.

    Moves are added without carry. A column of zero is replication.
    """

    element: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns, element bits lowest."""
        return self.element + self.lane + self.warp

    def by_halves(self) -> RegisterColumns:
        """Elements of 64 bits as two words each, of which the lower comes first."""
        element, lane, warp = (
            tuple(column << 1 for column in columns)
            for columns in (self.element, self.lane, self.warp)
        )
        return RegisterColumns((1, *element), lane, warp)


Words = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LayoutPair:
    """Two layouts of one tile over F2, of elements of `bits` (8, 16, 32 or 64).

    The conversion is done once for each of `source_words`: they are the 32-bit words of the whole
    fragment that are the words of `source`, and `target_words` those that become `target`'s.
    """

    source: RegisterColumns
    target: RegisterColumns
    bits: int
    source_words: Words
    target_words: Words

    def __repr__(self) -> str:
        sizes = [1 << len(side.element) for side in (self.source, self.target)]
        return f"<{sizes[0]} elements of {self.bits} bits to {sizes[1]}, {self.times} times>"

    @property
    def times(self) -> int:
        """How often the conversion is done, each time with other words."""
        return len(self.source_words)


@lru_cache(maxsize=512)
def pair_of(source: Layout, target: Layout, bits: int) -> LayoutPair | None:
    """Both layouts over F2; None where they cannot be said so.

    They have the axes element, lane (32, or all threads) and warp. Elements of less than a byte
    are taken by bytes where both sides keep the same ones together.
    """
    if source.where or source.origin != target.origin or set(source.dims) != set(target.dims):
        return None
    if _threads(source) != _threads(target):
        return None
    source, target = (replace(side, where=()) if side.where else side for side in (source, target))
    try:
        if target.dims != source.dims:
            target = permuted(target, source.dims)
        if _has_odd_digits(source) or _has_odd_digits(target):
            source, target = (replace(side, offset=()) for side in (source, target))
            return _split_pair(source, target, bits)
        return _pair(*_registers(source, target), bits)
    except LayoutError:
        return None


def _threads(layout: Layout) -> int:
    return prod(layout.size(name) for name in ("lane", "warp") if name in layout.names)


def words_of(elements: int, bits: int) -> int:
    """32-bit words of so many elements."""
    return -(-elements * bits // 32)


def _pair(source: RegisterColumns, target: RegisterColumns, bits: int) -> LayoutPair | None:
    """Whole fragments; less than a byte only where bytes stay together."""
    while bits < 8:
        low = source.element[:1]
        others = (source.columns[1:], target.columns[1:])
        if not low or low != target.element[:1] or any(c & low[0] for side in others for c in side):
            return None
        source, target = (replace(side, element=side.element[1:]) for side in (source, target))
        bits *= 2
    if bits not in (8, 16, 32, 64):
        return None
    counts = (words_of(1 << len(side.element), bits) for side in (source, target))
    source_words, target_words = ((tuple(range(count)),) for count in counts)
    return LayoutPair(source, target, bits, source_words, target_words)


def _registers(source: Layout, target: Layout) -> tuple[RegisterColumns, RegisterColumns]:
    """The columns of both; LayoutError where digits carry, or an axis is none of a register's."""
    kernels = source.kernel, target.kernel
    for side in (source, target):
        for name in side.names:
            if name not in AXES:
                raise LayoutError(f"A register layout has no axis {name}.")
    shapes = zip(source.shape, target.shape, strict=True)
    widths = [(max(extents) - 1).bit_length() for extents in shapes]
    first, second = (_packed_columns(kernel, widths) for kernel in kernels)
    return first, second


def _packed_columns(kernel: LayoutKernel, widths: Sequence[int]) -> RegisterColumns:
    element, lane, warp = (
        [_point(column, widths) for column in kernel.columns(axis)] for axis in AXES
    )
    threads = lane + warp
    if len(lane) < LANE_BITS:
        raise LayoutError(f"A warp has {WARP} lanes.")
    return RegisterColumns(tuple(element), tuple(threads[:LANE_BITS]), tuple(threads[LANE_BITS:]))


def _point(column: Point, widths: Sequence[int]) -> int:
    packed = 0
    for value, width in zip(column, widths, strict=True):
        packed = packed << width | value
    return packed


# --- digits of odd size --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Odd:
    """A digit of odd size along one dimension, in registers."""

    dim: int
    stride: int
    size: int


def _has_odd_digits(layout: Layout) -> bool:
    return any(mode.size & (mode.size - 1) for axis in layout.axes for mode in axis.modes)


def _split_pair(source: Layout, target: Layout, bits: int) -> LayoutPair | None:
    inside = max(0, int(log2(32 // bits))) if bits < 32 else 0
    ordered = [_in_order(side, inside) for side in (source, target)]
    if None in ordered:
        return None
    virtual = [side for side in ordered if side is not None]
    odds = [_odds(side) for side in virtual]
    if odds[0] is None or odds[0] != odds[1]:
        return None
    odd = sorted(odds[0], key=lambda digit: (digit.dim, digit.stride))
    stripped = [_without_odd_digits(side, odd) for side in virtual]
    if None in stripped:
        return None
    even = [side for side in stripped if side is not None]
    pair = _pair(*_registers(*even), bits)
    if pair is None or pair.bits != bits:
        return None
    words = [
        _words(real, side, odd, bits) for real, side in zip((source, target), virtual, strict=True)
    ]
    if words[0] is None or words[1] is None:
        return None
    return replace(pair, source_words=words[0], target_words=words[1])


def _in_order(layout: Layout, inside: int) -> Layout | None:
    """The layout with its registers counted finest first along each dimension.

    The lowest `inside` bits, which lie in one word, stay where they are. Runs of digits are merged,
    then their even part comes first. None where registers are replicated or words are no bits.
    """
    if "element" not in layout.names:
        return layout
    digits: list[Mode] = []
    for mode in coalesce_modes(layout.axis("element").modes):
        digits += binary_digits(mode)
    low, rest = digits[:inside], digits[inside:]
    if any(mode.size != 2 for mode in low) or not all(any(m.stride) for m in digits):
        return None
    if any(sum(map(bool, m.stride)) > 1 for m in rest):
        return None
    runs = coalesce_modes(sorted(rest, key=lambda m: tuple(reversed(m.stride))))
    fine = [digit for run in runs for digit in binary_digits(run)]
    fine.sort(key=lambda m: m.size != 2)  # those over F2 first
    axes = [
        replace(axis, modes=(*low, *fine)) if axis.name == "element" else axis
        for axis in layout.axes
    ]
    return replace(layout, axes=tuple(axes))


def _odds(layout: Layout) -> set[_Odd] | None:
    """The odd digits of the registers; None where lanes or warps have such."""
    found: set[_Odd] = set()
    for axis in layout.axes:
        for mode in coalesce_modes(axis.modes):
            for digit in binary_digits(mode):
                if digit.size == 2:
                    continue
                if axis.name != "element":
                    return None
                dim = next(d for d, stride in enumerate(digit.stride) if stride)
                found.add(_Odd(dim, digit.stride[dim], digit.size))
    return found


def _without_odd_digits(layout: Layout, odd: Sequence[_Odd]) -> Layout | None:
    """The layout without its odd digits, each dimension cut where they are.

    None where a digit would carry into an odd one.
    """
    axes: list[Axis] = []
    names: tuple[str, ...] = ()
    for axis in layout.axes:
        modes: list[Mode] = []
        for mode in (digit for m in coalesce_modes(axis.modes) for digit in binary_digits(m)):
            if mode.size != 2:
                continue
            strides: list[int] = []
            for dim, stride in enumerate(mode.stride):
                parts = _cut_lengths(stride, [digit for digit in odd if digit.dim == dim])
                if parts is None:
                    return None
                strides += parts
            modes.append(Mode(2, tuple(strides)))
        axes.append(Axis(axis.name, tuple(modes)))
    for dim, name in enumerate(layout.dims):
        cuts = sum(digit.dim == dim for digit in odd)
        names += tuple(f"{name}{part}" for part in range(cuts + 1))
    return Layout(tuple(axes), names)


def _cut_lengths(stride: int, odd: Iterable[_Odd]) -> list[int] | None:
    """A stride counted below, between and above the odd digits of its dimension."""
    parts: list[int] = []
    start = 1  # what one step of the current part is
    for digit in odd:
        whole = digit.stride * digit.size
        inside = 0 < stride < digit.stride
        if stride % start or (not inside and stride % whole):
            return None
        parts.append(stride // start if inside else 0)
        stride = 0 if inside else stride
        start = whole
    return [*parts, stride // start] if stride % start == 0 else None


def _words(real: Layout, virtual: Layout, odd: Sequence[_Odd], bits: int) -> Words | None:
    """The words of the fragment for each value of the odd digits, in the order of the rest."""
    if "element" not in real.names:
        return None
    rank = real.rank
    at = {point: place for place, point in enumerate(real.axis("element").points(rank))}
    kept = [m for m in virtual.axis("element").modes if m.size == 2]
    base = Axis("element", tuple(kept)).points(rank)
    outer = Axis(
        "odd",
        tuple(
            Mode(digit.size, tuple(digit.stride * (d == digit.dim) for d in range(rank)))
            for digit in odd
        ),
    ).points(rank)
    per = max(1, 32 // bits)
    found: list[tuple[int, ...]] = []
    for start in outer:
        elements = [at[tuple(a + b for a, b in zip(start, p, strict=True))] for p in base]
        words: list[int] = []
        for first in range(0, len(elements), per):
            group = elements[first : first + per]
            if group[0] % per or group != list(range(group[0], group[0] + per)):
                return None
            words += [group[0] * bits // 32 + part for part in range(max(1, bits // 32))]
        found.append(tuple(words))
    assert prod(m.size for m in real.axis("element").modes) == len(outer) * len(base)
    return tuple(found)
