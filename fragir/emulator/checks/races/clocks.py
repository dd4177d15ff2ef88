"""Who knows of whose accesses: happens-before between the lanes of a cluster.

Time is one counter for the machine: an access happens at `now`, and everything that makes an order
lets `now` advance. `known[0][lane, column]` is the time up to which a lane knows the accesses of a
column: each lane of its cluster has one, and so has each agent of asynchronous work (the copies of
one mbarrier, the wgmma of a warpgroup, the bulk groups of a lane). Further planes say the same of
what a fence has dealt with: `known[proxy]` of what a `fence.proxy.async` has made visible to the
asynchronous proxy, `known[fenced(scope)]` of what a `fence` or `membar` of at least that scope lets
relaxed accesses hand on.

Two shortcuts keep the common cases cheap: a barrier of a whole block raises the `floor` of its
lanes, a barrier of a whole warp the `warp_floor`, instead of writing rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode


# -- records ---------------------------------------------------------------------------------------
# One access in a number of 63 bits: when, by whom, at which instruction, whether it is strong.
#
# From high to low: the time, one bit of strength, the site of the instruction, and the column of
# the lane or agent. Later records are greater ones; 0 is no access.

#: Times of asynchronous agents lie above all others: no floor covers them.
ASYNC = 1 << 29
#: Later than everything: a write that has not happened yet.
PENDING = (1 << 30) - 1

COLUMN_BITS, SITE_BITS = 16, 16
STRONG = 1 << (COLUMN_BITS + SITE_BITS)
TIME_SHIFT = COLUMN_BITS + SITE_BITS + 1
COLUMN_MASK = (1 << COLUMN_BITS) - 1
SITE_MASK = (1 << SITE_BITS) - 1
MBARRIER = COLUMN_MASK  # the column that holds a live mbarrier


def record(time: int, column: Any, site: int, strong: bool = False) -> Any:
    """A record; `column` may be an array, then there is one for each."""
    return (time << TIME_SHIFT) | (int(strong) << (TIME_SHIFT - 1)) | (site << COLUMN_BITS) | column


def site_of(rec: Any) -> Any:
    """The site of a record's instruction, or of those of an array."""
    return rec >> COLUMN_BITS & SITE_MASK


assert COLUMN_BITS > 5  # the lane is the lowest bits of a record


#: By kind of agent; of an mbarrier its offset, of a bulk group its lane.
_WAITS = {
    "mbarrier": ": at the mbarrier at shared offset {} (a wait for the parity of an earlier phase "
    "passes at once)",
    "bulk": ": lane {} by cp.async.bulk.wait_group.read, and then the others by a barrier",
    "wgmma": ": its warpgroup by wgmma.wait_group",
    "tensor": ": by the mbarrier of a tcgen05.commit behind it",
    "tensor ld": ": its warp by tcgen05.wait::ld, or by using the registers, then by a barrier",
    "tensor st": ": its warp by tcgen05.wait::st, and then the others by a barrier",
}


def distinct(numbers: I64) -> I64:
    """The different ones among small numbers, in ascending order."""
    return np.flatnonzero(np.bincount(numbers))


