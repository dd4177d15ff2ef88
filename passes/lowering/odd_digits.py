"""Digits of a layout that are no fields of bits: of odd size, at an odd place, by an odd step."""

from __future__ import annotations

from typing import NamedTuple


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
