"""The lanes that access one space in one step, as the parts of the check hand them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.emulator.machine.lanes import LANES, is_slice
from fragir.emulator.numbers.types import I64, every

if TYPE_CHECKING:
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.patterns import AccessPattern


class AccessGroup:
    """`at`: byte positions, one for each of `lanes` (flat numbers). `sel`: where these are all
    lanes of some warps, in order, which; their values are then looked up without their numbers.

    `whole`: the flat numbers of the lanes, where these are all of neighbouring warps. `pattern`:
    where the instruction has accessed memory like this before; `like`: its number and the first
    position: groups in which they are equal access the same places by the same lanes.

    Known once somebody has asked for `apart`: `ascends`, whether positions do; `ends`, the least
    and the greatest one, where they ascend or there is a pattern. The rest is kept for the next
    access that is the same (`undisputed.py`).
    """

    __slots__ = (
        *("at", "lanes", "sel", "whole", "pattern", "like", "ascends", "ends", "_apart"),
        *("places", "columns", "rows"),
    )

    def __init__(self, at: I64, lanes: I64, sel: Any = None) -> None:
        self.at, self.lanes, self.sel = at, lanes, sel
        self.whole: slice | None = None
        if sel is not None and is_slice(sel):
            self.whole = slice(sel.start * LANES, sel.stop * LANES)
        self.pattern: AccessPattern | None = None
        self.like: tuple[int, int] | None = None
        self._apart: bool | None = None
        self.ascends = False
        self.ends = 0, 0
        self.places: I64 | None = None
        self.columns: I64 | None = None
        self.rows: Any = None

    @classmethod
    def of(cls, access: Access, at: I64, lanes: I64) -> AccessGroup:
        """A part of an access."""
        if access.group is not None:
            return access.group
        whole = access.mask is None and lanes is access.lanes
        whole = whole and lanes.ndim == 2 and lanes.shape[1] == LANES
        found = cls(at.ravel(), lanes.ravel(), access.sel if whole else None)
        pattern = access.pattern
        if pattern is not None:
            first = at.item(0)
            found.pattern, found.like = pattern, (pattern.number, first)
            found._apart, found.ascends = pattern.apart, pattern.ascends
            found.ends = first + pattern.low, first + pattern.high
            access.group = found
        return found

    def pick(self, values: Any) -> Any:
        """What an array has, by lane of the machine, for each of these."""
        if self.whole is not None:
            return values[self.whole]
        if self.sel is None:
            return values[self.lanes]
        return values.reshape(-1, LANES)[self.sel].ravel()

    @property
    def apart(self) -> bool:
        """Whether no two lanes access one place; not known of all that do not ascend."""
        if self._apart is None:
            at = self.at
            self._apart = self.ascends = every(at[1:] > at[:-1])
            self.ends = at.item(0), at.item(-1)
        return self._apart

    def some(self, which: Any) -> AccessGroup:
        """Those of a mask or, where it is a slice, all."""
        if isinstance(which, slice):
            return self
        return AccessGroup(self.at[which], self.lanes[which])
