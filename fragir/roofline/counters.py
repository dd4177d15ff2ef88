"""What one block of a launch does: bytes of each memory, requests, instructions, waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from fragir.roofline.lanes import LANES, LaunchView, WarpAccess, WarpWork

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Block, Operation

SECTOR = 32
"""Bytes of global memory that are moved together (CUDA C++ Best Practices Guide, "Coalesced Access
to Global Memory")."""
LINE = 128
"""Bytes of a line of L1, of which it looks up one in a cycle."""
WIDEST = 16
"""Bytes of the widest access of a lane."""
KEPT = 128 * 1024
"""Bytes that a block reads again from L1."""


@dataclass
class MemoryUse:
    """What a block reads of one memory, or writes there, in one body of a loop (or outside)."""

    memory: int | None
    writes: bool
    operation: Operation
    """The first one that does."""
    turns: float
    """How often the body is executed."""
    distinct_turns: float
    """In how many of its turns it is at other places."""
    requests: float = 0.0
    """Of all warps in one turn."""
    sectors: float = 0.0
    """Of all requests of a turn."""
    lines: float = 0.0
    """Of L1, of all requests of a turn."""
    touched: float = 0.0
    """Sectors that a turn touches, each counted once."""
    wanted: float = 0.0
    """Bytes that are wanted in a turn, each counted once."""
    asked: float = 0.0
    """Bytes of all lanes in a turn, as often as they are asked for."""
    known: bool = True
    """Whether the places are known."""
    size: int = WIDEST
    """Bytes of the narrowest access of a lane."""
    beside: int = WIDEST
    """Bytes of one lane that lie side by side in memory, which it may access by several."""

    @property
    def bytes(self) -> float:
        """Bytes that are wanted in all turns, each counted once."""
        return self.wanted * self.distinct_turns

    @property
    def once(self) -> float:
        """Bytes of all sectors that it touches, each counted once."""
        return self.touched * SECTOR * self.distinct_turns


@dataclass
class BlockCounters:
    """One block of a launch."""

    traffic: list[MemoryUse] = field(default_factory=list[MemoryUse])
    issued: float = 0.0
    """Instructions of all warps."""
    special: float = 0.0
    """Of these, by the unit for functions."""
    multiplied: float = 0.0
    """Multiplications of floating-point numbers by the unit for arithmetic, of all lanes."""
    products: dict[tuple[Operation, str], float] = field(
        default_factory=dict["tuple[Operation, str]", float]
    )
    """Tensor-core instructions of all warps, or warpgroups: the operation, the mnemonic."""
    waits: float = 0.0
    """How often a warp waits for memory, one time after the other."""


def sampled_warps(count: int) -> list[tuple[int, int]]:
    """Warps that are looked at, and for how many each stands: one of each group of four, and the
    first, which often copies for all."""
    found = [(0, 1), (1, min(3, count - 1))][:count]
    found += [(warp, min(4, count - warp)) for warp in range(4, count, 4)]
    return found


def block_work(function: FuncOp, launch: LaunchView, shared: int) -> BlockCounters:
    """What a block does; `shared` are its bytes of shared memory, in which copies are under way."""
    result = BlockCounters()
    groups: dict[tuple[int | None, bool, Block], list[tuple[int, list[WarpAccess]]]] = {}
    ahead: dict[Block, float] = {}
    waits: list[float] = []
    for warp, standing in sampled_warps(-(-launch.threads // LANES)):
        work = WarpWork(function, launch, warp)
        result.issued += standing * work.issued
        result.special += standing * work.special
        result.multiplied += standing * LANES * work.multiplied
        for key, times in work.products.items():
            by = 4 if key[1].startswith("wgmma") else 1  # a warpgroup has four warps
            result.products[key] = result.products.get(key, 0.0) + standing * times / by
        own: dict[tuple[int | None, bool, Block], list[WarpAccess]] = {}
        for access in work.accesses:
            own.setdefault((access.memory, access.writes, access.body), []).append(access)
            if access.kind in ("copy", "bulk"):
                size = access.size if access.at is None else access.size * len(access.at)
                ahead[access.body] = ahead.get(access.body, 0.0) + standing * size
        for key, accesses in own.items():
            groups.setdefault(key, []).append((standing, accesses))
        waits.append(sum(_waits(work.accesses)))
    result.traffic = [_traffic(key, found) for key, found in groups.items()]
    result.waits = max(waits, default=0.0)
    for accesses in groups.values():
        body, first = accesses[0][1][0].body, accesses[0][1][0]
        if body in ahead and first.loops:
            stages = max(2.0, shared // ahead.pop(body))
            result.waits = max(result.waits, first.times / (stages - 1))
    return result


def _waits(accesses: Iterable[WarpAccess]) -> Iterator[float]:
    """How often a warp waits for what it reads: once a turn, and for places that it has read."""
    seen: dict[Block, float] = {}
    for access in accesses:
        if access.kind == "load":
            times = seen.get(access.body, 0.0)
            depends = access.at is None
            seen[access.body] = max(times, access.times * (2 if depends else 1))
    yield from seen.values()


def _traffic(
    key: tuple[int | None, bool, Block], found: Sequence[tuple[int, list[WarpAccess]]]
) -> MemoryUse:
    memory, writes, _ = key
    first = found[0][1][0]
    varies = 0
    for _, accesses in found:
        for access in accesses:
            varies |= access.varies
    result = MemoryUse(
        *(memory, writes, first.op, first.times),
        prod(loop.turns for loop in first.loops if loop.bit & varies),
    )
    sectors: list[set[int]] = []
    starts: list[set[tuple[int, int]]] = []
    spread = bulk = bytes_ = 0.0
    for standing, accesses in found:
        own, places = set[int](), set[tuple[int, int]]()
        for access in accesses:
            part = access.times / first.times * standing
            if access.at is None:
                result.known = result.known and access.kind != "load"
                lanes = 1 if access.kind in ("bulk", "store") and access.size > WIDEST else LANES
                bulk += part * access.size * lanes
                result.requests += part
                continue
            size = access.size
            touched = {start // SECTOR for start in access.at}
            if size > 1:
                touched |= {(start + size - 1) // SECTOR for start in access.at}
            own |= touched
            places.update((start, size) for start in access.at)
            result.requests += part
            result.sectors += part * len(touched)
            result.lines += part * len({sector // (LINE // SECTOR) for sector in touched})
            result.asked += part * size * len(access.at)
            result.size = min(result.size, size)
        sectors.append(own)
        starts.append(places)
        spread += standing * len(own)
        bytes_ += standing * sum(size for _, size in places)
    result.touched = _together(sectors, spread) + bulk / SECTOR
    seen = set[tuple[int, int]]().union(*starts)
    union = float(sum(size for _, size in seen))
    each = [float(sum(size for _, size in own)) for own in starts]
    result.wanted = _estimated(union, each, bytes_) + bulk
    result.sectors += bulk / SECTOR
    result.lines += bulk / LINE
    result.asked += bulk
    result.beside = _beside(found[0][1], result.size)
    return result


def _together(sets: Sequence[set[int]], all_: float) -> float:
    union = float(len(set[int]().union(*sets)))
    return _estimated(union, [float(len(each)) for each in sets], all_)


def _estimated(union: float, each: Sequence[float], all_: float) -> float:
    """The union over all warps, from that over some of them: between what one has and the sum."""
    total, largest = sum(each), max(each, default=0.0)
    if total <= largest:
        return all_ if len(each) <= 1 else largest
    apart = (union - largest) / (total - largest)
    return largest + apart * (all_ - largest)


def _beside(accesses: Sequence[WarpAccess], size: int) -> int:
    """Bytes side by side that one lane accesses by several instructions, up to the widest."""
    starts = sorted({a.at[0] for a in accesses if a.at and a.size == size})
    longest = run = size
    for one, other in pairwise(starts):
        run = run + size if other == one + size else size
        longest = max(longest, run)
    return min(WIDEST, 1 << longest.bit_length() - 1)
