"""The state of the resident warps: registers, memory, special registers, where each lane stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.events import Observer
from fragir.emulator.machine.lanes import LANES, Row, Select
from fragir.emulator.machine.memory import CLUSTER_SHIFT, Buffer, DeviceMemory
from fragir.emulator.numbers.types import I32, I64, UINT, Array, Bools
from fragir.emulator.report import Asynchrony, Report

# -- past grids ------------------------------------------------------------------------------------
# Grids that were launched before, on the same memory: programmatic dependent launch.
#
# A grid that has executed `griddepcontrol.launch_dependents` in all of its blocks, or has ended in
# those that have not, lets the next one begin; `griddepcontrol.wait` is what waits until it has
# ended and its memory can be seen (PTX ISA 9.2, section 9.7.13.13). Here grids run one after the
# other, so that what they compute is what they compute in that order; which of their accesses
# could come in another one the checks find out.


@dataclass(frozen=True, slots=True)
class PastGrid:
    """A grid that has run.

    `released`: whether a thread executed launch_dependents; `waited`: whether one executed wait.
    `running`: earlier grids that might still run when it began; `left`: those that its wait does
    not wait for. `homes`: where the bytes of its buffers lie, by `Buffer.start`: the memory of the
    caller, or a variable, and the address there. `accesses`: what its check of races has kept.
    """

    entry: str
    released: bool
    waited: bool
    running: tuple[PastGrid, ...]
    left: tuple[PastGrid, ...]
    buffers: tuple[Buffer, ...]
    homes: dict[int, tuple[Hashable, int]]
    accesses: Any = None

    def next_to(self) -> tuple[tuple[PastGrid, ...], tuple[PastGrid, ...]]:
        """The grids that may still run when a dependent of this one begins, and those of them that
        the dependent's wait does not wait for. The latest first."""
        left = self.left if self.waited else self.running
        return ((self, *self.running) if self.released else left), left


#: `key` of a lane is its position, plus one of these where it cannot run.
PARKED = 1 << 24  # polls; runs again in the next round
WAITING = 1 << 25  # at a collective instruction, until the other lanes come
BLOCKED = 1 << 26  # at a barrier
EXITED = 1 << 28

Dim3 = tuple[int, int, int]


_TICK = 1 << 15  # nanoseconds: what a turn of a loop takes here, so that time-outs last as long


class Clock:
    """A register that ticks: every read is later, so that loops which time out do.

    By reads and not by the host's time: the same launch sees the same times.
    """

    def __init__(self, reads: Iterator[int], dtype: npt.DTypeLike, shift: int = 0) -> None:
        self.reads, self.dtype, self.shift = reads, np.dtype(dtype), shift

    def view(self, dtype: npt.DTypeLike) -> Clock:
        """What it will read, seen as another type of the same size."""
        return Clock(self.reads, dtype, self.shift)

    def __getitem__(self, sel: Select) -> Row:
        ticks = next(self.reads) >> self.shift
        size = self.dtype.itemsize
        low = ticks & ((1 << (8 * size)) - 1)
        return np.full((1, LANES), low, UINT[size]).view(self.dtype)


