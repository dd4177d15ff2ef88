"""Slots filled ahead of the turn that reads them, by the threads that read them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.constants import constant_of, index_constant
from fragir.passes.pipelining.fragments import CarriedFragments, FragmentLoads, is_repeated
from fragir.passes.pipelining.insertion import put

INDEX = IndexType()


@dataclass
class Filling:
    """How a turn of a loop fills a slot: acquire, the copies with their parts, publish."""

    acquire: frag.AcquireOp
    inner: list[Operation]
    """Parts and copies, in order."""
    publish: frag.PublishOp

    @property
    def operations(self) -> list[Operation]:
        return [self.acquire, *self.inner, self.publish]


def fillings_of(loop: scf.ForOp) -> list[Filling]:
    """What a loop's body fills from memory in the turn that it is read in, ring by ring."""
    found: list[Filling] = []
    for op in loop.body.block.ops:
        if not isinstance(op, frag.AcquireOp):
            continue
        inner: list[Operation] = []
        publish: frag.PublishOp | None = None
        for use in op.slot.uses:
            user = use.operation
            if isinstance(user, frag.PublishOp):
                publish = user
            elif isinstance(user, frag.PartOp):
                inner += [user, *(use.operation for use in user.memory.uses)]
        plain = all(
            isinstance(x, frag.PartOp | frag.CopyOp) and x.parent is op.parent for x in inner
        )
        if publish is not None and publish.parent is op.parent and plain:
            order = {x: at for at, x in enumerate(loop.body.block.ops)}
            inner.sort(key=order.__getitem__)
            found.append(Filling(op, inner, publish))
    return found


