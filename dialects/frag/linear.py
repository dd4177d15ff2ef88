"""Values that are used up by one operation on every path: slots of rings, tiles in flight.

No dataflow is needed for it. In the block that defines such a value one operation uses it up,
itself or, where it is a branch (`scf.if`), in each of its regions; in a loop inside it nothing can,
for a loop may run never or often: it has to carry the value. What is carried is followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.utils.exceptions import VerifyException


def carried(value: SSAValue) -> list[SSAValue]:
    """A value, and every one that it becomes when loops and branches pass it on."""
    found = [value]
    for one in found:
        for use in one.uses:
            found += [to for to in passed_on(use) if to not in found]
    return found


def passed_on(use: Use) -> Iterator[SSAValue]:
    """The values that an operand becomes: arguments of a loop's blocks, results."""
    op, number = use.operation, use.index
    parent = op.parent_op()
    if isinstance(op, scf.ForOp) and number >= 3:
        yield op.body.block.args[number - 2]
        yield op.results[number - 3]
    elif isinstance(op, scf.WhileOp):
        yield op.before_region.block.args[number]
    elif isinstance(op, scf.ConditionOp) and isinstance(parent, scf.WhileOp) and number >= 1:
        yield parent.after_region.block.args[number - 1]
        yield parent.results[number - 1]
    elif isinstance(op, scf.YieldOp):
        if isinstance(parent, scf.WhileOp):
            yield parent.before_region.block.args[number]
        elif isinstance(parent, scf.ForOp):
            yield parent.body.block.args[number + 1]
            yield parent.results[number]
        elif isinstance(parent, scf.IfOp):
            yield parent.results[number]


def named(value: SSAValue, first: SSAValue, what: str) -> str:
    """What a value is called that carries the first one on, or is it."""
    name = f"%{value.name_hint}" if value.name_hint else f"a {what}"
    if value is first:
        return name
    origin = f"%{first.name_hint}" if first.name_hint else f"this {what}"
    return f"{name}, which carries {origin} on,"


class LinearUse:
    """The uses of one value that is used up once.

    `end` names what uses it up, besides loops and branches that pass it on. A subclass says by
    `looks` which operations look at the value only, and checks what uses it up.
    """

    def __init__(self, value: SSAValue, name: str, end: str, what: str):
        self.value, self.name, self.end, self.what = value, name, end, what
        self.lookers: set[Operation] = set()
        self.takers: set[Operation] = set()
        for use in value.uses:
            lookers = self.looks(use.operation)
            self.lookers |= lookers
            if not lookers:
                self.check_taker(use)
                self.takers.add(use.operation)
        self.within = _with_ancestors(self.lookers | self.takers)
        self.above_takers = _with_ancestors(self.takers)

    def looks(self, op: Operation) -> set[Operation]:
        """An operation that only looks at the value, with those that go on from there."""
        return set()

    def check_taker(self, use: Use) -> None:
        """VerifyException unless an operation may use the value up."""

    def behind(self, op: Operation, taken: Operation) -> str:
        """What is wrong where an operation looks at what has been used up."""
        return f"{self.name} is used by {op.name}{at(op)} behind {taken.name}{at(taken)}"

    def check(self) -> None:
        """VerifyException unless it is used up once on every path, and looked at before."""
        owner = self.value.owner
        block = owner if isinstance(owner, Block) else owner.parent_block()
        assert block is not None
        self._block(block)

    def _block(self, block: Block) -> None:
        taken: Operation | None = None
        for op in block.ops:
            if op not in self.within:
                continue
            if taken is not None:
                self._after(op, taken)
            uses = sum(operand is self.value for operand in op.operands)
            takes = uses if op in self.takers else 0
            if takes > 1:
                raise VerifyException(f"{self.name} goes twice to {op.name}{at(op)}")
            if takes:
                taken = op
            elif op in self.above_takers:
                self._regions(op)
                taken = op
        if taken is None:
            raise VerifyException(
                f"{self.name} is not used up{_in(block)}: end with {self.end}, or pass it on"
            )

    def _regions(self, op: Operation) -> None:
        """A use inside of an operation with regions."""
        if not isinstance(op, scf.IfOp):
            raise VerifyException(
                f"{self.name} is used up inside of {op.name}{at(op)}, which may run it never or "
                f"often; let it carry the {self.what} (iter_args)"
            )
        for region in op.regions:
            if not region.blocks:
                raise VerifyException(
                    f"{self.name} is used up in one branch of {op.name}{at(op)}; the other needs "
                    f"{self.end}, too"
                )
            self._block(region.block)

    def _after(self, op: Operation, taken: Operation) -> None:
        if op in self.above_takers:
            raise VerifyException(
                f"{self.name} is used up twice, by {taken.name}{at(taken)} and {op.name}{at(op)}"
            )
        raise VerifyException(self.behind(op, taken))


def _with_ancestors(ops: set[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:  # any order
        up: Operation | None = op
        while up is not None and up not in found:
            found.add(up)
            up = up.parent_op()
    return found


def at(op: Operation) -> str:
    """Where an operation stands, for the end of a sentence."""
    where = op.location
    return f" in line {where.line.data}" if isinstance(where, FileLineColLoc) else ""


def _in(block: Block) -> str:
    parent = block.parent_op()
    if not isinstance(parent, scf.IfOp):
        return ""
    return f" in a branch of {parent.name}{at(parent)}"