class State:
    """`blocks` resident blocks of `warps_per_block` warps; reused wave after wave.

    A row of a register file is indexed [warp, lane]; warps of one block are neighbours, blocks
    of one cluster too.
    """

    def __init__(
        self,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        blocks: int,
        counts: dict[int, int],
        memory: DeviceMemory,
        report: Report,
        asynchrony: Asynchrony,
        seed: int | None,
    ) -> None:
        self.grid, self.block, self.cluster = grid, block, cluster
        self.threads = block[0] * block[1] * block[2]
        self.warps_per_block = (self.threads + LANES - 1) // LANES
        self.blocks = blocks
        self.warps = blocks * self.warps_per_block
        self.cluster_size = cluster[0] * cluster[1] * cluster[2]
        self.memory = memory
        self.jobs = 1  # threads that may share the work of a step
        self.report = report
        self.asynchrony = asynchrony
        self.random = Random(seed)
        shape = (self.warps, LANES)
        self.lane_ids: I64 = np.arange(self.warps * LANES, dtype=np.int64).reshape(shape)
        self.files: dict[int, Array] = {
            width: np.zeros((count, *shape), np.bool_ if width == 1 else UINT[width // 8])
            for width, count in counts.items()
        }
        self.carry: Row = np.zeros(shape, np.bool_)
        self.key: I32 = np.zeros(shape, np.int32)
        self.alive: Bools = np.ones(shape, np.bool_)
        self.resident = self.warps  # warps of the wave that runs now
        self.first_block = 0  # its first block, in cluster order
        self.progress = False  # whether something changed that another lane could see
        self.block_of: npt.NDArray[np.intp] = np.arange(self.warps) // self.warps_per_block
        self.stack: list[Row] = []  # return positions by call depth
        #: By call depth: frame and end of the stack of the caller.
        self.frames: list[tuple[Row, Row]] = []
        #: Of each lane's local memory: where the frame of its function begins, and the stack ends.
        self.frame: Row = np.zeros(shape, np.uint64)
        self.stack_top: Row = np.zeros(shape, np.uint64)
        self.stack_base = 0
        #: Registers of functions that are called again: (function, depth, width) -> rows.
        self.kept: dict[tuple[str, int, int], Row] = {}
        self.output: TextIO | None = None  # where printf prints to
        self.said: dict[int, str] = {}  # what lanes of this wave have printed last
        #: Takes a cluster that waits off the launch: %ctaid of its first block, None if none does.
        self.cancel: Callable[[], Dim3 | None] | None = None
        self.depth: Row = np.zeros(shape, np.int32)
        self._reads = count(1 << 40, _TICK)  # of clocks
        self.reads_clocks = False  # whether any instruction does
        self._special: dict[str, Row] = {}
        self._block_ids: npt.NDArray[np.int64] = np.zeros(self.warps, np.int64)
        self.dynamic_shared = 0
        self.reserved_shared = 0  # bytes before the kernel's own
        #: Registers whose value the launch gives, without their %; others of their kind are 0.
        self.environment: dict[str, int] = {}
        self.chained = False  # whether other grids run before or after, on the same memory
        #: Then where the bytes of buffers lie beside in device memory, by `Buffer.start`: in whose
        #: memory, and the address there.
        self.homes: dict[int, tuple[Hashable, int]] = {}
        #: Where the caller's arrays lie that buffers stand for, by `Buffer.start`.
        self.hosts: dict[int, int] = {}
        self.released = self.waited = False  # griddepcontrol.launch_dependents, and .wait
        #: Earlier grids that may still run; of these, those that no wait waits for.
        self.running: tuple[PastGrid, ...] = ()
        self.left: tuple[PastGrid, ...] = ()
        self.on_wave: list[Callable[[], None]] = []
        self.hooks: Sequence[Observer] = ()  # the checks of this launch

    def retires_now(self) -> bool:
        """Whether asynchronous work retires at its issue."""
        how = self.asynchrony
        return how == "early" or (how == "random" and self.random.random() < 0.5)

    # -- waves -------------------------------------------------------------------------------

    def start_wave(self, first: int, count: int) -> None:
        """Put blocks first.. first+count-1 (in cluster order) on the machine."""
        self.said.clear()
        self.resident, self.first_block = count * self.warps_per_block, first
        ids = np.arange(first, first + self.blocks, dtype=np.int64)
        self._block_ids = np.repeat(np.minimum(ids, first + count - 1), self.warps_per_block)
        thread = self.thread_ids()
        self.alive[...] = thread < self.threads
        self.alive[self.resident :] = False
        self.key[...] = np.where(self.alive, 0, EXITED)
        self.depth[...] = 0
        self.frame[...] = 0
        self.stack_top[...] = self.stack_base
        self.memory.shared.bytes[...] = 0
        for name, row in self._special.items():
            if not name.startswith("tid."):  # which no wave changes
                row[...] = self._compute(name)
        for action in self.on_wave:
            action()
        for hook in self.hooks:
            hook.on_wave_start()

    def thread_ids(self) -> npt.NDArray[np.int64]:
        """Thread number within its block, [warp, lane]."""
        warp = np.arange(self.warps, dtype=np.int64) % self.warps_per_block
        return warp[:, None] * LANES + np.arange(LANES)

    def block_coordinates(self) -> npt.NDArray[np.int64]:
        """%ctaid of every warp: [warp, 3]. Blocks of a cluster are numbered next to each other."""
        return self.coordinates(self._block_ids)

    def coordinates(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """%ctaid of blocks by their numbers in cluster order: one more axis of 3."""
        size = np.array(self.cluster)
        clusters = np.array(self.grid) // size
        which, rank = np.divmod(numbers, self.cluster_size)
        base = _unflatten(which, clusters)
        return base * size + _unflatten(rank, size)

    def coordinates_of(self, block: int) -> tuple[int, ...]:
        """%ctaid of a block by its number in cluster order."""
        size = np.array(self.cluster)
        which, rank = divmod(block, self.cluster_size)
        base = _unflatten(np.array(which), np.array(self.grid) // size)
        return tuple(int(c) for c in base * size + _unflatten(np.array(rank), size))

    def place(self, warp: int) -> tuple[tuple[int, ...], int]:
        """(ctaid, warp within the block) of a resident warp, for messages.

        Warps of earlier waves have negative numbers.
        """
        block, local = divmod(warp, self.warps_per_block)
        return self.coordinates_of(self.first_block + block), local

    # -- special registers -----------------------------------------------------------------------

    def special(self, name: str) -> Row | Clock | None:
        """The row of a special register (PTX ISA 9.2, section 10), without its %."""
        if name in _CLOCKS:
            self.reads_clocks = True
            return Clock(self._reads, *_CLOCKS[name])
        found = self._special.get(name)
        if found is None:
            value = self._compute(name)
            if value is None:
                return None
            found = np.zeros((self.warps, LANES), value.dtype)
            found[...] = value
            self._special[name] = found
        return found

    def _compute(self, name: str) -> Array | None:
        stem, _, part = name.partition(".")
        axis = "xyz".find(part) if part else -1
        size = np.array(self.cluster)
        if part == "w" and stem in _FOURTH:
            return np.zeros((1, 1), np.uint32)
        if part and axis < 0:
            return None
        if part:
            per_warp: dict[str, Callable[[], Array]] = {
                "ctaid": lambda: self.block_coordinates()[:, axis],
                "nctaid": lambda: np.array([self.grid[axis]]),
                "ntid": lambda: np.array([self.block[axis]]),
                "clusterid": lambda: self.block_coordinates()[:, axis] // size[axis],
                "nclusterid": lambda: np.array([self.grid[axis] // self.cluster[axis]]),
                "cluster_ctaid": lambda: self.block_coordinates()[:, axis] % size[axis],
                "cluster_nctaid": lambda: np.array([self.cluster[axis]]),
            }
            if stem == "tid":
                return _unflatten(self.thread_ids(), np.array(self.block))[..., axis].astype(
                    np.uint32
                )
            if stem not in per_warp:
                return None
            return np.asarray(per_warp[stem]())[:, None].astype(np.uint32)
        lane = np.arange(LANES, dtype=np.uint64)[None, :]
        one = np.uint64(1)
        warp = np.arange(self.warps) % self.warps_per_block
        scalars: dict[str, Callable[[], npt.ArrayLike]] = {
            "laneid": lambda: lane,
            "warpid": lambda: warp[:, None],
            "nwarpid": lambda: self.warps_per_block,
            "smid": lambda: self._block_ids[:, None] % 132,
            "nsmid": lambda: 132,
            "lanemask_eq": lambda: one << lane,
            "lanemask_lt": lambda: (one << lane) - one,
            "lanemask_le": lambda: (one << (lane + one)) - one,
            "lanemask_gt": lambda: 0xFFFFFFFF ^ ((one << (lane + one)) - one),
            "lanemask_ge": lambda: 0xFFFFFFFF ^ ((one << lane) - one),
            "cluster_ctarank": lambda: self._block_ids[:, None] % self.cluster_size,
            "cluster_nctarank": lambda: self.cluster_size,
            "dynamic_smem_size": lambda: self.dynamic_shared,
            "total_smem_size": lambda: self.memory.shared_size - self.reserved_shared,
            "aggr_smem_size": lambda: self.memory.shared_size,
            "shared_window": lambda: (
                (self._block_ids[:, None] % self.cluster_size) << CLUSTER_SHIFT
            ),
        }
        if name in ("gridid", "current_graph_exec") or _COUNTER.fullmatch(name):
            return np.zeros((1, 1), np.uint32 if _COUNTER.fullmatch(name + "_64") else np.uint64)
        if name == "is_explicit_cluster":
            return np.full((1, 1), self.cluster_size > 1, np.bool_)
        if _GIVEN.fullmatch(name):
            return np.full((1, 1), self.environment.get(name, 0), np.uint32)
        if name not in scalars:
            return None
        return np.atleast_2d(np.asarray(scalars[name]())).astype(np.uint32)


#: Registers of four parts, the last of which is unused.
_FOURTH = {
    *("tid", "ntid", "ctaid", "nctaid"),
    *("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"),
}
#: Performance counters count nothing here.
_COUNTER = re.compile(r"pm[0-7](_64)?")
_GIVEN = re.compile(r"envreg(\d|[12]\d|3[01])|reserved_smem_offset_(begin|end|cap|0|1)")

#: Type, and how far the value is shifted to the right.
_CLOCKS: dict[str, tuple[type[np.uint32 | np.uint64], int]] = {
    "clock": (np.uint32, 0),
    "clock_hi": (np.uint32, 32),
    "clock64": (np.uint64, 0),
    "globaltimer": (np.uint64, 0),
    "globaltimer_lo": (np.uint32, 0),
    "globaltimer_hi": (np.uint32, 32),
}


def _unflatten(index: Array, size: Array) -> npt.NDArray[np.int64]:
    """x fastest: [..., 3]."""
    x = index % size[0]
    y = index // size[0] % size[1]
    return np.stack([x, y, index // (size[0] * size[1])], axis=-1)
