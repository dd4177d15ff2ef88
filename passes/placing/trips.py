"""How often an operation is executed, as far as the program tells."""

from __future__ import annotations

from fractions import Fraction

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from fragir.dialects.constants import constant_of

UNKNOWN = 16
"""Turns of a loop whose bounds are not known."""
BRANCH = Fraction(1, 2)
"""How often one side of a branch is taken."""


class Trips:
    """How often the blocks of a function are executed, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[Block, Fraction] = {}

    def of(self, op: Operation) -> Fraction:
        """How often an operation is executed."""
        return Fraction(1) if op.parent is None else self._block(op.parent)

    def making(self, value: SSAValue) -> Fraction:
        """How often a value is made."""
        if isinstance(value, BlockArgument):
            return self._block(value.owner)
        assert isinstance(value.owner, Operation)
        return self.of(value.owner)

    def _block(self, block: Block) -> Fraction:
        known = self._known.get(block)
        if known is None:
            parent = block.parent_op()
            known = Fraction(1) if parent is None else self.of(parent) * _turns(parent)
            self._known[block] = known
        return known


def _turns(op: Operation) -> Fraction:
    """How often an operation executes its regions."""
    if isinstance(op, scf.IfOp):
        return BRANCH
    if isinstance(op, scf.WhileOp):
        return Fraction(UNKNOWN)
    if not isinstance(op, scf.ForOp):
        return Fraction(1)
    first, last, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    if first is None or last is None or not step:
        return Fraction(UNKNOWN)
    return Fraction(max(1, -(-(last - first) // step)))
