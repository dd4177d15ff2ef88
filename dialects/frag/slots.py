"""Slots are linear: on every path each is used up by one operation, and its parts before that.

No dataflow is needed for it. In the block that defines a slot one operation uses it up, itself or,
where it is a branch (`scf.if`), in each of its regions; in a loop inside it nothing can, for a loop
may run never or often: it has to carry the slot. What is carried is followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.slot_type import SlotType
from fragir.dialects.narrow import is_memref

ENDS = ("frag.publish", "frag.release")
PART = "frag.part"


def check_slot(slot: SSAValue, end: str) -> None:
    """VerifyException unless a new slot, wherever it is carried, is used up once by `end`."""
    for value in carried(slot):
        name = f"%{value.name_hint}" if value.name_hint else "a slot"
        if value is not slot:
            first = f"%{slot.name_hint}" if slot.name_hint else "this slot"
            name += f", which carries {first} on,"
        _Use(value, name, end).check()


def carried(slot: SSAValue) -> list[SSAValue]:
    """A slot, and every value that it becomes when loops and branches pass it on."""
    found = [slot]
    for value in found:
        for use in value.uses:
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


class _Use:
    """The uses of one value that is a slot."""

    def __init__(self, slot: SSAValue, name: str, end: str):
        self.slot, self.name, self.end = slot, name, end
        self.parts: set[Operation] = set()  # what makes or uses memory of the slot
        self.takers: set[Operation] = set()  # what uses the slot up
        for use in slot.uses:
            if use.operation.name == PART:
                self.parts |= _users(use.operation)
            else:
                self._check_taker(use)
                self.takers.add(use.operation)
        self.within = _with_ancestors(self.parts | self.takers)
        self.above_takers = _with_ancestors(self.takers)

    def _check_taker(self, use: Use) -> None:
        op = use.operation
        if op.name in ENDS:
            if op.name != self.end:
                what = "acquired" if self.end == ENDS[0] else "awaited"
                raise VerifyException(
                    f"{self.name} is {what}, so {self.end} takes it and not {op.name}{_at(op)}"
                )
        elif not any(isinstance(to.type, SlotType) for to in passed_on(use)):
            raise VerifyException(
                f"{self.name} goes to {op.name}{_at(op)}; a slot goes to {self.end}, or a loop or "
                "branch passes it on"
            )

    def check(self) -> None:
        """VerifyException unless it is used up once on every path, and its parts before."""
        self._block(self.slot.owner if isinstance(self.slot.owner, Block) else self._parent())

    def _parent(self) -> Block:
        block = self.slot.owner.parent_block() if isinstance(self.slot.owner, Operation) else None
        assert block is not None
        return block

    def _block(self, block: Block) -> None:
        taken: Operation | None = None
        for op in block.ops:
            if op not in self.within:
                continue
            if taken is not None:
                self._after(op, taken)
            takes = sum(operand is self.slot for operand in op.operands) if op in self.takers else 0
            if takes > 1:
                raise VerifyException(f"{self.name} goes twice to {op.name}{_at(op)}")
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
                f"{self.name} is used up inside of {op.name}{_at(op)}, which may run it never or "
                "often; let it carry the slot (iter_args)"
            )
        for region in op.regions:
            if not region.blocks:
                raise VerifyException(
                    f"{self.name} is used up in one branch of {op.name}{_at(op)}; the other needs "
                    f"{self.end}, too"
                )
            self._block(region.block)

    def _after(self, op: Operation, taken: Operation) -> None:
        if op in self.above_takers:
            raise VerifyException(
                f"{self.name} is used up twice, by {taken.name}{_at(taken)} and {op.name}{_at(op)}"
            )
        raise VerifyException(
            f"{self.name}: its memory is used by {op.name}{_at(op)} behind "
            f"{taken.name}{_at(taken)}, when it is not held any more"
        )


def _users(part: Operation) -> set[Operation]:
    """What makes or uses a part of a slot, or what is a view of it."""
    found = {part}
    for result in part.results:
        if is_memref(result.type):
            for use in result.uses:
                if use.operation.name.startswith("scf."):
                    raise VerifyException(
                        f"memory of a slot goes to {use.operation.name}{_at(use.operation)}; carry "
                        "the slot, and take its part (frag.part) where it is used"
                    )
                if use.operation not in found:
                    found |= _users(use.operation)
    return found


def _with_ancestors(ops: set[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:
        up: Operation | None = op
        while up is not None and up not in found:
            found.add(up)
            up = up.parent_op()
    return found


def _at(op: Operation) -> str:
    where = op.location
    return f" in line {where.line.data}" if isinstance(where, FileLineColLoc) else ""


def _in(block: Block) -> str:
    parent = block.parent_op()
    if not isinstance(parent, scf.IfOp):
        return ""
    return f" in a branch of {parent.name}{_at(parent)}"
