"""Which of those that hold an element alike is the one that speaks for it.

A store may write an element twice; what adds to memory may not. Of the threads, and of the places
in a thread, that hold an element, one is told by digits that are zero.

>>> from fragir.layout.layout import Layout
>>> rows = Layout.parse("warp [2:0] lane [4:0 8:1] element [2:8] dims (row)")
>>> [str(condition) for condition in first_holders(rows, threads=64)]
['lane/1%4==0', 'warp/1%2==0']
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, Condition, LayoutError

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
    for axis, extent in (("lane", WARP), ("warp", threads // WARP)):
        size = layout.size(axis) if axis in layout.names else 1
        if size < extent:
            found.append((axis, size, -(-extent // size)))
    return tuple(_merged(sorted(found, key=lambda f: (ORDER.index(f[0]), f[1]))))


def _is_pinned(layout: Layout, axis: str, place: int) -> bool:
    """Whether the layout's predicate says a digit."""
    return any(c.axis == axis and c.divisor <= place < c.divisor * c.modulus for c in layout.where)


def _merged(digits: list[tuple[str, int, int]]) -> Iterator[Condition]:
    """Conditions that digits, in order, are zero; neighbours are one."""
    while digits:
        axis, place, size = digits.pop(0)
        while digits and digits[0][:2] == (axis, place * size):
            size *= digits.pop(0)[2]
        yield Condition(axis, place, size, 0)
