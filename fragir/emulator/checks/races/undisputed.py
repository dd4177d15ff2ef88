"""The common case of an access to shared or global memory: by the core, or in few numpy calls."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import COLUMN_MASK, TIME_SHIFT, record
from fragir.emulator.checks.races.ledger import (
    PAGE_SHIFT,
    READ,
    READ_ELSEWHERE,
    WRITE,
    Ledger,
    LedgerRows,
)
from fragir.emulator.machine.lanes import LANES, is_slice
from fragir.emulator.native import library
from fragir.emulator.numbers.types import I32, I64, U32, Array

if TYPE_CHECKING:
    from fragir.emulator.checks.races.clocks import Clocks
    from fragir.emulator.checks.races.context import AccessGroup
    from fragir.emulator.checks.races.shared_places import SharedPlaces


# -- compiled --------------------------------------------------------------------------------------
# The common case of an access to shared or global memory, by the compiled core.
#
# `native/source/planes.c` judges and notes an access in one pass, or says that it cannot: where
# something may have to be reported it has changed nothing, and numpy does all of it. Both leave the
# same records.

#: What the functions give: see planes.h.
BY_NUMPY, OVERLAP, LANES_TOO, PUSHED, LOGGED, ELSEWHERE = 1, 2, 4, 8, 16, 32
#: Places of one lane in an access of a straight-line run: bytes.
LARGEST = 32
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64


class KnowledgePointers(ctypes.Structure):
    _fields_ = (
        *((name, _POINTER) for name in ("floor", "warp_floor", "known", "own")),
        *((name, _NUMBER) for name in ("width", "block")),
        ("owner_of", _POINTER),
        ("strengths", _POINTER),
        ("sites", _NUMBER),
        *((name, _NUMBER) for name in ("entire", "values")),
        *((name, _POINTER) for name in ("old", "old_owners")),
        ("old_room", _NUMBER),
        ("excused", _POINTER),
    )


class GroupPointers(ctypes.Structure):
    _fields_ = (
        ("at", _POINTER),
        ("lanes", _POINTER),
        *((name, _NUMBER) for name in ("first", "count", "size")),
    )


class SharedPointers(ctypes.Structure):
    _fields_ = (
        *(
            (name, _POINTER)
            for name in (
                *("written", "read", "masks", "read_time", "logged"),
                *("slot_of", "block_of"),
            )
        ),
        *((name, _NUMBER) for name in ("columns", "places", "shift", "stride", "alone")),
        ("chunks", _POINTER),
        ("slots", _NUMBER),
        *((name, _POINTER) for name in ("before", "pushed_places", "pushed_records")),
        *((name, _POINTER) for name in ("before_masks", "pushed_masks")),
        *((name, _NUMBER) for name in ("pushed", "room")),
    )


class GlobalPointers(ctypes.Structure):
    _fields_ = (
        ("records", _POINTER),
        ("owners", _POINTER),
        ("rows", _NUMBER),
        ("table", _POINTER),
        *((name, _NUMBER) for name in ("start", "size", "shift", "page_shift")),
        *((name, _NUMBER) for name in ("noted", "copied")),
    )


def _at(array: Array) -> int:
    return array.__array_interface__["data"][0]


class CompiledLedgers:
    """`strengths`: of the instruction at each site (`GlobalPlaces`); `excused`: of `Excuses`."""

    def __init__(
        self,
        quick: ctypes.PyDLL,
        clocks: Clocks,
        shared: SharedPlaces,
        strengths: npt.NDArray[np.int8],
        excused: npt.NDArray[np.uint8],
    ) -> None:
        self.clocks, self.shared = clocks, shared
        self._own: list[Array] = [shared.slot_of, shared.block_of, strengths, excused]
        self._known: npt.NDArray[np.int32] | None = None
        self._owner_of: I32 | None = None
        self._old: tuple[I64, I32] | None = None
        self._knowledge, self._group, self._shared = (
            KnowledgePointers(),
            GroupPointers(),
            SharedPointers(),
        )
        self._knowledge.floor, self._knowledge.warp_floor = (
            _at(clocks.floor),
            _at(clocks.warp_floor),
        )
        self._knowledge.own = _at(clocks.own)
        self._knowledge.block = clocks.machine.warps_per_block * LANES
        self._knowledge.strengths, self._knowledge.sites = _at(strengths), len(strengths)
        self._knowledge.excused = _at(excused)
        pointers = self._shared
        for name in ("written", "read", "masks", "read_time", "slot_of", "block_of"):
            setattr(pointers, name, _at(getattr(shared, name)))
        pointers.columns, pointers.places = shared.columns, len(shared.written)
        pointers.shift = shared.shift
        pointers.chunks, pointers.slots = _at(shared.chunk_read), shared.chunk_read.shape[1]
        pointers.stride, pointers.alone = max(shared.stride, 1), int(shared.alone)
        self._room(1024)
        self._ledgers: dict[int, tuple[Ledger, I64, GlobalPointers]] = {}
        common = [ctypes.byref(x) for x in (self._knowledge, self._shared, self._group)]
        self._k, self._s, self._g = common
        types = [_POINTER, _POINTER, _POINTER, _NUMBER]
        self._read = self._function(quick.fragir_shared_read, [*types, _NUMBER])
        self._write = self._function(quick.fragir_shared_write, [*types, _NUMBER, ctypes.c_int])
        integers = [ctypes.c_int, ctypes.c_int]
        self._global_read = self._function(quick.fragir_global_read, [*types, *integers])
        self._global_write = self._function(
            quick.fragir_global_write, [*types, *integers, ctypes.c_int]
        )

    @staticmethod
    def _function(function: Any, arguments: list[Any]) -> Any:
        function.argtypes, function.restype = arguments, ctypes.c_int
        return function

    # -- for straight-line runs --------------------------------------------------------------------

    def addresses(self) -> tuple[int, int]:
        """Of what is known of whom, and of the ledger of shared memory."""
        return ctypes.addressof(self._knowledge), ctypes.addressof(self._shared)

    def begin(self, owner_of: I32) -> None:
        """Before accesses that are done wholly, or not at all."""
        knowledge = self._knowledge
        self._tell_known()
        self._tell_owners(owner_of)
        if self._old is None:
            places = self.clocks.machine.warps * LANES * LARGEST
            self._room(max(places, self._shared.room))
            self._old = np.empty(places, np.int64), np.empty(places, np.int32)
            knowledge.old, knowledge.old_owners = (_at(array) for array in self._old)
            knowledge.old_room = places
        self._shared.pushed, self._shared.logged = 0, _at(self.shared.log.logged)
        knowledge.entire = 1

    def end(self) -> None:
        """Behind them."""
        self._knowledge.entire = 0
        if self._shared.pushed:
            self._keep_pushed()

    def _keep_pushed(self) -> None:
        """Puts the reads that were pushed out into the log."""
        count: int = self._shared.pushed
        places, records, masks = self._pushed
        some = places[:count].copy(), records[:count].copy(), masks[:count].copy()
        self.shared.log.push(*some, self.clocks.lowest)

    def _room(self, places: int) -> None:
        """Arrays for what a call remembers of every place that it accesses."""
        self._shared.room = places
        self._before: I64 = np.empty(places, np.int64)
        self._before_masks: U32 = np.empty(places, np.uint32)
        self._pushed: tuple[I64, I64, U32] = (
            np.empty(places, np.int64),
            np.empty(places, np.int64),
            np.empty(places, np.uint32),
        )
        pointers = self._shared
        pointers.before, pointers.before_masks = _at(self._before), _at(self._before_masks)
        pointers.pushed_places, pointers.pushed_records, pointers.pushed_masks = (
            _at(x) for x in self._pushed
        )

    def _tell_known(self) -> None:
        """What is known, where it has moved: agents have come."""
        clocks = self.clocks
        if self._known is not clocks.known:
            self._known = clocks.known
            self._knowledge.known, self._knowledge.width = _at(clocks.known), clocks.width

    def _tell_owners(self, owner_of: I32) -> None:
        """The same of the owners of lanes: there is a new wave."""
        if self._owner_of is not owner_of:
            self._owner_of, self._knowledge.owner_of = owner_of, _at(owner_of)

    def _prepare(self, group: AccessGroup, size: int) -> object:
        """Fill in what changes; gives what must stay alive during the call."""
        pointers = self._group
        self._tell_known()
        at = np.ascontiguousarray(group.at, np.int64)
        pointers.at, pointers.count, pointers.size = _at(at), len(at), size
        if group.sel is not None and is_slice(group.sel):
            pointers.lanes, pointers.first = None, group.sel.start * LANES
            return at
        lanes = np.ascontiguousarray(group.lanes, np.int64)
        pointers.lanes = _at(lanes)
        return at, lanes

    # -- shared memory -----------------------------------------------------------------------------

    def read(self, site: int, group: AccessGroup, size: int, strong: bool) -> bool:
        """A read of shared memory; whether that was all."""
        shared, clocks = self.shared, self.clocks
        alive = self._prepare(group, size)
        if len(group.at) * max(size >> shared.shift, 1) > self._shared.room:
            self._room(2 * len(group.at) * max(size >> shared.shift, 1))
        base = record(clocks.now, 0, site, strong)
        found: int = self._read(self._k, self._s, self._g, base, clocks.lowest)
        del alive
        if found == PUSHED:
            self._keep_pushed()
        return found != BY_NUMPY

    def write(self, site: int, group: AccessGroup, size: int, strong: bool, time: int) -> int:
        """The same of a write: BY_NUMPY; or OVERLAP, LOGGED, both or neither."""
        shared = self.shared
        alive = self._prepare(group, size)
        self._shared.logged = _at(shared.log.logged)
        base, logs = record(time, 0, site, strong), int(shared.log.entries > 0)
        found: int = self._write(self._k, self._s, self._g, base, self.clocks.lowest, logs)
        del alive
        return found

    # -- global memory -----------------------------------------------------------------------------

    def _ledger(self, ledger: Ledger) -> Any:
        known = self._ledgers.get(id(ledger))
        if known is None or known[1] is not ledger.records:
            pointers = GlobalPointers()
            describe(ledger, pointers)
            known = self._ledgers[id(ledger)] = ledger, ledger.records, pointers
        return ctypes.byref(known[2])

    def access(
        self,
        kind: str,
        site: int,
        group: AccessGroup,
        size: int,
        scope: int,
        ledger: Ledger,
        owner_of: I32,
        updates: bool,
    ) -> int:
        """An access to one buffer: BY_NUMPY; or OVERLAP, LANES_TOO, both or neither."""
        if (size & -size).bit_length() - 1 < ledger.shift:
            return BY_NUMPY  # its places become smaller
        self._tell_owners(owner_of)
        alive = self._prepare(group, size)
        base = record(self.clocks.now, 0, site, scope > 0)
        noted = noted_bits(ledger)
        where = self._ledger(ledger)
        found: int
        if kind == "load":
            found = self._global_read(self._k, where, self._g, base, scope, noted)
        else:
            found = self._global_write(self._k, where, self._g, base, scope, noted, int(updates))
        del alive
        if found & ELSEWHERE:
            ledger.noted[READ_ELSEWHERE] = True
            found -= ELSEWHERE
        return found


def noted_bits(ledger: Ledger) -> int:
    """A bit for each kind of which anything has been noted."""
    write, read, elsewhere = ledger.noted
    return write | read << 1 | elsewhere << 2


def describe(ledger: Ledger, pointers: GlobalPointers) -> None:
    """Tells where a ledger lies; what has been noted is told with each call."""
    pointers.records, pointers.owners = _at(ledger.records), _at(ledger.owners)
    pointers.rows = ledger.records.shape[1]
    pointers.table = None if ledger.table is None else _at(ledger.table)
    pointers.start, pointers.size = ledger.start, ledger.size
    pointers.shift, pointers.page_shift = ledger.shift, PAGE_SHIFT


def compiled_ledgers(
    clocks: Clocks,
    shared: SharedPlaces,
    strengths: npt.NDArray[np.int8],
    excused: npt.NDArray[np.uint8],
) -> CompiledLedgers | None:
    """What the compiled core has for a launch; None where it is not in use."""
    quick = library.quick()
    return None if quick is None else CompiledLedgers(quick, clocks, shared, strengths, excused)


#: Of a record what names the lane, and what the warp.
_LANE, _WARP = COLUMN_MASK, COLUMN_MASK >> 5 << 5


class UndisputedShared:
    """Accesses to shared memory."""

    def __init__(self, clocks: Clocks, shared: SharedPlaces) -> None:
        self.clocks, self.shared = clocks, shared

    @property
    def _settled_record(self) -> int:
        """The greatest record that a barrier of all has settled."""
        return (self.clocks.lowest + 1 << TIME_SHIFT) - 1

    def _places(self, group: AccessGroup, size: int) -> I64:
        """The places of a group, `[lane, part]`."""
        places = group.places
        if places is None:
            places = group.places = self.shared.places(group.at, size)
        return places

    def _columns(self, group: AccessGroup, places: I64) -> I64:
        """Where the reads of a group stand in the flat `read`."""
        columns = group.columns
        if columns is None:
            columns = group.columns = self.shared.columns_of(group, places)
        return columns

    def _is_write_settled(self, places: I64, own: I64) -> bool:
        """Whether what has been written there is settled, or by those who access now."""
        if self.shared.newest_write <= self.clocks.lowest:
            return True
        found = self.shared.written[places]
        late = found > self._settled_record
        if not np.count_nonzero(late):
            return True
        late &= (found ^ own[:, None]) & _LANE != 0
        return not np.count_nonzero(late)

    def read(self, site: int, group: AccessGroup, size: int, strong: bool) -> bool:
        """A read; whether that was all."""
        shared, clocks = self.shared, self.clocks
        if not group.are_apart and group.pattern is None:
            return False
        places, own = self._places(group, size), group.pick(clocks.own)
        if not self._is_write_settled(places, own):
            return False
        index = self._columns(group, places)
        mine = record(clocks.now, own, site, strong)
        if group.are_apart:
            bits = group.pick(shared.bit_of)
        else:
            which, bits = self._together(group, index)
            index, places, mine = index[which], places[which], mine[which]
        mine, bits = mine[:, None], bits[:, None]
        read, masks = shared.read.reshape(-1), shared.masks.reshape(-1)
        if shared.newest_read > clocks.lowest:
            before = read[index]
            late = before > self._settled_record
            if np.count_nonzero(late):
                late &= ((before ^ mine) & _WARP | masks[index] & ~bits) != 0
                if np.count_nonzero(late):
                    return False  # a read is pushed out
        read[index], masks[index] = mine, bits
        shared.read_time[places] = shared.newest_read = clocks.now
        return True

    def _together(self, group: AccessGroup, index: I64) -> tuple[I64, U32]:
        """Of lanes that read one place the last one, and the bits of all."""
        assert group.pattern is not None
        if group.pattern.together is None:
            first = index[:, 0]
            order = np.argsort(first, kind="stable")
            new = np.flatnonzero(np.diff(first[order], prepend=-1))
            last = order[np.append(new[1:], len(order)) - 1]
            bits = np.bitwise_or.reduceat(group.pick(self.shared.bit_of)[order], new)
            group.pattern.together = last, bits
        return group.pattern.together

    def write(self, site: int, group: AccessGroup, size: int, strong: bool, time: int) -> int:
        """A write: BY_NUMPY, or 0 where that was all."""
        shared = self.shared
        if strong or shared.log.entries or not group.are_apart:
            return BY_NUMPY
        places, own = self._places(group, size), group.pick(self.clocks.own)
        if not self._is_write_settled(places, own) or not self._is_read_settled(group, places, own):
            return BY_NUMPY
        shared.written[places] = record(time, own, site)[:, None]
        shared.written_at(time)
        return 0

    def _is_read_settled(self, group: AccessGroup, places: I64, own: I64) -> bool:
        """Whether what has been read there is settled, or by those who write now."""
        shared, lowest = self.shared, self.clocks.lowest
        if shared.newest_read <= lowest:
            return True
        if not np.count_nonzero(shared.read_time[places] > lowest):
            return True
        index, settled = self._columns(group, places), self._settled_record
        found = shared.read.reshape(-1)[index]
        late = found > settled
        if np.count_nonzero(shared.read[:, places] > settled) > np.count_nonzero(late):
            return False
        alone = shared.masks.reshape(-1)[index] == group.pick(shared.bit_of)[:, None]
        alone &= (found ^ own[:, None]) & _LANE == 0
        return not np.count_nonzero(late & ~alone)


class UndisputedGlobal:
    """Accesses to global memory."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks

    def access(
        self,
        kind: str,
        site: int,
        group: AccessGroup,
        size: int,
        scope: int,
        ledger: Ledger,
        owner_of: I32,
        updates: bool,
    ) -> int:
        """An access to one buffer: BY_NUMPY, or 0 where that was all.

        `updates`: whether it matters which lane of a warp has written.
        """
        how = READ if kind == "load" else WRITE
        if ledger.table is not None or not (
            group.are_apart
            or (how == READ and group.pattern is not None and self._is_one_cluster(group))
        ):
            return BY_NUMPY
        rows = _rows(group, ledger, size)
        if rows is None:
            return BY_NUMPY
        mine = record(self.clocks.now, group.pick(self.clocks.own), site, scope > 0)[:, None]
        owner = group.pick(owner_of)[:, None]
        like = group.like
        again = like is not None and ledger.last[how] == like
        if not _are_alone(ledger, WRITE, rows, mine, owner, like, _LANE):
            return BY_NUMPY
        if how == READ:
            if ledger.noted[READ] and not again:
                before = rows.of(ledger.owners[READ])
                if np.count_nonzero(before) and np.count_nonzero(before ^ owner):
                    return BY_NUMPY  # it may be of another cluster
        elif not (
            _are_alone(ledger, READ, rows, mine, owner, like, _LANE)
            and _are_alone(ledger, READ_ELSEWHERE, rows, mine, owner, like, _LANE)
        ):
            return BY_NUMPY
        rows.put(ledger.records[how], mine)
        if not again:
            rows.put(ledger.owners[how], owner)
        ledger.last[how] = like
        return 0

    def _is_one_cluster(self, group: AccessGroup) -> bool:
        """Whether all lanes, which ascend, are of one cluster."""
        first, last = group.lanes.item(0), group.lanes.item(-1)
        return first // self.clocks.lanes == last // self.clocks.lanes


