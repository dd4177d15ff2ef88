"""The shared memory that conversions pass data through: one area for all, or a few.

A passage stores, waits and loads. The next one in the same area may store only when all threads
that share memory with it have loaded: it waits once more, unless some barrier stands between
anyway. Where that takes fewer barriers, loops considered, passages take turns with two areas, or
those of other threads have others, or a passage in a loop has two areas for itself (see
`scratch_turns`).

Addresses count from the beginning of the memory; which area a passage has is known when the whole
function is built, and is then added to the immediate offsets of its accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, takewhile
from typing import Literal, NamedTuple, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.shorthands import constant_of, index_constant
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.team import BarrierNumbers, Team
from fragir.passes.remarks import align_buffer
from fragir.passes.settling import rounds
from fragir.ptx.machines import STATIC_SHARED

# -- scratch turns ---------------------------------------------------------------------------------
# Conversions alone in a loop: two halves of an area, one for turns of even number, one for odd.
#
# A turn may then store before all threads have loaded what the turn before it stored. What the turn
# before that one stored, in the same half, they have loaded: they have come past the barrier
# between stores and loads of the turn between. So a turn waits once, not twice. The half is a bit
# of the loop's counter, moved to where it is one of the address.

AccessOp: TypeAlias = ptx.LoadOp | ptx.StoreOp | ptx.LdmatrixOp | ptx.StmatrixOp


def takes_turns(accesses: Sequence[AccessOp], entry: Block) -> bool:
    """Whether accesses may: of each turn of a loop that is run through once, whose counter has a
    bit that changes from turn to turn. Pointers are computed before the loop.
    """
    loop = accesses[0].parent_op()
    if not isinstance(loop, scf.ForOp) or loop.parent is not entry:
        return False
    if not isinstance(loop.lb.type, IndexType):
        return False
    first, step = (constant_of(value) for value in (loop.lb, loop.step))
    if first is None or step is None or step <= 0 or step & (step - 1) or first % step:
        return False
    body = loop.body.block
    pointers = (access.pointer.owner for access in accesses)
    return all(access.parent is body for access in accesses) and not any(
        owner is body or (not isinstance(owner, Block) and owner.parent is body)
        for owner in pointers
    )


def half_of(size: int) -> int:
    """The bytes of a half for so many: a power of two, so that a bit chooses between them."""
    return 1 << (size - 1).bit_length()


def take_turns(accesses: Sequence[AccessOp], half: int) -> None:
    """Moves accesses by `half` bytes in every second turn of their loop."""
    first = accesses[0]
    loop, body = first.parent_op(), first.parent
    assert isinstance(loop, scf.ForOp)
    assert body is not None
    step = constant_of(loop.step)
    assert step is not None
    counter, distance = body.args[0], half.bit_length() - step.bit_length()
    made = [index_constant(abs(distance)), index_constant(half)]
    move = arith.ShLIOp if distance >= 0 else arith.ShRUIOp
    moved = move(counter, made[0].result)
    chosen = arith.AndIOp(moved.result, made[1].result)
    pointers: dict[SSAValue, ptx.OffsetOp] = {}
    for access in accesses:
        pointer = access.pointer
        if pointer not in pointers:
            pointers[pointer] = ptx.OffsetOp(pointer, chosen.result)
        access.operands[list(access.operands).index(pointer)] = pointers[pointer].result
    for op in (*made, moved, chosen, *pointers.values()):
        op.location = first.location
        body.insert_op_before(op, first)


LINE = 128  # bytes: an area begins at the first bank
TRIPS = 8  # how often a loop is thought to run, to compare barriers

BLOCK = ("block",)


@dataclass(frozen=True)
class Sharers:
    """Threads that exchange data with each other, and wait for each other only.

    `key` is equal where the same threads share the same part of the memory.
    """

    reach: Literal["warp", "group", "block"]
    key: tuple[object, ...]
    barrier: Callable[[], Operation]
    """Makes what they wait at."""


@dataclass(eq=False)
class Passage:
    """One exchange of data through the memory."""

    sharers: Sharers
    bytes: int
    accesses: list[AccessOp] = field(default_factory=list[AccessOp])

    @property
    def first(self) -> Operation:
        return self.accesses[0]

    @property
    def last(self) -> Operation:
        return self.accesses[-1]


class UnfinishedRead(NamedTuple):
    """Loads of an area by the same sharers that may not be over everywhere.

    Where they have waited since, each knows of those that it shares memory with, and of no others:
    a passage of the same sharers may store. `turning` is whose loads they are where that one has
    two halves in turn.
    """

    area: int
    key: tuple[object, ...]
    turning: Passage | None
    waited: bool = False

    def hinders(self, other: Passage) -> bool:
        """Whether a passage may not store in this area."""
        return not (self.waited and self.key == other.sharers.key)


Pending: TypeAlias = frozenset[UnfinishedRead]
Choose: TypeAlias = Callable[[Passage, Set[int]], int]


class Scratch:
    """The memory of the conversions of a team: all of a function's, or a role's."""

    def __init__(
        self,
        ar: Arithmetic,
        team: Team,
        numbers: BarrierNumbers,
        dead: Sequence[ptx.SharedOp] = (),
    ):
        """`dead` is memory, allocated side by side, whose accesses are over here in every thread
        for itself: the passages have that."""
        self._ar = ar
        self._dead = dead
        self._begin = ar.block.last_op if dead else None
        self.team = team
        self._numbers = numbers
        self._passages: list[Passage] = []
        self._barriers: dict[tuple[int, ...], int] = {}
        self.whole = Sharers("block", BLOCK, team.barrier)
        """All threads of the team."""

    def barriers(self, partition: tuple[int, ...], groups: int) -> int | None:
        """The first of the named barriers of so many groups of warps; None where too few are left.

        Warps that are grouped otherwise have others: some may be ahead, and wait there already.
        """
        if partition not in self._barriers:
            first = self._numbers.take(groups)
            if first is None:
                return None
            self._barriers[partition] = first
        return self._barriers[partition]

    @property
    def pointer(self) -> SSAValue:
        """Its beginning."""
        if self._dead:
            return self._dead[0].pointer
        return self._ar.pure(("scratch", self), (), lambda: ptx.SharedOp(0), "scratch")

    @contextmanager
    def passage(self, size: int, sharers: Sharers) -> Generator[Passage]:
        """Whatever reads or writes memory inside belongs to a passage of so many bytes."""
        block, passage = self._ar.block, Passage(sharers, size)
        before = block.last_op
        yield passage
        op = block.first_op if before is None else before.next_op
        while op is not None:
            if isinstance(op, AccessOp):
                passage.accesses.append(op)
            op = op.next_op
        if passage.accesses:
            self._passages.append(passage)

    def finish(self, entry: Block, block: Block | None = None) -> None:
        """Gives every passage its area and inserts the barriers that are missing.

        `entry` is that of the function, `block` holds what the team runs, if that is not all.
        """
        block = block or entry
        if not self._passages:
            return
        *before, shared = self._allocations(entry)
        own = {*before, shared}
        others = sum(
            align_buffer(op.bytes.value.data)
            for op in entry.walk()
            if isinstance(op, ptx.SharedOp) and op not in own
        )
        areas = partial(_Areas, self, self._passages, block)
        plan = areas(_in_one)
        room = max(STATIC_SHARED, align_buffer(others + plan.size))
        for choose in (_in_one, _in_turn, _by_sharers(self._passages)):
            if not plan.cost:
                break
            found = areas(choose)
            alone = {p for p in found.waiting if takes_turns(p.accesses, block)}
            for other in (
                found,
                areas(choose, alone),
            ):
                if other.cost < plan.cost and align_buffer(others + other.size) <= room:
                    plan = other
        plan.apply()
        size = plan.size - sum(align_buffer(op.bytes.value.data) for op in before)
        shared.bytes = IntegerAttr(max(size, shared.bytes.value.data), i64)
        if self._begin is not None:
            self._wait_for_readers(entry, self._begin)

    def _allocations(self, entry: Block) -> list[ptx.SharedOp]:
        """The allocations that hold the memory, side by side."""
        owner = self.pointer.owner
        assert isinstance(owner, ptx.SharedOp)
        if not self._dead:
            return [owner]
        every = [op for op in entry.walk() if isinstance(op, ptx.SharedOp)]
        pairs = zip(self._dead, every[every.index(owner) :], strict=False)
        return [dead for dead, _ in takewhile(lambda pair: pair[0] is pair[1], pairs)]

    def _wait_for_readers(self, entry: Block, begin: Operation) -> None:
        """All threads wait before the first passage: others may still read what it had held."""
        first: Operation = self._passages[0].first
        while first.parent is not entry:
            parent = first.parent_op()
            assert parent is not None
            first = parent
        between = begin.next_op
        while between is not None and between is not first:
            if self.team.waits(between):
                return
            between = between.next_op
        barrier = self.team.barrier()
        barrier.location = first.location
        entry.insert_op_before(barrier, first)


def _in_one(_passage: Passage, _read: Set[int]) -> int:
    return 0


def _in_turn(_passage: Passage, read: Set[int]) -> int:
    """The first of two areas that nobody may be reading."""
    return next((area for area in (0, 1) if area not in read), 0)


def _by_sharers(passages: Sequence[Passage]) -> Choose:
    """Two areas in turn for all that the same threads share; one for a warp's own, which waits
    for little.
    """
    keys = list(dict.fromkeys(passage.sharers.key for passage in passages))

    def choose(passage: Passage, read: Set[int]) -> int:
        first = 2 * keys.index(passage.sharers.key)
        own = (first,) if passage.sharers.reach == "warp" else (first, first + 1)
        return next((area for area in own if area not in read), first)

    return choose


class _Areas:
    """A choice of areas with the barriers that it takes.

    `choose` says which area a passage has, of those that others may be reading. Those of `turning`
    have two halves of it in turn, and need not wait for themselves.
    """

    def __init__(
        self,
        scratch: Scratch,
        passages: Sequence[Passage],
        block: Block,
        choose: Choose,
        turning: Set[Passage] = frozenset(),
    ) -> None:
        self._begins = {passage.first: passage for passage in passages}
        self._ends = {passage.last: passage for passage in passages}
        self._choose = choose
        self._team, self._whole = scratch.team, scratch.whole
        self._turning = turning
        self._area: dict[Passage, int] = {}
        self._waits: dict[Passage, Sharers] = {}
        self._depth: dict[Passage, int] = {}
        self._flow(block, frozenset(), 0)
        sizes = [0] * (1 + max(self._area.values()))
        for passage, area in self._area.items():
            size = -(-passage.bytes // LINE) * LINE
            if passage in turning:
                size = 2 * half_of(size)
            sizes[area] = max(sizes[area], size)
        *self._start, self.size = accumulate(sizes, initial=0)

    @property
    def cost(self) -> int:
        """The barriers of more than a warp that are inserted, as often as they may be met."""
        return sum(
            TRIPS ** self._depth[passage]
            for passage, sharers in self._waits.items()
            if sharers.reach != "warp"
        )

    @property
    def waiting(self) -> list[Passage]:
        """The passages that wait for more than a warp before they store."""
        return [p for p, sharers in self._waits.items() if sharers.reach != "warp"]

    def apply(self) -> None:
        """Moves the accesses and inserts the barriers."""
        for passage, area in self._area.items():
            if passage in self._turning:
                take_turns(passage.accesses, half_of(passage.bytes))
            for access in passage.accesses:
                offset = access.offset.value.data + self._start[area]
                access.offset = IntegerAttr(offset, i64)
            wait = self._waits.get(passage)
            if wait is not None:
                block, barrier = passage.first.parent, wait.barrier()
                assert block is not None
                barrier.location = passage.first.location
                block.insert_op_before(barrier, passage.first)

    def _flow(self, block: Block, pending: Pending, depth: int) -> Pending:
        """What is pending behind a block, from what is before it."""
        for op in block.ops:
            if op in self._begins:
                pending = self._begin(self._begins[op], pending, depth)
            if op in self._ends:
                passage = self._ends[op]
                # those that it waited for have come past what they had loaded before
                pending = _after(pending, passage.sharers) | {
                    UnfinishedRead(
                        self._area[passage],
                        passage.sharers.key,
                        passage if passage in self._turning else None,
                    )
                }
            elif self._team.waits(op):
                pending = frozenset()
            elif op.regions:
                pending = self._follow_regions(op, pending, depth)
        return pending

    def _follow_regions(self, op: Operation, pending: Pending, depth: int) -> Pending:
        bodies = [block for region in op.regions for block in region.blocks]
        if isinstance(op, scf.IfOp):
            found: Pending = frozenset() if len(bodies) == 2 else pending
            return found.union(*(self._flow(body, pending, depth) for body in bodies))
        for _ in rounds("what is read at the beginning of a loop"):
            more = pending.union(*(self._flow(body, pending, depth + 1) for body in bodies))
            if more == pending:
                break
            pending = more
        return pending

    def _begin(self, passage: Passage, pending: Pending, depth: int) -> Pending:
        """What is pending once a passage may store; it waits where others read its area."""
        self._depth[passage] = depth
        read = {reading.area for reading in pending if reading.hinders(passage)}
        if passage not in self._area:
            self._area[passage] = self._choose(passage, read)
        area = self._area[passage]
        meets = [
            reading.key
            for reading in pending
            if reading.area == area and reading.hinders(passage) and reading.turning is not passage
        ]
        if meets and self._waits.get(passage) is not self._whole:
            own = all(key == passage.sharers.key for key in meets)
            self._waits[passage] = passage.sharers if own else self._whole
        wait = self._waits.get(passage)
        return pending if wait is None else _after(pending, wait)


def _after(pending: Pending, sharers: Sharers) -> Pending:
    """What is pending behind a barrier of these threads."""
    if sharers.reach == "block":
        return frozenset()
    return frozenset(
        UnfinishedRead(reading.area, reading.key, None, waited=True)
        if reading.key == sharers.key
        else reading
        for reading in pending
    )
