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
from functools import lru_cache
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.passes.lowering.arithmetic import Arithmetic, Value

# -- odd digits ------------------------------------------------------------------------------------
# Digits of a layout that are no fields of bits: of odd size, at an odd place, by an odd step.


class AddedDigit(NamedTuple):
    """A digit that is more than a field of bits: (coordinate / place % size) * stride.

    The top digit of an axis has no remainder. `reach` has the bits that sums with it may set.
    """

    place: int
    size: int
    stride: int
    is_top: bool
    reach: int

    def of(self, coordinate: int) -> int:
        """What it adds for a known coordinate."""
        digit = coordinate // self.place
        return (digit if self.is_top else digit % self.size) * self.stride


class FlippedDigit(NamedTuple):
    """A digit above one of odd size, flipped: its value at every one of the shifts."""

    place: int
    size: int
    shifts: tuple[int, ...]

    def of(self, coordinate: int) -> int:
        """What it flips for a known coordinate."""
        digit, flips = coordinate // self.place % self.size, 0
        for shift in self.shifts:
            flips ^= digit << shift
        return flips


# -- position rules --------------------------------------------------------------------------------
# A layout with one dimension, taken apart so that it can be evaluated: see `positions`.
#
# Each axis's digits become fields of bits by how far they are shifted, where they are such fields;
# which bits sums may set is known, so that what flips nothing else may be added instead.


class AxisRule(NamedTuple):
    """How one coordinate moves the position; fields of bits by how far they are shifted."""

    bits: int  # all that a coordinate inside the axis may have
    top: int  # multiples of it and what is below may be taken apart; 0: nothing may
    added: dict[int, int]  # shift -> bits
    flipped: dict[int, int]
    digits: tuple[AddedDigit, ...]
    flipped_digits: tuple[FlippedDigit, ...]

    def constant(self, coordinate: int) -> tuple[int, int]:
        """What a known coordinate adds, and what it flips."""
        adds = flips = 0
        for shift, bits in self.added.items():
            adds += shift_number(coordinate & bits, shift)
        for digit in self.digits:
            adds += digit.of(coordinate)
        for shift, bits in self.flipped.items():
            flips ^= shift_number(coordinate & bits, shift)
        for flipped in self.flipped_digits:
            flips ^= flipped.of(coordinate)
        return adds, flips

    def are_apart(self, masks: Sequence[int], constant: int) -> bool:
        """Whether the digits of a sum are the sums of the digits of values and a constant."""
        if constant < 0:
            return False
        if len(masks) + (constant != 0) <= 1:
            return True
        if not self.top:
            return False
        below = self.top - 1
        seen = constant & below
        for mask in masks:
            if seen & mask & below:
                return False
            seen |= mask
        return True


class PositionRule:
    """A layout with one dimension, ready to be evaluated."""

    def __init__(self, layout: Layout):
        layout = layout.simplified()
        if layout.rank != 1 or layout.where:
            raise FragirError(f"{layout} does not give every element one place")
        self.start = layout.origin[0]
        sums = _Sums(self.start)
        for axis in layout.axes:
            for mode in axis.modes:
                if not mode.xor:
                    sums.add(mode.size, mode.stride[0])
        axes = [_axis_rule(layout, number, sums) for number in range(len(layout.axes))]
        if layout.exclusive:
            _join(axes, sums)
        self.axes = tuple(axes)
        self.sums = sums
        self._reached: dict[tuple[int, int], tuple[int, int]] = {}
        self.is_plain = not any(axis.flipped or axis.flipped_digits for axis in axes)

    def reach(self, number: int, mask: int) -> tuple[int, int]:
        """The bits that an axis's coordinate with these bits may set by adding, and by flipping."""
        found = self._reached.get((number, mask))
        if found is None:
            found = self._reached[number, mask] = self._reach(number, mask)
        return found

    def _reach(self, number: int, mask: int) -> tuple[int, int]:
        axis = self.axes[number]
        adds = flips = 0
        for shift, bits in axis.added.items():
            adds |= self.sums.reach(shift_number(mask & bits, shift))
        for digit in axis.digits:
            if mask >= digit.place:
                adds |= digit.reach
        for shift, bits in axis.flipped.items():
            flips |= shift_number(mask & bits, shift)
        for flipped in axis.flipped_digits:
            if mask >= flipped.place:
                for shift in flipped.shifts:
                    flips |= ((1 << (flipped.size - 1).bit_length()) - 1) << shift
        return adds, flips


