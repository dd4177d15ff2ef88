"""The threads that run the same operations: those of a block, or those of one of its roles."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.shorthands import constant_of
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic, Value

BARRIERS = 16
"""Named barriers of a block (PTX ISA 9.2, section 9.7.13.1); 0 is that of all its threads."""
WARP_MASK = 0xFFFFFFFF


class BarrierNumbers:
    """Gives out the named barriers of a block, by numbers known in the text: ptxas would count a
    number in a register as all of them.
    """

    def __init__(self) -> None:
        self._next = 1

    def take(self, count: int) -> int | None:
        """The first of so many in a row; None where too few are left."""
        if self._next + count > BARRIERS:
            return None
        first, self._next = self._next, self._next + count
        return first


class Team:
    """Threads with their place in the block, and what they wait for each other with."""

    def __init__(self, ar: Arithmetic, threads: int, first: int = 0, barrier: int = 0):
        self._ar = ar
        self.threads, self.first = threads, first
        self._number = barrier

    def thread(self) -> Value:
        """The number of a thread among them, read in the current block and known there only."""
        thread = self._ar.insert(ptx.SpecialOp("tid.x"), "tid").value
        return self._ar.add(thread, -self.first)

    def barrier(self) -> Operation:
        """All of them wait for each other: an operation to be inserted."""
        if self._number == 0:
            return ptx.SyncOp("bar.sync", 0)
        if self.threads == 32:
            return ptx.SyncOp("bar.warp.sync", WARP_MASK)
        return ptx.NamedBarrierOp(self._ar.value(self._number), self.threads)

    def any_of(self, predicate: SSAValue) -> SSAValue:
        """All of them wait for each other, and learn whether a predicate holds for one of them."""
        if self._number == 0:
            words = "bar.red.or.pred $0, 0, $1"
        elif self.threads == 32:
            self._ar.insert(ptx.SyncOp("bar.warp.sync", WARP_MASK))
            words = f"vote.sync.any.pred $0, $1, {WARP_MASK}"
        else:
            words = f"bar.red.or.pred $0, {self._number}, {self.threads}, $1"
        (found,) = self._ar.insert(ptx.InstructionOp(words, (predicate,), (i1,))).results
        return found

    def waits(self, op: Operation) -> bool:
        """Whether an operation is such a barrier."""
        if self._number and self.threads > 32:
            return isinstance(op, ptx.NamedBarrierOp) and constant_of(op.number) == self._number
        name = "bar.warp.sync" if self._number else "bar.sync"
        return isinstance(op, ptx.SyncOp) and op.instruction.data == name


def role_team(ar: Arithmetic, threads: int, first: int, numbers: BarrierNumbers) -> Team:
    """The team of a role. FragirError where no barrier is left for it."""
    found = numbers.take(1)
    if found is None:
        raise FragirError(
            f"the roles of a block take more than its {BARRIERS} barriers",
            hint="let fewer roles have more warps each",
        )
    return Team(ar, threads, first, found)
