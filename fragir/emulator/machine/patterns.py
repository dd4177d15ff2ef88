"""Accesses that are like earlier ones: to the same places, or to others equally far from them.

Loops make most of their accesses so. What has been found of the first one holds for all.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Protocol, TypeAlias

import numpy as np

from fragir.emulator.machine.arena import Arena
from fragir.emulator.machine.lanes import Mask
from fragir.emulator.numbers.types import I64, Bools, every

#: Where accesses go: (arena, byte positions, which lanes; None: all).
Spaces: TypeAlias = "list[tuple[Arena, I64, Bools | None]]"
#: Patterns of which the number is remembered.
KEPT = 1 << 12
#: Lanes of the accesses of a launch of which the positions are kept; some 32 bytes each.
ROOM = 1 << 22


class LocatedBefore(Protocol):
    """The access of the instruction that runs, as a check has located it. `found` is what
    `DeviceMemory.spaces` gives for the same lanes and bytes; None where nobody has asked yet."""

    sel: Any
    mask: Mask
    size: int
    found: Spaces | None


class KnownPatterns:
    """The patterns of a launch: how many positions may be kept, and which are equal but for a
    distance."""

    def __init__(self) -> None:
        self._left = ROOM
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._next = 0

    def take(self, lanes: int) -> bool:
        """Whether the positions of so many lanes more may be kept."""
        self._left -= lanes
        return self._left >= 0

    def number(self, *parts: Any) -> int:
        """One number for all that is equal: a pattern, in parts."""
        key = tuple(blake2b(p).digest() if isinstance(p, bytes) else p for p in parts)
        found = self._numbers.get(key)
        if found is None:
            if len(self._numbers) == KEPT:
                self._numbers.clear()
            found = self._numbers[key] = self._next
            self._next += 1
        return found


class AccessPattern:
    """Byte positions of some lanes in one arena.

    `at`: those of the first time; `size`: bytes of each. In bounds are those that
    have moved by at least `down` and at most `up` bytes, and by a multiple of their size.
    `number`: see `KnownPatterns`. `low`, `high`: the least and the greatest position, counted from
    the first lane's; `ascends`: whether positions do; `apart`: whether no two lanes access one
    place; `together`: where it is not so, what a check has found of lanes that do.
    """

    __slots__ = (
        *("arena", "at", "size", "down", "up", "changes", "number"),
        *("low", "high", "ascends", "apart", "together"),
    )

    def __init__(
        self, arena: Arena, at: I64, size: int, room: tuple[int, int], changes: int, number: int
    ) -> None:
        self.arena, self.at, self.size, self.changes = arena, at, size, changes
        self.down, self.up = room
        self.number = number
        self.together: Any = None
        flat, first = at.ravel(), at.item(0)
        ascending = flat
        self.ascends = self.apart = every(flat[1:] > flat[:-1])
        if not self.ascends:
            ascending = np.sort(flat)
            self.apart = every(ascending[1:] > ascending[:-1])
        self.low, self.high = ascending.item(0) - first, ascending.item(-1) - first

    def moved(self, by: int) -> I64:
        """The positions that far from the first ones."""
        return self.at + by if by else self.at

    def allows(self, by: int, changes: int) -> bool:
        """Whether those are in bounds; `changes`: `DeviceMemory.changes` now."""
        return self.down <= by <= self.up and not by % self.size and changes == self.changes
