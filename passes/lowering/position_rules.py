"""A layout with one dimension, taken apart so that it can be evaluated: see `positions`.

Each axis's digits become fields of bits by how far they are shifted, where they are such fields;
which bits sums may set is known, so that what flips nothing else may be added instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fragir.errors import FragirError
from fragir.layout import Layout

if TYPE_CHECKING:
    from fragir.passes.lowering.odd_digits import AddedDigit, FlippedDigit


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
            adds += shifted(coordinate & bits, shift)
        for digit in self.digits:
            adds += digit.of(coordinate)
        for shift, bits in self.flipped.items():
            flips ^= shifted(coordinate & bits, shift)
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
            adds |= self.sums.reach(shifted(mask & bits, shift))
        for digit in axis.digits:
            if mask >= digit.place:
                adds |= digit.reach
        for shift, bits in axis.flipped.items():
            flips |= shifted(mask & bits, shift)
        for flipped in axis.flipped_digits:
            if mask >= flipped.place:
                for shift in flipped.shifts:
                    flips |= ((1 << (flipped.size - 1).bit_length()) - 1) << shift
        return adds, flips


@lru_cache(maxsize=4096)
def position_rule(layout: Layout) -> PositionRule:
    """How to evaluate a layout with one dimension. FragirError where it has a predicate."""
    return PositionRule(layout)


def shifted(number: int, shift: int) -> int:
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
            self._meet(_between(stride, largest), largest, carries=True)

    def _meet(self, bits: int, largest: int, carries: bool) -> None:
        while met := [group for group in self._groups if group[0] & bits]:
            self._groups = [group for group in self._groups if not group[0] & bits]
            largest += sum(group[1] for group in met)
            for group in met:
                bits |= group[0]
            bits, carries = _between(bits, largest), True
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


def _between(lowest: int, largest: int) -> int:
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
                from fragir.passes.lowering.odd_digits import FlippedDigit  # few layouts have any

                flipped_digits.append(FlippedDigit(place, mode.size, tuple(places)))
        elif step and is_power(place) and is_power(step) and (is_top or is_power(mode.size)):
            shift = step.bit_length() - place.bit_length()
            added[shift] = added.get(shift, 0) | field
        elif step:
            reach = sums.reach(_between(step, (mode.size - 1) * step))
            from fragir.passes.lowering.odd_digits import AddedDigit  # few layouts have any

            digits.append(AddedDigit(place, mode.size, step, is_top, reach))
        place *= mode.size
    return AxisRule(bits, top, added, flipped, tuple(digits), tuple(flipped_digits))


def _join(axes: list[AxisRule], sums: _Sums) -> None:
    """Adds the flipped fields that meet nothing else: they go with added ones shifted as far."""
    once, twice = sums.bits, 0
    for axis in axes:
        fields = [shifted(bits, shift) for shift, bits in axis.flipped.items()]
        for digit in axis.flipped_digits:
            fields += [((1 << (digit.size - 1).bit_length()) - 1) << i for i in digit.shifts]
        for field in fields:
            twice |= once & field
            once |= field
    for axis in axes:
        for shift, bits in list(axis.flipped.items()):
            if not shifted(bits, shift) & twice:
                del axis.flipped[shift]
                axis.added[shift] = axis.added.get(shift, 0) | bits