class Clocks:
    """`proxies`: 0 without work of the asynchronous proxy, 1 where its fences are for all memory, 2
    where some are for shared or global memory alone; `levels`: the scopes in which plain memory
    hands on what is known (`scopes.py`). The planes of what it lacks are plane 0.
    """

    def __init__(self, machine: Machine, proxies: int, levels: Sequence[int]) -> None:
        self.machine, self.levels = machine, tuple(levels)
        planes = self.planes = 1 + proxies + len(self.levels)
        self._first = 1 + proxies
        self.proxy, self.proxy_global = min(proxies, 1), proxies
        self.lanes = machine.warps_per_block * LANES * machine.cluster_size  # of a cluster
        total = machine.warps * LANES
        self.width = self.lanes
        self.known: I32 = np.zeros((planes, total, self.width), np.int32)
        self.floor: I32 = np.zeros(total, np.int32)
        self.lowest = 0  # of all floors
        self.warp_floor: I32 = np.zeros(total, np.int32)
        #: Warps whose lanes differ in what they know of others.
        self.uneven: Bools = np.zeros(machine.warps, np.bool_)
        self.own: I64 = np.arange(total, dtype=np.int64) % self.lanes  # the lane's own column
        self.agents: dict[tuple[int, str, int], int] = {}
        self._agents_of: dict[int, int] = {}
        self.now = 1

    def start_wave(self) -> None:
        """A new wave: what went before is known to everybody."""
        self.floor[...] = self.lowest = self.now
        self.known[:, :, self.lanes :] = 0
        self.uneven[...] = False
        self.now += 1

    def agent(self, lane: int, kind: str, number: int) -> int:
        """The column of an asynchronous agent of the cluster in which `lane` is."""
        cluster = lane // self.lanes
        key = (cluster, kind, number)
        found = self.agents.get(key)
        if found is None:
            used = self._agents_of.get(cluster, 0)
            self._agents_of[cluster] = used + 1
            found = self.lanes + used
            if found == MBARRIER:
                self.machine.report.notes.append(
                    f"races: a cluster has more than {used:,} groups and mbarriers of asynchronous "
                    "work; the others are not told apart"
                )
            found = self.agents[key] = min(found, MBARRIER - 1)
            if found >= self.width:
                grow = max(8, (self.width - self.lanes) // 2)
                more = np.zeros((*self.known.shape[:2], grow), np.int32)
                self.known = np.concatenate([self.known, more], axis=2)
                self.width += grow
        return found

    # -- questions -----------------------------------------------------------------------------

    def waited_for(self, lane: int, column: int) -> str:
        """How one waits for the asynchronous work of a column of the cluster in which `lane` is."""
        for (cluster, kind, number), known in self.agents.items():
            if cluster != lane // self.lanes or known != column or kind not in _WAITS:
                continue
            offset = number % max(self.machine.memory.shared_stride, 1)
            return _WAITS[kind].format(offset if kind == "mbarrier" else number % LANES)
        return ""

    def are_settled(self, records: I64) -> bool:
        """Whether a barrier of their block has made all records known to everybody there."""
        return int(records.max()) >> TIME_SHIFT <= self.lowest

    def unordered(self, lanes: I64, records: I64) -> Bools:
        """Which accesses of the past the lanes do not know (arrays of one shape)."""
        time = records >> TIME_SHIFT
        bad = time > self.floor[lanes]
        if not bad.any():
            return bad
        which = np.nonzero(bad)
        lane, when = lanes[which], time[which]
        column = records[which] & COLUMN_MASK
        own = self.own[lane]
        known = self.known[0, lane, np.minimum(column, self.width - 1)]
        warp = (column >> 5 == own >> 5) & (when <= self.warp_floor[lane])
        bad[which] = ~((column == own) | warp | (when <= known))
        return bad

    def invisible(self, lanes: I64, records: I64, proxy: int | None = None) -> Bools:
        """Like `unordered`, for a lane that lets the asynchronous proxy access the bytes.

        What threads wrote must have passed a proxy fence on its way, their own writes too; `proxy`:
        that for shared memory, or another plane.
        """
        proxy = self.proxy if proxy is None else proxy
        time = records >> TIME_SHIFT
        column = records & COLUMN_MASK
        plane = np.where(column >= self.lanes, 0, proxy)
        known = self.known[plane, lanes, np.minimum(column, self.width - 1)]
        return (time > 0) & (time > known)

    # -- what makes an order -------------------------------------------------------------------

    def rows(self, lanes: I64) -> I32:
        """Everything the lanes know, themselves included: [planes, lanes, width]."""
        rows = self.known[:, lanes]
        self._complete(lanes, rows[0])
        return rows

    def _row(self, lanes: I64) -> I32:
        """The first plane of it: what no fence has had to do with."""
        row = self.known[0, lanes]
        self._complete(lanes, row)
        return row

    def _complete(self, lanes: I64, row: I32) -> None:
        """Adds to what is kept of lanes what all of a block or a warp know, and themselves."""
        first = row[:, : self.lanes]
        if self.machine.cluster_size == 1:
            np.maximum(first, self.floor[lanes][:, None], out=first)
        own = self.own[lanes]
        at = np.arange(len(lanes))[:, None]
        columns = (own // LANES * LANES)[:, None] + np.arange(LANES)
        row[at, columns] = np.maximum(row[at, columns], self.warp_floor[lanes][:, None])
        row[at[:, 0], own] = self.now

    def publish(self, lanes: I64) -> I32:
        """What these lanes (some) know together: [planes, width]. What they do next is later."""
        vector = self.rows(lanes).max(axis=1)
        self.now += 1
        return vector

    def acquire(self, lanes: I64, vector: I32) -> None:
        """The lanes learn what was published."""
        size, rows = vector.shape[1], as_slice(lanes)
        part = self.known[:, rows, :size]
        if isinstance(rows, slice):  # a view
            np.maximum(part, vector[:, None], out=part)
        else:
            self.known[:, rows, :size] = np.maximum(part, vector[:, None])
        counts = np.bincount(lanes // LANES)
        self.uneven[np.flatnonzero((counts > 0) & (counts < LANES))] = True

    def join(self, lanes: I64) -> None:
        """Each of the lanes learns what any of them knows."""
        if len(lanes):  # a membermask may name nobody
            self.acquire(lanes, self.publish(lanes))

    def join_blocks(self, lanes: I64) -> None:
        """`lanes` are all that is alive of some blocks, which are clusters of their own."""
        blocks = distinct(lanes // self.lanes)
        self._join((blocks[:, None] * self.lanes + np.arange(self.lanes)).ravel(), blocks)

    def join_whole_blocks(self, start: int, end: int) -> None:
        """The same of the lanes from `start` to `end`."""
        self._join(slice(start, end), range(start // self.lanes, end // self.lanes))

    def _join(self, rows: slice | I64, blocks: Sequence[int] | I64) -> None:
        everybody = len(blocks) * self.lanes == len(self.floor)
        if everybody:
            rows = slice(None)
        count = len(blocks) * self.lanes
        shape = (self.planes, len(blocks), self.lanes, -1)
        if self.width > self.lanes:
            agents = self.known[:, rows, self.lanes :].reshape(shape).max(axis=2, keepdims=True)
            spread = np.broadcast_to(agents, (*shape[:3], self.width - self.lanes))
            self.known[:, rows, self.lanes :] = spread.reshape(self.planes, count, -1)
        for plane in range(1, self.planes):
            fenced = self.known[plane, rows].reshape(len(blocks), self.lanes, -1)
            common = np.broadcast_to(fenced.max(axis=1, keepdims=True), fenced.shape)
            self.known[plane, rows] = common.reshape(count, -1)
        self.floor[rows] = self.now
        self.lowest = self.now if everybody else int(self.floor.min())
        if everybody:
            self.uneven[...] = False
        else:
            self.uneven[np.arange(len(self.floor))[rows] // LANES] = False
        self.now += 1

    def join_warps(self, lanes: I64) -> None:
        """`lanes` are all 32 lanes of some warps."""
        self.warp_floor[lanes] = self.now
        warps = distinct(lanes // LANES)
        for plane in range(1, self.planes):
            shape = (len(warps), LANES, self.width)
            rows = (warps[:, None] * LANES + np.arange(LANES)).ravel()
            fenced = self.known[plane, rows].reshape(shape)
            common = np.broadcast_to(fenced.max(axis=1, keepdims=True), shape)
            self.known[plane, rows] = common.reshape(-1, self.width)
        for warp in warps[self.uneven[warps]]:
            self.join(warp * LANES + np.arange(LANES))
            self.uneven[warp] = False
        self.now += 1

    def fence(self, lanes: I64, plane: int) -> None:
        """What the lanes know is dealt with by a fence of that plane."""
        if plane:
            self.known[plane, lanes] = np.maximum(self.known[plane, lanes], self._row(lanes))
            self.now += 1

    def fenced_plane(self, scope: int) -> int:
        """The plane of what a fence of at least that scope has dealt with; 0 if there is none."""
        first = self._first
        return next((first + i for i, s in enumerate(self.levels) if s >= scope), 0)

    def release(self, lanes: I64, scope: int) -> None:
        """A fence of that scope: what the lanes know can be handed on as far as it reaches."""
        first = self._first
        row = self._row(lanes)
        for plane in (first + i for i, s in enumerate(self.levels) if s <= scope):
            self.known[plane, lanes] = np.maximum(self.known[plane, lanes], row)
        self.now += 1

    def handed_on(self, lanes: I64, scope: int) -> I32:
        """What relaxed accesses of these lanes publish to those `scope` away: what is fenced."""
        vector = self.known[:, lanes].max(axis=1)
        plane = self.fenced_plane(scope)
        vector[0] = vector[plane] if plane else 0
        return vector


def as_slice(lanes: I64) -> slice | I64:
    """Ascending lanes as a slice where they are neighbours."""
    if not len(lanes):
        return lanes
    first, last = lanes.item(0), lanes.item(-1)
    return slice(first, last + 1) if last - first + 1 == len(lanes) else lanes


def unlike(records: I64) -> I64:
    """Where records stand, as one row, that are not like the one before: most of what a copy or a
    wgmma meets is alike."""
    flat = records.ravel()
    return np.concatenate([_FIRST[: flat.size], np.flatnonzero(flat[1:] != flat[:-1]) + 1])


_FIRST = np.zeros(1, np.int64)


def later(a: I32, b: I32 | None) -> I32:
    """The later of two times everywhere; columns that one of them lacks are never."""
    if b is None:
        return a
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    result = a.copy()
    result[:, : b.shape[1]] = np.maximum(a[:, : b.shape[1]], b)
    return result


# -- scopes ----------------------------------------------------------------------------------------
# Scopes of fences and strong accesses (PTX ISA 9.2, section 8.5): whom they reach.

#: From narrow to wide. On one device .sys reaches no further than .gpu.
BLOCK, CLUSTER, DEVICE = 1, 2, 3
_SCOPES = {"cta": BLOCK, "cluster": CLUSTER, "gpu": DEVICE, "gl": DEVICE, "sys": DEVICE}

#: Words that make a load or store strong (section 8.4).
STRONG_WORDS = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}
RELEASING = {"release", "acq_rel", "sc"}
ACQUIRING = {"acquire", "acq_rel", "sc"}


def scope_of(words: Sequence[str]) -> int:
    """The scope that an opcode names; of the device where it names none (atomics, volatile)."""
    return next((_SCOPES[w] for w in words if w in _SCOPES), DEVICE)


def strength(row: Opcode, words: Sequence[str]) -> int:
    """The scope of an atomic or another strong access, 0 for weak ones."""
    return scope_of(words) if row.strong or not STRONG_WORDS.isdisjoint(words) else 0


def is_ordering(row: Opcode, words: Sequence[str]) -> bool:
    """Whether it is a fence of memory, or an access that releases or acquires."""
    if row.fence in ("memory", "initialisations"):
        return True
    return bool(row.access) and not (RELEASING | ACQUIRING).isdisjoint(words)


def levels(program: Program, *, blocks: int, cluster: int) -> tuple[int, ...]:
    """The scopes of what releases in a kernel, in ascending order, as far as they differ.

    `blocks`: of the grid, `cluster`: of a cluster. Where there is one cluster alone, or one block,
    wider scopes are the same; one block of a cluster of its own is its cluster.
    """
    widest = BLOCK if blocks == 1 else CLUSTER if blocks == cluster else DEVICE
    found: set[int] = set()
    for row, words in program.rows():
        if is_ordering(row, words):
            level = scope_of(words)
            found.add(min(level if cluster > 1 or level != CLUSTER else BLOCK, widest))
    return tuple(sorted(found))


def strengths(program: Program, limit: int) -> npt.NDArray[np.int8]:
    """The strength of every instruction; those from `limit` on count as one, of the device."""
    found = [strength(row, words) for row, words in program.rows()]
    return np.array([*found[:limit], DEVICE], np.int8)


def proxies(program: Program) -> int:
    """How many kinds of fences of the asynchronous proxy are told apart: see `Clocks`."""
    if not any(row.by_proxy for row, _ in program.rows()):
        return 0
    partial = any(
        row.fence == "asynchronous" and fenced_spaces(words) != (True, True)
        for row, words in program.rows()
    )
    return 2 if partial else 1


def fenced_spaces(words: Sequence[str]) -> tuple[bool, bool]:
    """Whether a fence of the asynchronous proxy is for (shared, global) memory."""
    shared = any("shared" in w for w in words)
    everything = not shared and "global" not in words
    return shared or everything, "global" in words or everything
