"""A tile over threads that do not divide it: parts overlap, and what two of them hold is the same.

>>> print(covering((1, 40), 1, 32, 1))
warp [] lane [32:(0,1)] element [2:(0,8)]
>>> print(covering((33, 33), 1, 32, 4))
warp [4:(8,0)] lane [32:(0,1)] element [2:(0,1) 9:(1,0)]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from fragir.layout.distribution import dims_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, Mode, Point


@lru_cache(maxsize=1024)
def covering(shape: Point, vector: int, lanes: int, warps: int) -> Layout:
    """The layout of a tile in which a lane has few elements, whatever the tile's extents.

    `vector` elements along the last dimension, which it divides, stay together; lanes (a power of
    two) lie along the last dimension as far as that goes, then along the one before it; warps where
    most is left. What does not come out even is held several times.
    """
    rank = len(shape)
    units = (*shape[:-1], shape[-1] // vector)
    steps = (*(1,) * (rank - 1), vector)
    axes: dict[str, list[Mode]] = {"warp": [], "lane": [], "element": []}

    def digit(axis: str, size: int, dim: int, stride: int) -> None:
        if size > 1:
            step = tuple(stride * steps[dim] * (d == dim) for d in range(rank))
            axes[axis].append(Mode(size, step))

    if vector > 1:
        axes["element"].append(Mode(vector, (*(0,) * (rank - 1), 1)))
    block: list[int] = []
    left = lanes
    for dim in reversed(range(rank)):
        share = min(left, 1 << units[dim].bit_length() - 1)
        digit("lane", share, dim, 1)
        block.insert(0, share)
        left //= share
    if left > 1:
        axes["lane"].append(Mode(left, (0,) * rank))
    shares = _shares(units, block, warps)
    for dim in reversed(range(rank)):
        part = units[dim] // shares[dim]
        within = units[dim] - part * (shares[dim] - 1)
        for size, stride in _repeats(block[dim], within):
            digit("element", size, dim, stride)
        digit("warp", shares[dim], dim, part)
    if (copies := warps // prod(shares)) > 1:
        axes["warp"].append(Mode(copies, (0,) * rank))
    return Layout(tuple(Axis(name, tuple(modes)) for name, modes in axes.items()), dims_of(rank))


def _shares(units: Point, block: Sequence[int], warps: int) -> list[int]:
    """Of how many warps each dimension has parts, none of which is smaller than a block."""
    shares = [1] * len(units)
    for prime in _primes(warps):

        def parts(dim: int) -> int:
            return units[dim] // (block[dim] * shares[dim])

        dim = max(range(len(units)), key=parts)
        if parts(dim) >= prime:
            shares[dim] *= prime
    return shares


def _primes(number: int) -> list[int]:
    """The prime factors, the largest first."""
    found: list[int] = []
    factor = 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found[::-1]


def _repeats(block: int, size: int) -> list[tuple[int, int]]:
    """Digits, (size, stride), that repeat a block until it covers a dimension, and no more."""
    if size <= block:
        return []
    most = -(-size // block)
    count = next(c for c in range(most, size - block + 2) if (size - block) % (c - 1) == 0)
    alone = [(count, (size - block) // (count - 1))]
    if count == most:
        return alone
    half = size // 2
    twice = [*_repeats(block, size - half), (2, half)]
    return min(alone, twice, key=lambda digits: prod(n for n, _ in digits))
