"""Layouts across control flow: what a loop or a branch passes on keeps its layout."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block

from fragir.dialects.interfaces import Layouts, OperandAt, Tile

STARTS = 3
"""Where the starts of a loop's variables begin among its operands: behind its bounds and step."""


class ForLayouts(Layouts):
    """A variable's start, its value in the body, what is yielded for it, and the result."""

    def __init__(self, op: scf.ForOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        op, body = self.op, self.op.body.block
        starts = [OperandAt(op, index) for index in range(STARTS, len(op.operands))]
        return zip(starts, body.args[1:], _yielded(body), op.results, strict=True)


class IfLayouts(Layouts):
    """A result and what each branch yields for it."""

    def __init__(self, op: scf.IfOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        for region in self.op.regions:
            if region.blocks:
                yield from zip(self.op.results, _yielded(region.block), strict=True)


class WhileLayouts(Layouts):
    """What comes into the condition's block each time; what goes from it into the body, and out."""

    def __init__(self, op: scf.WhileOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[Tile, ...]]:
        op, before, after = self.op, self.op.before_region.block, self.op.after_region.block
        starts = [OperandAt(op, index) for index in range(len(op.operands))]
        # where their numbers differ, the lowering says so
        yield from zip(starts, before.args, _yielded(after), strict=False)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp)
        passed = [OperandAt(condition, 1 + index) for index in range(len(condition.args))]
        yield from zip(passed, after.args, op.results, strict=False)


def _yielded(block: Block) -> list[OperandAt]:
    last = block.last_op
    if not isinstance(last, scf.YieldOp):
        return []
    return [OperandAt(last, index) for index in range(len(last.operands))]
