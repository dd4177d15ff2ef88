"""Where temporaries lie in one piece of memory, which is used again when they are done with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT = 256
"""Bytes, at whose multiples cudaMalloc's memory and so every temporary begins."""


class Lifetime(NamedTuple):
    """A temporary's bytes, and the first and the last step that use it."""

    size: int
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Whether both are in use at a time."""
        return self.first <= other.last and other.first <= self.last


class ArenaPlan(NamedTuple):
    """Offsets, one a temporary, and the bytes of all."""

    offsets: tuple[int, ...]
    size: int


def first_fit(lifetimes: Sequence[Lifetime]) -> ArenaPlan:
    """The lowest place for each that nothing else in use at the time takes, the largest first."""
    offsets = [0] * len(lifetimes)
    order = sorted(range(len(lifetimes)), key=lambda at: (-lifetimes[at].size, at))
    placed: list[int] = []
    for at in order:
        taken = sorted(
            (offsets[other], offsets[other] + _whole(lifetimes[other].size))
            for other in placed
            if lifetimes[at].meets(lifetimes[other])
        )
        offset, size = 0, _whole(lifetimes[at].size)
        for start, end in taken:
            if offset + size <= start:
                break
            offset = max(offset, end)
        offsets[at] = offset
        placed.append(at)
    ends = (offset + _whole(one.size) for offset, one in zip(offsets, lifetimes, strict=True))
    return ArenaPlan(tuple(offsets), max(ends, default=0))


def _whole(size: int) -> int:
    """Bytes up to where the next temporary may begin."""
    return -(-size // ALIGNMENT) * ALIGNMENT