class Prefetch:
    """Moves what a loop fills so many turns ahead that all slots of its ring but one are full.

    With `fragments` the loop carries the first of them, and all slots are full.
    """

    def __init__(self, loop: scf.ForOp, filling: Filling, fragments: FragmentLoads | None = None):
        self._loop, self._filling, self._fragments = loop, filling, fragments
        ring = filling.acquire.ring.owner
        assert isinstance(ring, frag.RingOp)
        self._turns = ring.count - (fragments is None)

    def run(self) -> None:
        """Fills the first slots before the loop, and in it that of a turn to come."""
        if self._turns == 0:
            return
        loop, filling = self._loop, self._filling
        before = InsertPoint.before(loop)
        if self._turns > 1 and self._is_long():
            self._before_in_turn(before)
        else:
            for turn in range(self._turns):
                self._before(self._ahead(loop.lb, turn, before), before)
        if self._fragments is None:
            behind = self._place()
        else:
            self._loop, behind = CarriedFragments(loop, self._fragments).run()
            loop = self._loop
        point = InsertPoint.before(behind)
        at = self._ahead(loop.body.block.args[0], self._turns, point, "ahead")
        more = put(arith.CmpiOp(at, loop.ub, "slt"), point, "more")
        self._within(at, more, point)
        for op in reversed(filling.operations):
            Rewriter.erase_op(op)
        if is_repeated(loop):
            self._drain()

    def _ahead(
        self, at: SSAValue, turns: int, point: InsertPoint, name: str | None = None
    ) -> SSAValue:
        """The loop's counter so many turns later."""
        step, first = constant_of(self._loop.step), constant_of(at)
        if step is not None and first is not None:
            return put(index_constant(first + turns * step), point, name)
        if turns == 0:
            return at
        by = self._loop.step
        if step is not None:
            by = put(index_constant(turns * step), point)
        elif turns > 1:
            by = put(arith.MuliOp(by, put(index_constant(turns), point)), point)
        return put(arith.AddiOp(at, by), point, name)

    def _is_long(self) -> bool:
        """Whether a filling tests what lies outside of memory: then it is written once."""
        masked = any(isinstance(x, frag.CopyOp) and x.masked for x in self._filling.inner)
        return masked and constant_of(self._loop.ub) is None

    def _before_in_turn(self, point: InsertPoint) -> None:
        """Fills the first slots in a loop of their own."""
        first, one = put(index_constant(0), point), put(index_constant(1), point)
        turns = put(index_constant(self._turns), point)
        body = Block(arg_types=[INDEX])
        inner = InsertPoint.at_end(body)
        at = put(arith.MuliOp(body.args[0], self._loop.step), inner)
        if constant_of(self._loop.lb) != 0:
            at = put(arith.AddiOp(self._loop.lb, at), inner)
        self._before(at, inner)
        Rewriter.insert_op(scf.YieldOp(), InsertPoint.at_end(body))
        Rewriter.insert_op(scf.ForOp(first, turns, one, [], body), point)

    def _before(self, at: SSAValue, point: InsertPoint) -> None:
        """Fills a slot before the loop; masked, as the loop may have fewer turns."""
        values: dict[SSAValue, SSAValue] = {self._loop.body.block.args[0]: at}
        first, end = constant_of(at), constant_of(self._loop.ub)
        for op in self._filling.operations:
            beyond = first is not None and end is not None and first >= end
            if beyond and isinstance(op, frag.CopyOp):
                continue
            made = self._again(op, values, point)
            if isinstance(made, frag.CopyOp) and (first is None or end is None):
                made.masked = UnitAttr()

    def _within(self, at: SSAValue, more: SSAValue, point: InsertPoint) -> None:
        """Fills the slot of a turn to come, if it comes."""
        values: dict[SSAValue, SSAValue] = {self._loop.body.block.args[0]: at}
        block = Block()
        inner = InsertPoint.at_end(block)
        for op in self._filling.operations:
            if op is self._filling.publish:
                Rewriter.insert_op(scf.YieldOp(), inner)
                Rewriter.insert_op(scf.IfOp(more, [], Region(block)), point)
            self._again(op, values, inner if isinstance(op, frag.CopyOp) else point)

    def _again(
        self, op: Operation, values: dict[SSAValue, SSAValue], point: InsertPoint
    ) -> Operation:
        """An operation of the body for another turn, and what of the body it is computed from."""
        body = self._loop.body.block
        for operand in op.operands:
            owner = operand.owner
            if operand not in values and isinstance(owner, Operation) and owner.parent is body:
                self._again(owner, values, point)
        made = op.clone(values)
        Rewriter.insert_op(made, point)
        return made

    def _drain(self) -> None:
        """Takes the slots that are full of turns which do not come: the next run of the loop
        finds a ring that is free.
        """
        last: Operation = self._loop
        for _ in range(self._turns - (self._fragments is not None)):
            taken = frag.AwaitOp(self._filling.acquire.ring)
            for op in (taken, frag.ReleaseOp(taken.result)):
                Rewriter.insert_op(op, InsertPoint.after(last))
                last = op

    def _place(self) -> Operation:
        """Ahead of what it is filled: behind what this turn waits for and gives back.

        A slot is free as soon as the turn before has been read: where products stay under way into
        the next turn, behind the release of its slot, else behind the await. Products of wgmma that
        this turn waits for go first: they run while copies are issued.
        """
        body = self._loop.body.block
        found: Operation | None = None
        for op in body.ops:
            if isinstance(op, frag.AwaitOp) and op.source is self._filling.acquire.ring:
                found = op if found is None else found
            if isinstance(op, frag.ReleaseOp) and op.slot in body.args:
                if op.slot.type == self._filling.acquire.slot.type:
                    found = op
        assert found is not None
        following = _behind_products(found).next_op
        assert following is not None
        return following


def _behind_products(op: Operation) -> Operation:
    """The last product that is under way before any is awaited; the operation if none is."""
    last, at = op, op.next_op
    while at is not None and at.name != "frag.await" and not at.regions:
        if at.name == "frag.wgmma" and "asynchronous" in at.properties:
            last = at
        at = at.next_op
    return last
