"""The schedules that a product may have: what is enumerated, and what of it fits a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from typing import NamedTuple

from fragir.isa.model import BITS
from fragir.isa.products import DENSE, has_wgmma, shapes, wgmma_k
from fragir.isa.spelling import mnk
from fragir.isa.versions import CP_ASYNC, has
from fragir.ptx.machines import machine
from fragir.scheduling.devices import KIB, Device
from fragir.scheduling.l2 import best_group

REGISTERS = 255
"""Of a thread at most."""
_FILE = 65536  # registers of an SM (CUDA C++ Programming Guide, technical specifications)
_STAGED = 64 * KIB  # of C that is on its way through shared memory; more leaves in pieces
_TRANSPOSED = 16  # rows, times a number, that a warp transposes in shared memory
_BOX_BYTES = 64  # of a row of a tensor map's box at least, of tiles that have a choice
_LEAST_BETWEEN = 80  # columns of a tile: of fewer wgmma reads as much of A for less
_PRODUCER = 32  # threads of a role that only copies
IN_TENSOR_MEMORY = "in tensor memory"
"""Roles: a warp copies, a thread multiplies, warpgroups store sums while the next are formed."""
LEAVING = 34 * KIB
"""Of shared memory, for what then leaves by TMA: two pieces of 32 columns."""
_TENSOR_COLUMNS, _TENSOR_SUMS = 512, 2  # of tensor memory; tiles whose sums lie there
_STORING_REGISTERS = 96  # of a thread that stores 64 columns at a time, as ptxas gave them


class GemmProblem(NamedTuple):
    """D = A B + C of these sizes and types on a device."""

    m: int
    n: int
    k: int
    element: str
    """Of A and B, as in "f16"."""
    sums: str
    """What products are added in."""
    result: str
    """Of C."""
    a_transposed: bool
    b_transposed: bool
    target: str
    device: Device
    promote: int = 0
    """After how many of K a partial sum is added to the whole one; 0 where there is one sum."""
    batch: int = 1
    """So many such products in one launch."""

    def __repr__(self) -> str:
        sizes = f"{self.m} x {self.n} x {self.k}"
        types = f"{self.element} into {self.result} by {self.sums}"
        return f"<product {sizes}, {types}, on {self.device.name} as {self.target}>"

    @property
    def bits(self) -> int:
        """Bits of an element in memory: narrow floats stand in bytes, but for two in one."""
        return 4 if self.element == "e2m1x2" else max(BITS[self.element], 8)

    @property
    def wgmma(self) -> bool:
        """Whether warpgroups multiply, what lies across K from registers or transposed."""
        return has_wgmma(self.element, self.target)

    @property
    def turned(self) -> bool:
        """Whether C^T is formed, as wgmma reads its first operand only from registers."""
        return self.wgmma and self._is_crossed[1]

    @property
    def from_registers(self) -> bool:
        """Whether wgmma reads an operand from registers: other than 16-bit by columns of K."""
        return self.wgmma and any(self._is_crossed)

    @property
    def transposes(self) -> bool:
        """Whether an operand is transposed in shared memory, as both lie across K: A, the other is
        read from registers."""
        return self.wgmma and all(self._is_crossed)

    @property
    def _is_crossed(self) -> tuple[bool, bool]:
        return self.bits != 16 and self.a_transposed, self.bits != 16 and not self.b_transposed


class Configuration(NamedTuple):
    """One way to compute a product."""

    tile: tuple[int, int, int]
    """Rows and columns of C that a block computes, and so much of K at a time."""
    warps: tuple[int, int]
    """Of a tile along M and N; warpgroups where wgmma multiplies."""
    stages: int
    wgmma: bool
    roles: str = "together"
    """"together": all threads copy and multiply; "cooperative": a warp copies, the others share a
    tile; "ping-pong": a warp copies, two groups compute a tile each, in turn; or
    `IN_TENSOR_MEMORY`."""
    cluster: int = 1
    persistent: bool = False
    order: str = "rows"
    group: int = 1
    staged: bool = False
    """C goes through shared memory on its way."""
    parts: int = 1
    """Blocks that add up a tile, each a part of K; where `even`, so many at most."""
    even: bool = False
    """The blocks that run at once share all steps of all tiles evenly (stream-K)."""
    pair: bool = False
    """The two blocks of a cluster multiply together, and each has half of B."""

    def __repr__(self) -> str:
        tile, warps = ("x".join(map(str, each)) for each in (self.tile, self.warps))
        more = [f"cluster {self.cluster}"] if self.cluster > 1 else []
        more += ["persistent"] if self.persistent else []
        more += [f"{self.parts} parts"] if self.parts > 1 else []
        words = ", ".join([f"{self.stages} stages", self.roles, *more])
        return f"<tile {tile}, warps {warps}, {words}, by {self.order}>"

    @property
    def multiplying(self) -> int:
        """Threads that multiply."""
        return self.threads_of_a_tile * (2 if self.roles == "ping-pong" else 1)

    @property
    def threads_of_a_tile(self) -> int:
        """Threads that share a tile."""
        return self.warps[0] * self.warps[1] * (128 if self.wgmma or self.tensor else 32)

    @property
    def tensor(self) -> bool:
        """Whether sums lie in tensor memory."""
        return self.roles == IN_TENSOR_MEMORY

    @property
    def threads(self) -> int:
        """Threads of a block."""
        if self.tensor:  # the warps of other roles share a warpgroup
            return self.multiplying + 4 * _PRODUCER
        return self.multiplying + (0 if self.roles == "together" else _PRODUCER)

    def registers(self, problem: GemmProblem) -> int:
        """Of a thread that multiplies, as ptxas gave them for kernels of this make: sums, operands
        of two steps for mma.sync (wgmma reads them from memory), addresses."""
        if self.tensor:
            return _STORING_REGISTERS
        m, n, _ = self.tile
        sums = m * n * BITS[problem.sums] // (32 * self.threads_of_a_tile)
        if problem.promote:  # partial and whole ones
            sums *= 2
        if self.wgmma:
            return sums + (88 + self._held_registers(problem) if problem.from_registers else 40)
        rows, columns = m // self.warps[0], n // self.warps[1]
        return sums + (rows + columns) // 2 + 48  # 32 bytes a row and step, in 32 lanes, twice

    def _held_registers(self, problem: GemmProblem) -> int:
        """Registers of a thread for what wgmma reads from them beyond 128 bytes of K: half of it at
        a time, as ptxas gave them (fp8, promoted every 256 and 512 of K)."""
        m, n, k = self.tile
        deeper = max(0, k * problem.bits // 8 - 128)
        return (n if problem.turned else m) * deeper // (8 * self.threads_of_a_tile)

    def shared(self, problem: GemmProblem) -> int:
        """Bytes of shared memory of a block."""
        m, n, k = self.tile
        bits = BITS[problem.result] if self.parts == 1 else BITS[problem.sums]
        staging = self.multiplying // self.threads_of_a_tile * m * n * bits // 8
        staging = min(staging, LEAVING if self.tensor else _STAGED) if self.staged else 0
        barriers = 16 * self.stages if self.roles != "together" else 0
        slots = self.stages * (m + (n // 2 if self.pair else n))
        if problem.transposes:  # each role that multiplies, for itself; with roles two by turns
            places = 1 if self.roles == "together" else 2
            slots += places * (self.multiplying // self.threads_of_a_tile) * m
        return slots * k * problem.bits // 8 + staging + barriers

    def problem(self, problem: GemmProblem) -> str | None:
        """Why it cannot be; None where it fits."""
        registers, shared = self.registers(problem), self.shared(problem)
        if registers > REGISTERS:
            return f"{registers} registers a thread would spill"
        if shared > machine(problem.target).shared:
            return f"{shared} bytes of shared memory are too many"
        if problem.transposes and self.tile[0] % (_TRANSPOSED * self.threads_of_a_tile // 32):
            return f"{self.tile[0]} rows are not handed out to {self.threads_of_a_tile // 32} warps"
        if not self.resident(problem):
            return "no SM has room for a block"
        if self.cluster > machine(problem.target).cluster:
            return f"{problem.target} has no clusters of {self.cluster}"
        return None

    def resident(self, problem: GemmProblem) -> int:
        """Blocks that an SM has room for."""
        registers = ceil(self.registers(problem) / 8) * 8 * self.threads
        room = problem.device.room(self.threads, self.shared(problem))
        if self.tensor:  # so many columns are a power of two
            columns = 1 << (_TENSOR_SUMS * self.tile[1] - 1).bit_length()
            room = min(room, _TENSOR_COLUMNS // columns)
        return min(room, _FILE // registers)


class WarpTile(NamedTuple):
    """A tile and who multiplies it."""

    tile: tuple[int, int, int]
    warps: tuple[int, int]


class SearchSpace(NamedTuple):
    """Which candidates there are: what a compiler knows to write."""

    roles: Sequence[str] = ("together",)
    clusters: Sequence[int] = (1,)
    persistent: Sequence[bool] = (False,)
    orders: Sequence[tuple[str, int]] = (("rows", 1),)
    """Each with rows of a group; 0 is the group that reads least."""
    staged: Sequence[bool] = (False,)
    most_stages: int = 3
    deepest: int = 0
    """The same once more, where many copies are to be under way; 0 for no more."""
    parts: tuple[tuple[int, bool], ...] = ((1, False),)
    """Each with whether that is at most so many, in even shares."""
    only: tuple[tuple[int, int, int], tuple[int, int], int] | None = None
    """Tile, warps and stages where they are said."""
    tile: WarpTile | None = None
    """A tile that is said, and who multiplies it where one role does."""
    stages: int | None = None
    """Stages that are said."""
    between: bool = True
    """Whether tiles may have columns between powers of two."""


FRAG_TILE = SearchSpace()
"""Without roles: one loop of all threads over K, a block a tile."""
SPECIALISED = SearchSpace(
    ("cooperative", "ping-pong"), (1, 2), (True,), (("grouped", 0),), (True,), 6
)
"""What warps of different roles do: one copies, persistent, C by shared memory."""
EVERY = SearchSpace(
    ("together", "cooperative", "ping-pong"),
    (1, 2),
    (False, True),
    (("rows", 1), ("grouped", 0)),
    (False, True),
    6,
)
"""Whatever this model can rank."""


def in_parts(most: int) -> tuple[tuple[int, bool], ...]:
    """Into how many parts, at most `most`, sums may be cut: for `SearchSpace.parts`."""
    counts = [count for count in (2, 3, 4, 6, 8, 12, 16) if count <= most]
    return tuple((count, even) for even in (False, True) for count in counts)


def configurations(problem: GemmProblem, space: SearchSpace = FRAG_TILE) -> Iterator[Configuration]:
    """All that fit the machine, tile by tile."""
    if space.only is not None:
        shapes = iter((WarpTile(*space.only[:2]),))
    elif space.tile is not None:
        shapes = iter((space.tile,))
    else:
        shapes = shapes_of(problem, space.between)
    for shape in shapes:
        for candidate in _of(problem, shape, space):
            if candidate.problem(problem) is None:
                yield candidate


def shapes_of(problem: GemmProblem, between: bool = True) -> Iterator[WarpTile]:
    """Tiles that instructions divide, none more than twice as large as the matrix."""
    if problem.wgmma:
        k = problem.promote or max(1024 // problem.bits, wgmma_k(problem.element))
        sides = problem.m, problem.n
        down, across = sides[::-1] if problem.turned else sides
        step = 0 if problem.promote or not between else _column_step(problem)
        columns = _columns((32, 64, 128, 256), across, step)
        for m in _sizes((64, 128, 256), down):
            for n in columns:
                groups = 1 if m == 64 else 2
                if m * n > 128 * 256:
                    continue
                if problem.turned:
                    yield WarpTile((n, m, k), (1, groups))
                else:
                    yield WarpTile((m, n, k), (groups, 1))
        return
    step_m, step_n, step_k = mnk(shapes(DENSE, problem.element, False)[0])
    deep = 1024 // problem.bits if BITS[problem.element] < 64 else 16
    step = 32 if between and not problem.promote and problem.bits <= 32 else 0
    for k in (problem.promote,) if problem.promote else (deep // 2, deep):
        if k % step_k:
            continue
        for m in _sizes((32, 64, 128, 256), problem.m):
            for n in _columns((32, 64, 128, 256), problem.n, step):
                for warps in _warps(m, n):
                    if m % (warps[0] * step_m) == 0 and n % (warps[1] * step_n) == 0:
                        yield WarpTile((m, n, k), warps)


def _column_step(problem: GemmProblem) -> int:
    """In which steps the columns of a tile are looked at between powers of two, of wgmma.

    Along K a box of a tensor map has all of them. Across K it has as many as its swizzle, and one
    of 32 bytes would ask L2 for a sector at a time.
    """
    across = problem.bits == 16 and not problem.b_transposed
    return _BOX_BYTES * 8 // problem.bits if across else 16


def _sizes(sizes: Sequence[int], whole: int) -> list[int]:
    """Those of which more than half is used, and the smallest."""
    return [size for size in sizes if size < 2 * whole] or [sizes[0]]


def _columns(sizes: Sequence[int], whole: int, step: int) -> list[int]:
    """Sizes as of `_sizes`, and those between, in steps, that are the least to cut the matrix into
    so many."""
    found = _sizes(sizes, whole)
    if step:
        between = range(-(-_LEAST_BETWEEN // step) * step, min(sizes[-1], 2 * whole), step)
        found += [
            size
            for size in between
            if size not in sizes and ceil(whole / size) < ceil(whole / (size - step))
        ]
    return found


def _warps(m: int, n: int) -> Iterator[tuple[int, int]]:
    """Four warps or eight, whose parts are as square as they can be."""
    for count in (4, 8):
        pairs = [(a, count // a) for a in (1, 2, 4, 8) if count % a == 0]
        yield min(pairs, key=lambda pair: (m // pair[0] + n // pair[1], pair[0]))


def _of(problem: GemmProblem, shape: WarpTile, space: SearchSpace) -> Iterator[Configuration]:
    for role in space.roles:
        if role != "together" and not problem.wgmma:
            continue
        few = _tiles(problem, shape.tile) <= problem.device.sms and space.only is None
        if role == "ping-pong" and few:
            continue  # a block has one tile, and nothing to do by turns
        warps = shape.warps if role != "ping-pong" or space.only is not None else (1, 1)
        depths: dict[tuple[bool, int], Sequence[int]] = {}
        for cluster, persistent, (order, group), staged, (parts, even) in product(
            space.clusters if role != "together" else (1,),
            space.persistent if role == "together" else (True,),
            space.orders,
            space.staged,
            space.parts,
        ):
            if len(space.parts) > 1 and not _worth_parts(problem, shape.tile, parts):
                continue
            if cluster > 1 and problem.m <= shape.tile[0] and space.only is None:
                continue  # no two tiles share columns of B
            running = problem.device.sms // cluster
            rows = group or best_group(shape.tile[0] * cluster, shape.tile[1], running)
            goes_on = persistent or even
            words = (problem.wgmma, role, cluster, goes_on, order, rows, staged, parts, even)
            if space.only is not None:
                stages: Sequence[int] = (space.only[2],)
            elif space.stages is not None:
                stages = (space.stages,)
            elif (staged, parts) in depths:
                stages = depths[staged, parts]
            else:
                first = Configuration(shape.tile, warps, 1, *words)
                most = [space.most_stages, space.deepest] if space.deepest else [space.most_stages]
                found = {each for limit in most for each in _depths(problem, first, limit)}
                stages = depths[staged, parts] = sorted(found, reverse=True)
            yield from (Configuration(shape.tile, warps, each, *words) for each in stages)


def _worth_parts(problem: GemmProblem, tile: tuple[int, int, int], parts: int) -> bool:
    """Whether sums are looked at in so many parts: each of some steps, and of so few tiles that
    SMs wait for work."""
    if parts == 1:
        return True
    return problem.k >= 4 * parts * tile[2] and _tiles(problem, tile) < 4 * problem.device.sms


def _tiles(problem: GemmProblem, tile: tuple[int, int, int]) -> int:
    return ceil(problem.m / tile[0]) * ceil(problem.n / tile[1]) * problem.batch


def _depths(problem: GemmProblem, candidate: Configuration, most: int) -> list[int]:
    """For each number of blocks that an SM may hold, as many stages as leave room for them."""
    if not has(CP_ASYNC, problem.target):
        return [1]
    held, found = 0, list[int]()
    for stages in range(most, 1, -1):
        resident = candidate._replace(stages=stages).resident(problem)
        if resident > held:
            found.append(stages)
            held = resident
    return found