def _rows(group: AccessGroup, ledger: Ledger, size: int) -> LedgerRows | None:
    """Those of a group in a ledger without pages; None where some lie elsewhere, or places would
    have to be smaller."""
    known = group.rows
    if known is not None and known[0] is ledger and known[1] == ledger.shift:
        return known[2]
    (low, high), count = group.ends, len(group.at)
    if low < ledger.start or high + size > ledger.start + ledger.size:
        return None
    if size & (1 << ledger.shift) - 1:
        return None
    shape = count, size >> ledger.shift
    if group.ascends and high - low == (count - 1) * size:
        first = low - ledger.start >> ledger.shift
        rows = LedgerRows(shape, slice(first, first + count * shape[1]))
    else:
        rows = LedgerRows(shape, None, ledger.places(group.at, size))
    group.rows = ledger, ledger.shift, rows
    return rows


def _are_alone(
    ledger: Ledger,
    kind: int,
    rows: LedgerRows,
    mine: Array,
    owner: Array,
    like: tuple[int, int] | None,
    part: int,
) -> bool:
    """Whether the last accesses of a kind are of those who access now, or of nobody: `part`: of
    a record what is compared."""
    if not ledger.noted[kind] or (like is not None and ledger.last[kind] == like):
        return True
    owners = rows.of(ledger.owners[kind])
    if not np.count_nonzero(owners):
        return True
    differ = (rows.of(ledger.records[kind]) ^ mine) & part
    differ |= owners ^ owner
    return not np.count_nonzero(differ)
