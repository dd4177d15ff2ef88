"""The lanes that access one space in one step, as the parts of the check hand them on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.emulator.checks.races.ledger import LedgerRows
from fragir.emulator.machine.lanes import LANES, is_slice
from fragir.emulator.numbers.types import I64, every

if TYPE_CHECKING:
    from fragir.emulator.checks.races.ledger import Ledger
    from fragir.emulator.checks.races.shared_places import SharedPlaces
    from fragir.emulator.machine.events import Access


class AccessGroup:
    """`at`: byte positions, one for each of `lanes` (flat numbers). `sel`: where these are all
    lanes of some warps, in order, which; their values are then looked up without their numbers.

    `whole`: the flat numbers of the lanes, where these are all of neighbouring warps. `like`: where
    the instruction has accessed memory like this before, the number of the pattern and the first
    position: groups in which they are equal access the same places by the same lanes.
    """

    __slots__ = (
        *("at", "lanes", "sel", "whole", "like"),
        *("_apart", "_ascends", "_ends", "_places", "_columns", "_rows"),
    )

    def __init__(self, at: I64, lanes: I64, sel: Any = None) -> None:
        self.at, self.lanes, self.sel = at, lanes, sel
        self.whole: slice | None = None
        if sel is not None and is_slice(sel):
            self.whole = slice(sel.start * LANES, sel.stop * LANES)
        self.like: tuple[int, int] | None = None
        self._apart: bool | None = None
        self._ascends = False
        self._ends = 0, 0
        self._places: I64 | None = None
        self._columns: I64 | None = None
        self._rows: tuple[Ledger, int, LedgerRows] | None = None

    @classmethod
    def of(cls, access: Access, at: I64, lanes: I64) -> AccessGroup:
        """A part of an access."""
        if access.group is not None:
            return access.group
        whole = access.mask is None and lanes is access.lanes
        if not whole or lanes.ndim != 2 or lanes.shape[1] != LANES:
            return cls(at.ravel(), lanes.ravel())
        found = cls(at.ravel(), lanes.ravel(), access.sel)
        pattern = access.pattern
        if pattern is not None:
            first = at.item(0)
            found.like = pattern.number, first
            found._apart, found._ascends = pattern.apart, pattern.ascends
            found._ends = first + pattern.low, first + pattern.high
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
            self._apart = self._ascends = every(at[1:] > at[:-1])
            self._ends = at.item(0), at.item(-1)
        return self._apart

    # Of groups that are `apart`: what is found once.

    def places(self, shared: SharedPlaces, size: int) -> I64:
        """The places of shared memory, `[lane, part]`."""
        if self._places is None:
            self._places = shared.places(self.at, size)
        return self._places

    def columns(self, shared: SharedPlaces, places: I64) -> I64:
        """The same in `shared.read`, flat."""
        if self._columns is None:
            self._columns = shared.columns_of(self, places)
        return self._columns

    def rows(self, ledger: Ledger, size: int) -> LedgerRows | None:
        """The rows of a ledger without pages; None where some lie elsewhere, or places are smaller
        than those of the ledger."""
        known = self._rows
        if known is not None and known[0] is ledger and known[1] == ledger.shift:
            return known[2]
        low, high = self._ends
        if low < ledger.start or high + size > ledger.start + ledger.size:
            return None
        if size & (1 << ledger.shift) - 1:
            return None
        shape = len(self.at), size >> ledger.shift
        if self._ascends and high - low == (len(self.at) - 1) * size:
            first = low - ledger.start >> ledger.shift
            rows = LedgerRows(shape, slice(first, first + shape[0] * shape[1]))
        else:
            rows = LedgerRows(shape, None, ledger.places(self.at, size))
        self._rows = ledger, ledger.shift, rows
        return rows

    def some(self, which: Any) -> AccessGroup:
        """Those of a mask or, where it is a slice, all."""
        if isinstance(which, slice):
            return self
        return AccessGroup(self.at[which], self.lanes[which])
