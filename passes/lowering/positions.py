"""Where a layout puts something, as index arithmetic: addresses in memory, coordinates of lanes.

A layout with one dimension is a sum of digits, some of whose bits are flipped:

    position = (start + added digits) ^ flipped bits

Here it is formed for coordinates known in part: values of lanes, warps and loops, of which it is
known which bits may be set, and constants. The layout's simplified form is cut up by how far
each bit of a coordinate is shifted, so that bits that go equally far cost one shift and one mask:
the rows of a 128-byte swizzle, `row [8:^144 8:1024]`, are (row << 7) ^ (row << 4 & 0x70).

Constants go into the immediate of an access as far as may be: added digits of a constant and of
values are apart where their bits are, and a constant flips apart from values in any case. So

    position = (values + low) ^ flips of values ^ flips of constants  +  high

with `high` above all bits that are flipped; bits of low and of the constants' flips that nothing
else touches are immediate too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.position_rules import AxisRule, PositionRule, shifted


class LaneOffset(NamedTuple):
    """Part of a coordinate that comes from lane, warp or thread: a value and its possible bits.

    `mask` has every bit that may be set; None where sums may carry, so that nothing is known.
    """

    value: Value
    mask: int | None


NOWHERE = LaneOffset(0, 0)

Moved = tuple[Value, list[Value], list[Value]]
KnownMoves = dict[object, Moved]


class Position(NamedTuple):
    """The sum of `terms`, which are formed at different depths of loops, and a constant.

    `mask` has every bit that the sum of the terms may set.
    """

    terms: tuple[Value, ...]
    immediate: int
    mask: int


def position(
    ar: Arithmetic,
    rule: PositionRule,
    lanes: Sequence[LaneOffset],
    at: Sequence[Value],
    constants: Sequence[int],
    *,
    masks_first: bool = False,
    known: KnownMoves | None = None,
) -> Position:
    """The position of the coordinates lanes + at + constants, one of each for every axis.

    `masks_first`: bits that are added are masked before they are shifted, which is better where
    other positions have the same bits with another shift; else a mask and what is added or flipped
    next are one LOP3. `known` keeps what values move, for positions that differ in constants.
    """
    adds, flips = rule.start, 0
    pieces: list[_Known] = []
    for number, axis in enumerate(rule.axes):
        parts, constant = _parts(ar, axis, lanes[number], at[number], constants[number])
        more, flipped = axis.constant(constant)
        adds, flips = adds + more, flips ^ flipped
        pieces += [_Known(ar.depth(value), number, value, mask) for value, mask in parts]
    pieces.sort(key=_depth)
    touched = flipped = 0
    for piece in pieces:
        more, flip = rule.reach(piece.axis, piece.mask)
        touched, flipped = touched | more, flipped | flip
    if rule.is_plain:
        return Position(tuple(_plain(ar, rule, pieces, masks_first)), adds, touched)
    above = 1 << (flipped | flips).bit_length()  # sums of its multiples change nothing below
    key = rule, above, tuple(pieces)
    moved = None if known is None else known.get(key)
    if moved is None:
        moved = _moved(ar, rule, pieces, above, masks_first)
        if known is not None:
            known[key] = moved
    total, late, outer = moved
    low = adds & (above - 1)
    immediate = adds - low
    if touched & low:
        total = ar.add(total, low)
        touched = (1 << (touched + low).bit_length()) - 1 | flips
    else:
        flips ^= low
        immediate += flips & ~(touched | flipped)
        flips &= touched | flipped
    for value in late:
        total = ar.xor(total, value)
    return Position((ar.xor(total, flips), *outer), immediate, touched | flipped)


def _moved(
    ar: Arithmetic, rule: PositionRule, pieces: Sequence[_Known], above: int, masks_first: bool
) -> Moved:
    """The values that are added, those that flip bits of the sum, and those added after that."""
    total: Value = 0
    outer: list[Value] = []
    late: list[Value] = []
    for piece in pieces:
        for reach, value in _added(ar, rule, piece, masks_first):
            if piece.depth > pieces[0].depth and not reach & (above - 1):
                outer.append(value)
            else:
                total = ar.add(total, value)
        late += _flipped(ar, rule.axes[piece.axis], piece)
    return total, late, outer


class _Known(NamedTuple):
    """A value that is part of an axis's coordinate, with its possible bits."""

    depth: int
    axis: int
    value: Value
    mask: int


def _depth(piece: _Known) -> int:
    return piece.depth


def _parts(
    ar: Arithmetic, axis: AxisRule, lane: LaneOffset, at: Value, constant: int
) -> tuple[list[tuple[Value, int]], int]:
    """The values and the constant of one coordinate, such that each may be evaluated apart."""
    given: list[tuple[Value, int]] = []
    if isinstance(lane.value, int):
        constant += lane.value
    else:
        given.append((lane.value, axis.bits if lane.mask is None else lane.mask & axis.bits))
    if isinstance(at, int):
        constant += at
    else:
        divisor = ar.divisor(at)
        given.append((at, axis.bits & ~((divisor & -divisor) - 1)))
    if axis.are_apart([mask for _, mask in given], constant):
        return given, constant
    return [(ar.total([*(value for value, _ in given), constant]), axis.bits)], 0


def _plain(
    ar: Arithmetic, rule: PositionRule, pieces: Sequence[_Known], masks_first: bool
) -> Iterator[Value]:
    """One term for every depth of loops."""
    position, depth = 0, None
    for piece in pieces:
        if piece.depth != depth and depth is not None:
            yield position
            position = 0
        depth = piece.depth
        for _, value in _added(ar, rule, piece, masks_first):
            position = ar.add(position, value)
    yield position


def _added(
    ar: Arithmetic, rule: PositionRule, piece: _Known, masks_first: bool
) -> Iterator[tuple[int, Value]]:
    """What a value adds, each with the bits it may set."""
    axis, (_, _, value, mask) = rule.axes[piece.axis], piece
    for shift, bits in axis.added.items():
        if mask & bits:
            reach = rule.sums.reach(shifted(mask & bits, shift))
            first = masks_first and bits & 1
            yield reach, (_masked if first else _field)(ar, value, mask, bits, shift)
    for digit in axis.digits:
        if mask < digit.place:
            continue
        moved = ar.div(value, digit.place)
        if not digit.is_top and mask >= digit.place * digit.size:
            moved = ar.rem(moved, digit.size)
        yield digit.reach, ar.mul(moved, digit.stride)


def _flipped(ar: Arithmetic, axis: AxisRule, piece: _Known) -> Iterator[Value]:
    """What a value flips."""
    _, _, value, mask = piece
    for shift, bits in axis.flipped.items():
        if mask & bits:
            yield _field(ar, value, mask, bits, shift)
    for digit in axis.flipped_digits:
        if mask >= digit.place:
            moved = ar.rem(ar.div(value, digit.place), digit.size)
            for shift in digit.shifts:
                yield ar.mul(moved, 1 << shift)


def _masked(ar: Arithmetic, value: Value, mask: int, bits: int, shift: int) -> Value:
    """Some bits of a value from the lowest on, shifted after that."""
    return ar.mul(ar.and_(value, bits) if mask & ~bits else value, 1 << shift)


def _field(ar: Arithmetic, value: Value, mask: int, bits: int, shift: int) -> Value:
    """Some bits of a value, shifted before that."""
    value = ar.mul(value, 1 << shift) if shift >= 0 else ar.div(value, 1 << -shift)
    kept = shifted(bits, shift)
    return ar.and_(value, kept) if shifted(mask & ~bits, shift) else value
