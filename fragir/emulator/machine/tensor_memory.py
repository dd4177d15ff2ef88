"""Tensor memory: its words, who has allocated which columns, and what tcgen05 has yet to do there.

mma, cp and shift of a thread happen in order, in a queue of its warp and cta_group; a commit behind
them arrives at its mbarriers when they are done. By default they are done at the latest legal
moment: nothing else can run. They read shared memory then (PTX ISA 9.1, section 9.7.16.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.machine.barriers import update
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.machine.tensor_work import (
    TensorAccess,
    TensorCommit,
    TensorRegion,
    TensorStatement,
    TensorWork,
)
from fragir.emulator.numbers.types import I32, U8, U32, Bools
from fragir.emulator.report import EmulationError, Finding, Severity
from fragir.emulator.tensor_cores import tensor_places

if TYPE_CHECKING:
    from fragir.emulator.machine.state import State

ROWS, COLUMNS = tensor_places.LANES, tensor_places.COLUMNS
UNIT = 32  # columns: what is allocated


@dataclass(frozen=True, slots=True)
class TensorAllocation:
    """Columns of a block, and where they were allocated."""

    block: int
    first: int
    count: int
    group: int
    form: TensorStatement
    lane: int


@dataclass(slots=True)
class _Request:
    """A warp that waits at alloc, dealloc or relinquish for one of the other block of its pair."""

    warp: int
    what: tuple[object, ...]
    granted: int | None = None


@dataclass(slots=True)
class _Block:
    """What has been allocated in one block."""

    allocations: dict[int, TensorAllocation] = field(default_factory=dict[int, TensorAllocation])
    owners: I32 = field(default_factory=lambda: np.zeros(COLUMNS, np.int32))  # 1 + first column
    relinquished: TensorStatement | None = None
    last: int = COLUMNS  # columns of the last allocation
    freed: dict[int, int] = field(default_factory=dict[int, int])  # first column -> count


class TensorMemories:
    """The tensor memory of the resident blocks."""

    def __init__(self, machine: State) -> None:
        self.machine = machine
        self.plain = False  # whether it stands beside the real one, and judges nothing
        self._words: U32 | None = None
        self._pending: U8 | None = None
        self._said: set[tuple[str, int]] = set()
        self._start()
        machine.on_wave.append(self.reset)

    def _start(self) -> None:
        self.queues: dict[tuple[int, int], list[TensorWork | TensorCommit]] = {}
        self.blocks: dict[int, _Block] = {}
        self._requests: dict[tuple[str, int], _Request] = {}

    def reset(self) -> None:
        self._start()
        for cells in (self._words, self._pending):
            if cells is not None:
                cells[...] = 0

    def beside(self, machine: State) -> TensorMemories:
        """Words beside these, for a plane."""
        found = copy(self)
        found.machine, found.plain, found._words = machine, True, None
        return found

    @property
    def is_used(self) -> bool:
        """Whether anybody has asked for its words."""
        return self._words is not None

    def forget(self) -> None:
        """All words are zero."""
        if self._words is not None:
            self._words[...] = 0

    @property
    def words(self) -> U32:
        """`[blocks, 128, 512]`."""
        if self._words is None:
            self._words = np.zeros((self.machine.blocks, ROWS, COLUMNS), np.uint32)
        return self._words

    @property
    def pending(self) -> U8:
        """Of each word, how much is in flight that will write it."""
        if self._pending is None:
            self._pending = np.zeros((self.machine.blocks, ROWS, COLUMNS), np.uint8)
        return self._pending

    def leave(self, gone: Bools) -> None:
        """What these warps have issued does not happen here."""
        self.queues = {key: work for key, work in self.queues.items() if not gone[key[0]]}
        per = self.machine.warps_per_block
        self.blocks = {b: known for b, known in self.blocks.items() if not gone[b * per]}

    # -- findings --------------------------------------------------------------------------------

    def say(
        self,
        form: TensorStatement,
        text: str,
        lane: int,
        kind: str = "tensor-memory",
        severity: Severity = "error",
    ) -> None:
        """A finding at a statement, once for each text's kind."""
        if self.plain or (kind + text[:24], id(form.instruction)) in self._said:
            return
        self._said.add((kind + text[:24], id(form.instruction)))
        block, warp = self.machine.place(lane // LANES)
        self.machine.report.findings.append(
            Finding(
                kind,
                f"{form.instruction.mnemonic}: {text} "
                f"(block {block} warp {warp} lane {lane % LANES})",
                *form.place,
                warp=warp,
                lane=lane % LANES,
                severity=severity,
            )
        )

    # -- places ----------------------------------------------------------------------------------

    def check_region(self, form: TensorStatement, region: TensorRegion, lane: int) -> None:
        """EmulationError where there are no such columns; a finding where nobody has them."""
        if region.first + region.count > COLUMNS:
            text = f"columns {region.first} to {region.first + region.count - 1} of tensor memory"
            error = EmulationError(f"{text}, which has {COLUMNS}", kind="out-of-bounds")
            error.warp, error.lane = lane // LANES, lane % LANES
            raise error
        self._check_owned(form, region.block, region.first, region.first + region.count - 1, lane)

    def _check_owned(
        self, form: TensorStatement, block: int, first: int, last: int, lane: int
    ) -> None:
        known = self.blocks.get(block)
        owners = None if known is None else known.owners[first : last + 1]
        if owners is not None and owners.all():
            return
        column = first if owners is None else first + int(np.flatnonzero(owners == 0)[0])
        before = None
        if known is not None:
            freed = known.freed.items()
            before = next((start for start, count in freed if 0 <= column - start < count), None)
        what = "is outside of every allocation" if before is None else "has been deallocated"
        self.say(form, f"column {column} {what}", lane)

    def check_access(self, access: TensorAccess) -> None:
        """The same of a ld or st; an EmulationError where something is in flight to a word."""
        block = int(self.machine.block_of[access.warp])
        first, last = int(access.columns.min()), int(access.columns.max())
        lane = access.warp * LANES
        self.check_region(
            access.form, TensorRegion(block, access.lanes, first, last - first + 1), lane
        )
        if self.queues and self._pending is not None:
            bad = self._pending[block][access.lanes, access.columns] != 0
            if bad.any():
                index = tuple(np.argwhere(bad)[0])
                at = int(access.lanes[index]), int(access.columns[index])
                self._touches(access, block, *at)

    def _touches(self, access: TensorAccess, block: int, lane: int, column: int) -> None:
        """An access to what is in flight."""
        owner = next(
            work.form.text
            for queue in self.queues.values()
            for work in queue
            if isinstance(work, TensorWork)
            for region in work.writes
            if region.block == block
            and lane in region.lanes
            and region.first <= column < region.first + region.count
        )
        error = EmulationError(
            f"lane {lane} column {column} of tensor memory is yet to be written by the {owner}",
            hint="wait for the mbarrier of a tcgen05.commit behind it",
            kind="pending-tensor",
        )
        error.warp, error.lane = access.warp, 0
        raise error

    # -- queues ----------------------------------------------------------------------------------

    def issue(self, work: TensorWork) -> None:
        """An mma, cp or shift."""
        for region in (*work.writes, *work.reads):
            self.check_region(work.form, region, work.lane)
        for hook in self.machine.hooks:
            hook.on_tensor_issue(work)
        key = work.lane // LANES, work.group
        if self.machine.retires_now():
            self._retire(key, len(self.queues.get(key, ())))
            self._execute(work)
            return
        for region in work.writes:
            cells = self.pending[region.block]
            cells[region.lanes, region.columns] += 1
        self.queues.setdefault(key, []).append(work)

    def commit(self, commit: TensorCommit) -> None:
        for hook in self.machine.hooks:
            hook.on_tensor_commit(commit)
        key = commit.lane // LANES, commit.group
        queue = self.queues.setdefault(key, [])
        queue.append(commit)
        if len(queue) == 1 or self.machine.retires_now():
            self._retire(key, len(queue))

    def _retire(self, key: tuple[int, int], count: int) -> None:
        """The first items of a queue."""
        queue = self.queues.get(key, [])
        self.queues[key] = queue[count:]
        if not self.queues[key]:
            del self.queues[key]
        for item in queue[:count]:
            if isinstance(item, TensorCommit):
                self._arrive(item)
                continue
            for region in item.writes:
                cells = self.pending[region.block]
                cells[region.lanes, region.columns] -= 1
            self._execute(item)

    def _execute(self, work: TensorWork) -> None:
        for hook in self.machine.hooks:
            hook.on_tensor_execute(work)
        try:
            work.run(self.machine.memory.shared.bytes, self.words, self.words)
            self.machine.report.statistics.mma += work.parts is not None
        except EmulationError as error:
            error.warp, error.lane = work.lane // LANES, work.lane % LANES
            raise
        self.machine.progress = True

    def _arrive(self, commit: TensorCommit) -> None:
        for position in commit.signals:
            for hook in self.machine.hooks:
                hook.on_tensor_arrive(commit, position)
            for hook in self.machine.hooks:
                hook.on_mbarrier("arrive", position, np.array([commit.lane]))
            update(self.machine, position, 1, 0, lane=commit.lane)
        self.machine.progress = True

    def end_round(self) -> bool:
        """Nothing else can run: of each queue what its first commit is for. Whether anything."""
        changed = False
        for key, queue in sorted(self.queues.items(), key=lambda each: each[0]):
            commits = [i for i, item in enumerate(queue) if isinstance(item, TensorCommit)]
            if commits:
                self._retire(key, commits[0] + 1)
                changed = True
        return changed

    def finish(self) -> None:
        """The wave is over: what is in flight happens, what has not been freed is a finding."""
        for key in sorted(self.queues):
            for item in self.queues[key]:
                if isinstance(item, TensorWork):
                    text = "all threads have exited and nothing has waited for this"
                    self.say(item.form, text, item.lane, "unretired")
            self._retire(key, len(self.queues[key]))
        for _, known in sorted(self.blocks.items()):
            for one in known.allocations.values():
                columns = f"{one.first} to {one.first + one.count - 1}"
                self.say(one.form, f"columns {columns} are never deallocated", one.lane)
        self._start()

    # -- allocation ------------------------------------------------------------------------------

    def block(self, number: int) -> _Block:
        return self.blocks.setdefault(number, _Block())

    def pair(self, block: int) -> tuple[int, int]:
        """The two blocks of a pair: their ranks differ in bit 0."""
        size = self.machine.cluster_size
        rank = block % size
        if size % 2:
            raise EmulationError(
                "cta_group::2 is for pairs of blocks, and the cluster has no even number of them"
            )
        even = block - rank + (rank & ~1)
        return even, even + 1

    def meet(
        self, form: TensorStatement, name: str, warp: int, group: int, what: tuple[object, ...]
    ) -> int | bool | None:
        """A warp comes to alloc, dealloc or relinquish: what the other block of its pair has found,
        True where it is to act for both, None where it has to wait for the other."""
        block = int(self.machine.block_of[warp])
        if group == 1:
            self._comes(form, name, warp, None)
            return True
        first, second = self.pair(block)
        other = second if block == first else first
        mine = self._requests.get((name, block))
        if mine is not None and mine.granted is not None:
            del self._requests[name, block]
            return mine.granted
        if mine is None or mine.warp != warp:
            self._comes(form, name, warp, other)
        theirs = self._requests.get((name, other))
        if theirs is not None and theirs.granted is None:
            if theirs.what != what:
                raise EmulationError(
                    f"the blocks of the pair come to {name} with different operands",
                    kind="tensor-memory",
                )
            self._requests.pop((name, block), None)
            return True
        per = self.machine.warps_per_block
        if not self.machine.alive[other * per : (other + 1) * per].any():
            raise EmulationError(
                "the other block of the pair has exited, and this waits for it",
                kind="tensor-memory",
            )
        self._requests[name, block] = _Request(warp, what)
        return None

    def _comes(self, form: TensorStatement, name: str, warp: int, other: int | None) -> None:
        for hook in self.machine.hooks:
            hook.on_tensor_meet(form, name, warp * LANES, other)

    def grant(self, name: str, block: int, value: int) -> None:
        """Let the other block of the pair go on."""
        first, second = self.pair(block)
        other = second if block == first else first
        self._requests[name, other].granted = value
        self.machine.progress = True

    def allocate(
        self, form: TensorStatement, blocks: Sequence[int], count: int, group: int, lane: int
    ) -> int | None:
        """The first of `count` columns that these blocks have got; None while there are none."""
        exclusive = "exclusive" in form.instruction.opcode
        if count % UNIT or not UNIT <= count <= COLUMNS or (count & count - 1 and not exclusive):
            raise EmulationError(
                f"{count} columns cannot be allocated, only a power of two from 32 to 512",
                kind="tensor-memory",
            )
        known = [self.block(b) for b in blocks]
        taken = np.logical_or.reduce([each.owners != 0 for each in known])
        free = (
            first
            for first in range(0, COLUMNS - count + 1, UNIT)
            if not taken[first : first + count].any()
        )
        first = next(free, None)
        for each in known:
            if each.relinquished is not None:
                line = each.relinquished.place[1]
                self.say(form, f"line {line} has relinquished the permit to allocate", lane)
        if first is None:
            return None
        for each, block in zip(known, blocks, strict=True):
            if count > each.last:
                self.say(form, f"{count} columns, more than the {each.last} before", lane)
            each.last = count
            each.owners[first : first + count] = first + 1
            each.freed = {
                at: n for at, n in each.freed.items() if at + n <= first or at >= first + count
            }
            each.allocations[first] = TensorAllocation(block, first, count, group, form, lane)
            for hook in self.machine.hooks:
                hook.on_tensor_allocate(block, first, count, lane)
        self.machine.progress = True
        return first

    def free(
        self, form: TensorStatement, blocks: Sequence[int], address: int, count: int, lane: int
    ) -> None:
        """dealloc of what begins at an address."""
        first = address & 0xFFFF
        group = 1 if "cta_group::1" in form.instruction.opcode else 2
        for block in blocks:
            known = self.block(block)
            found = known.allocations.get(first)
            if found is None or address >> 16:
                again = known.freed.get(first)
                text = f"no allocation begins at {address:#x}"
                if again is not None and not address >> 16:
                    text = f"the {again} columns at {address:#x} have been deallocated before"
                self.say(form, text, lane)
                continue
            if found.count != count:
                text = f"{count} columns are given back of {found.count} that were allocated"
                self.say(form, text, lane)
            if found.group != group:
                self.say(form, f"these columns were allocated with cta_group::{found.group}", lane)
            columns = slice(first, first + found.count)
            if self._pending is not None and self._pending[block][:, columns].any():
                self.say(form, "a product or copy to these columns is in flight", lane)
            for hook in self.machine.hooks:
                hook.on_tensor_free(block, first, found.count, lane)
            known.owners[columns] = 0
            del known.allocations[first]
            known.freed[first] = found.count
        self.machine.progress = True