@lru_cache(maxsize=4096)
def position_rule(layout: Layout) -> PositionRule:
    """How to evaluate a layout with one dimension. FragirError where it has a predicate."""
    return PositionRule(layout)


def shift_number(number: int, shift: int) -> int:
    """number * 2^shift, rounded down."""
    return number << shift if shift >= 0 else number >> -shift


class _Sums:
    """Which bits sums of digits may set: digits that share bits may carry into each other."""

    def __init__(self, start: int):
        self._groups: list[tuple[int, int]] = []  # bits, the largest sum
        self._carrying: list[int] = []
        if start:
            self._meet(start, start, carries=False)

    def add(self, size: int, stride: int) -> None:
        """One digit more."""
        if stride == 0 or size == 1:
            return
        largest = (size - 1) * stride
        if is_power(size) and is_power(stride):
            self._meet(largest, largest, carries=False)
        else:
            self._meet(_bits_between(stride, largest), largest, carries=True)

    def _meet(self, bits: int, largest: int, carries: bool) -> None:
        while met := [group for group in self._groups if group[0] & bits]:
            self._groups = [group for group in self._groups if not group[0] & bits]
            largest += sum(group[1] for group in met)
            for group in met:
                bits |= group[0]
            bits, carries = _bits_between(bits, largest), True
        self._groups.append((bits, largest))
        if carries:
            self._carrying = [group for group in self._carrying if not group & bits]
            self._carrying.append(bits)

    @property
    def bits(self) -> int:
        """All bits that sums may set."""
        found = 0
        for bits, _ in self._groups:
            found |= bits
        return found

    def reach(self, bits: int) -> int:
        """The bits that sums with a digit that has these bits may set."""
        for group in self._carrying:
            if group & bits:
                bits |= group
        return bits


def _bits_between(lowest: int, largest: int) -> int:
    """All bits from the lowest of one number to the highest of another."""
    return (1 << largest.bit_length()) - (lowest & -lowest)


def is_power(number: int) -> bool:
    """Whether a positive number is a power of two."""
    return number & (number - 1) == 0


def _axis_rule(layout: Layout, number: int, sums: _Sums) -> AxisRule:
    modes, extent = layout.axes[number].modes, layout.axes[number].size
    bits = (1 << (extent - 1).bit_length()) - 1
    top, place = bits + 1, 1
    added: dict[int, int] = {}
    flipped: dict[int, int] = {}
    digits: list[AddedDigit] = []
    flipped_digits: list[FlippedDigit] = []
    for index, mode in enumerate(modes):
        is_top = index == len(modes) - 1
        (step,) = mode.step
        if is_top and not mode.xor:
            top = place
        if not is_power(place) or (mode.size != 1 and not is_top and not is_power(mode.size)):
            top = 0
        field = bits & ~(place - 1) if is_top else (mode.size - 1) * place
        if mode.xor:
            places = [i for i in range(step.bit_length()) if step >> i & 1]
            if is_power(place):
                for i in places:
                    shift = i - place.bit_length() + 1
                    flipped[shift] = flipped.get(shift, 0) | field
            else:
                flipped_digits.append(FlippedDigit(place, mode.size, tuple(places)))
        elif step and is_power(place) and is_power(step) and (is_top or is_power(mode.size)):
            shift = step.bit_length() - place.bit_length()
            added[shift] = added.get(shift, 0) | field
        elif step:
            reach = sums.reach(_bits_between(step, (mode.size - 1) * step))

            digits.append(AddedDigit(place, mode.size, step, is_top, reach))
        place *= mode.size
    return AxisRule(bits, top, added, flipped, tuple(digits), tuple(flipped_digits))


