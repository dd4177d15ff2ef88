"""The order in which elements along a dimension lie over registers, lanes and warps.

What comes before an element in a row is found digit by digit, the fastest first: what its register
holds before it, what lanes before it hold, what warps before it hold.

>>> from fragir.layout.layout import Layout
>>> for run in runs(Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]"), "col"):
...     print(run)
DigitRun(axis='element', low=1, size=2, digits=(HardwareDigit(weight=1, size=2),))
DigitRun(axis='lane', low=2, size=4, digits=(HardwareDigit(weight=1, size=4),))
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from fragir.layout.arguments import takes
from fragir.layout.layout import Layout

LANE = "lane"


class HardwareDigit(NamedTuple):
    """A digit of a register's, lane's or warp's number: `number // weight % size`."""

    weight: int
    size: int


class DigitRun(NamedTuple):
    """Neighbouring digits of a place along a dimension that belong to one axis of the hardware."""

    axis: str
    low: int
    """How far the fastest digit moves."""
    size: int
    """How many places: from one to the next it is `low`."""
    digits: tuple[HardwareDigit, ...]
    """The fastest first."""

    @property
    def high(self) -> int:
        """How far the digit behind these moves."""
        return self.low * self.size


@takes(Layout)
def runs(layout: Layout, dim: str) -> tuple[DigitRun, ...] | None:
    """The digits of a place along a dimension, the fastest first.

    None where places are no sum of such digits: where one moves along another dimension too, under
    a predicate, with an offset, and where lanes have digits that are no powers of two.
    """
    at = layout.dims.index(dim)
    if layout.where or (layout.offset and layout.offset[at]):
        return None
    found: list[tuple[int, str, HardwareDigit]] = []
    for axis in layout.axes:
        weight = 1
        for mode in axis.modes:
            step = mode.step[at]
            if step and mode.size > 1:
                if sum(map(bool, mode.step)) > 1:
                    return None
                if axis.name == LANE and mode.size & (mode.size - 1):
                    return None
                found.append((step, axis.name, HardwareDigit(weight, mode.size)))
            weight *= mode.size
    found.sort()
    result: list[DigitRun] = []
    reached = 1
    for step, name, digit in found:
        if step != reached:
            return None
        reached *= digit.size
        if result and result[-1].axis == name:
            last = result.pop()
            digits = (*last.digits, digit)
            result.append(DigitRun(name, last.low, prod(d.size for d in digits), digits))
        else:
            result.append(DigitRun(name, step, digit.size, (digit,)))
    return tuple(result) if reached == layout.shape[at] else None
