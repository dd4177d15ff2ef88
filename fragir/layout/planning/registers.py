"""A register layout as three matrices over F2: what the bits of element, lane and warp move.

Points are packed into one number, the last dimension in the lowest bits.
"""

from __future__ import annotations

from dataclasses import dataclass

LANE_BITS = 5


@dataclass(frozen=True, slots=True)
class Registers:
    """For every bit of element, lane and warp, lowest first, the packed point that it moves by.

    Moves are added without carry. A column of zero is replication.
    """

    element: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns, element bits lowest."""
        return self.element + self.lane + self.warp
