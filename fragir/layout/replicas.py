"""Which of those that hold an element alike is the one that speaks for it.

A store may write an element twice; what adds to memory may not. Of the threads, and of the places
in a thread, that hold an element, one is told by digits that are zero.

>>> from fragir.layout.layout import Layout
>>> rows = Layout.parse("warp [2:0] lane [4:0 8:1] element [2:8] dims (row)")
>>> [str(condition) for condition in first_holders(rows, threads=64)]
['lane/1%4==0', 'warp/1%2==0']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, Axis, Condition, LayoutError, Mode

#: In which order digits are kept: what a lane holds itself before what other lanes hold.
ORDER = ("element", "lane", "warp")


@lru_cache(maxsize=1024)
def first_holders(layout: Layout, threads: int) -> tuple[Condition, ...]:
    """Conditions under which each element of a register layout has one holder among the threads.

    The layout's own predicate is not among them. Raises LayoutError where elements are held alike
    for another reason than digits that move nothing: sums of different digits that are the same.
    """
    kernel = layout.kernel
    bits = sorted(kernel.bits, key=lambda bit: (ORDER.index(bit.axis), bit.place))
    pinned = [bit for bit in bits if _is_pinned(layout, bit.axis, bit.place)]
    free = [bit for bit in bits if bit not in pinned]
    span = Subspace()
    copies = [bit for bit in free if not span.add(bit.column)]
    found = [(bit.axis, bit.place, 2) for bit in copies]
    for digit in kernel.forced:
        if not digit.stride and not _is_pinned(layout, digit.axis, digit.place):
            found.append((digit.axis, digit.place, digit.size))
    if not layout.where:
        points = 2 ** (len(free) - len(copies)) * prod(
            digit.size for digit in kernel.forced if digit.stride
        )
        held = prod(n - start for n, start in zip(layout.shape, layout.origin, strict=True))
        if points != held:
            raise LayoutError(f"{layout} holds elements several times by sums that are the same.")
    found += _beyond(layout, threads)
    return tuple(_merged_conditions(sorted(found, key=_in_order)))


class Overlap(NamedTuple):
    """Neighbouring parts of a dimension that hold some elements alike: what a digit moves is
    shorter than the part it moves.

    Where `outer`, the digit, is not zero, the places `inner` of a part that are below `apart` are
    held by the part before too.
    """

    dim: int
    """The number of the dimension."""
    inner: Layout
    """Where in its part an element stands: one dimension."""
    outer: Layout
    """The number of the part: one dimension."""
    apart: int


@lru_cache(maxsize=1024)
def overlaps(layout: Layout) -> tuple[Overlap, ...]:
    """Where parts of a register layout overlap, as those of `fragir.layout.distribution` do.

    None where that is no matter of a digit: of sums of different digits only.
    """
    if layout.exclusive or layout.where or layout.offset:
        return ()
    found: list[Overlap] = []
    for dim in range(layout.rank):
        digits = [
            (mode.stride[dim], axis.name, number)
            for axis in layout.axes
            for number, mode in enumerate(axis.modes)
            if mode.stride[dim] and mode.size > 1
        ]
        below: dict[tuple[str, int], int] = {}
        extent = 1
        for stride, name, number in sorted(digits):
            mode = layout.axis(name).modes[number]
            if sum(map(bool, mode.stride)) > 1 or stride > extent:
                return ()
            if stride < extent:
                alone = _along(layout, {(name, number): 1})
                found.append(Overlap(dim, _along(layout, below), alone, extent - stride))
            below[name, number] = stride
            extent += stride * (mode.size - 1)
    return tuple(found)


def _along(layout: Layout, strides: Mapping[tuple[str, int], int]) -> Layout:
    """The digits of some modes, (axis, number), with their strides; the others move nothing."""
    axes = tuple(
        Axis(
            axis.name,
            tuple(
                Mode(mode.size, (strides.get((axis.name, number), 0),))
                for number, mode in enumerate(axis.modes)
            ),
        )
        for axis in layout.axes
    )
    return Layout(axes, ("index",))


class Holders(NamedTuple):
    """Which of those who hold an element alike is the one that speaks for it: conditions that hold
    of it, and overlaps in which no part before its own has the element."""

    conditions: tuple[Condition, ...] = ()
    overlaps: tuple[Overlap, ...] = ()

    @property
    def all_are(self) -> bool:
        """Whether nobody holds anything alike."""
        return not self.conditions and not self.overlaps


@lru_cache(maxsize=1024)
def single_holders(layout: Layout, threads: int) -> Holders:
    """`first_holders`, and where parts overlap: the part before holds what both do.

    Raises LayoutError where elements are held alike for another reason.
    """
    parts = overlaps(layout)
    if not parts:
        return Holders(first_holders(layout, threads))
    found: list[tuple[str, int, int]] = []
    for axis in layout.axes:
        place = 1
        for mode in axis.modes:
            if mode.size > 1 and not any(mode.stride):
                found.append((axis.name, place, mode.size))
            place *= mode.size
    found += _beyond(layout, threads)
    return Holders(tuple(_merged_conditions(sorted(found, key=_in_order))), parts)


def _beyond(layout: Layout, threads: int) -> Iterator[tuple[str, int, int]]:
    """The digits of lanes and warps that a layout does not have."""
    for axis, extent in (("lane", WARP), ("warp", threads // WARP)):
        size = layout.size(axis) if axis in layout.names else 1
        if size < extent:
            yield axis, size, -(-extent // size)


def _in_order(digit: tuple[str, int, int]) -> tuple[int, int]:
    return ORDER.index(digit[0]), digit[1]


def _is_pinned(layout: Layout, axis: str, place: int) -> bool:
    """Whether the layout's predicate says a digit."""
    return any(c.axis == axis and c.divisor <= place < c.divisor * c.modulus for c in layout.where)


def _merged_conditions(digits: list[tuple[str, int, int]]) -> Iterator[Condition]:
    """Conditions that digits, in order, are zero; neighbours are one."""
    while digits:
        axis, place, size = digits.pop(0)
        while digits and digits[0][:2] == (axis, place * size):
            size *= digits.pop(0)[2]
        yield Condition(axis, place, size, 0)
