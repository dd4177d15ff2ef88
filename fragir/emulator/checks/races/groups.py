"""The lanes that access one space in one step, as the parts of the check hand them on."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64

if TYPE_CHECKING:
    from fragir.emulator.machine.events import Access


class AccessGroup:
    """`at`: byte positions, one for each of `lanes` (flat numbers). `sel`: where these are all
    lanes of some warps, in order, which; their values are then looked up without their numbers.
    """

    def __init__(self, at: I64, lanes: I64, sel: Any = None) -> None:
        self.at, self.lanes, self.sel = at, lanes, sel

    @classmethod
    def of(cls, access: Access, at: I64, lanes: I64) -> AccessGroup:
        """A part of an access."""
        whole = access.mask is None and lanes is access.lanes
        if whole and lanes.ndim == 2 and lanes.shape[1] == LANES:
            return cls(at.ravel(), lanes.ravel(), access.sel)
        return cls(at.ravel(), lanes.ravel())

    def pick(self, values: Any) -> Any:
        """What an array has, by lane of the machine, for each of these."""
        if self.sel is None:
            return values[self.lanes]
        return values.reshape(-1, LANES)[self.sel].ravel()

    @cached_property
    def apart(self) -> bool:
        """Whether positions ascend: then no two lanes access one place."""
        at = self.at
        return bool((at[1:] > at[:-1]).all())

    def some(self, which: Any) -> AccessGroup:
        """Those of a mask or, where it is a slice, all."""
        if isinstance(which, slice):
            return self
        return AccessGroup(self.at[which], self.lanes[which])