def _join(axes: list[AxisRule], sums: _Sums) -> None:
    """Adds the flipped fields that meet nothing else: they go with added ones shifted as far."""
    once, twice = sums.bits, 0
    for axis in axes:
        fields = [shift_number(bits, shift) for shift, bits in axis.flipped.items()]
        for digit in axis.flipped_digits:
            fields += [((1 << (digit.size - 1).bit_length()) - 1) << i for i in digit.shifts]
        for field in fields:
            twice |= once & field
            once |= field
    for axis in axes:
        for shift, bits in list(axis.flipped.items()):
            if not shift_number(bits, shift) & twice:
                del axis.flipped[shift]
                axis.added[shift] = axis.added.get(shift, 0) | bits


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
        return Position(tuple(_plain_terms(ar, rule, pieces, masks_first)), adds, touched)
    above = 1 << (flipped | flips).bit_length()  # sums of its multiples change nothing below
    key = rule, above, tuple(pieces)
    moved = None if known is None else known.get(key)
    if moved is None:
        moved = _moved_position(ar, rule, pieces, above, masks_first)
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


def _moved_position(
    ar: Arithmetic, rule: PositionRule, pieces: Sequence[_Known], above: int, masks_first: bool
) -> Moved:
    """The values that are added, those that flip bits of the sum, and those added after that."""
    total: Value = 0
    outer: list[Value] = []
    late: list[Value] = []
    for piece in pieces:
        for reach, value in _added_terms(ar, rule, piece, masks_first):
            if piece.depth > pieces[0].depth and not reach & (above - 1):
                outer.append(value)
            else:
                total = ar.add(total, value)
        late += _flipping_terms(ar, rule.axes[piece.axis], piece)
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


def _plain_terms(
    ar: Arithmetic, rule: PositionRule, pieces: Sequence[_Known], masks_first: bool
) -> Iterator[Value]:
    """One term for every depth of loops."""
    position, depth = 0, None
    for piece in pieces:
        if piece.depth != depth and depth is not None:
            yield position
            position = 0
        depth = piece.depth
        for _, value in _added_terms(ar, rule, piece, masks_first):
            position = ar.add(position, value)
    yield position


def _added_terms(
    ar: Arithmetic, rule: PositionRule, piece: _Known, masks_first: bool
) -> Iterator[tuple[int, Value]]:
    """What a value adds, each with the bits it may set."""
    axis, (_, _, value, mask) = rule.axes[piece.axis], piece
    for shift, bits in axis.added.items():
        if mask & bits:
            reach = rule.sums.reach(shift_number(mask & bits, shift))
            first = masks_first and bits & 1
            yield reach, (_mask_bits if first else _field)(ar, value, mask, bits, shift)
    for digit in axis.digits:
        if mask < digit.place:
            continue
        moved = ar.div(value, digit.place)
        if not digit.is_top and mask >= digit.place * digit.size:
            moved = ar.rem(moved, digit.size)
        yield digit.reach, ar.mul(moved, digit.stride)


def _flipping_terms(ar: Arithmetic, axis: AxisRule, piece: _Known) -> Iterator[Value]:
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


def _mask_bits(ar: Arithmetic, value: Value, mask: int, bits: int, shift: int) -> Value:
    """Some bits of a value from the lowest on, shifted after that."""
    return ar.mul(ar.and_(value, bits) if mask & ~bits else value, 1 << shift)


def _field(ar: Arithmetic, value: Value, mask: int, bits: int, shift: int) -> Value:
    """Some bits of a value, shifted before that."""
    value = ar.mul(value, 1 << shift) if shift >= 0 else ar.div(value, 1 << -shift)
    kept = shift_number(bits, shift)
    return ar.and_(value, kept) if shift_number(mask & ~bits, shift) else value
