"""Forward analysis of structured programs: what holds ahead of every operation, on all paths.

A state is any value that can be compared; `step` says what an operation makes of it and `merge`
what is known where two paths meet, which must lose something or be equal. Loops are gone through
until nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

StateT = TypeVar("StateT")


class Forward(Generic[StateT]):
    """The states of a program. `before` has the one ahead of each operation, once `run` is done."""

    def __init__(
        self,
        step: Callable[[Operation, StateT], StateT],
        merge: Callable[[StateT, StateT], StateT],
    ):
        self.step, self.merge = step, merge
        self.before: dict[Operation, StateT] = {}

    def run(self, block: Block, state: StateT) -> StateT:
        """The state behind a block's last operation."""
        for op in block.ops:
            self.before[op] = state
            state = self._nested(op, state) if op.regions else self.step(op, state)
        return state

    def _nested(self, op: Operation, state: StateT) -> StateT:
        if isinstance(op, scf.IfOp):
            ends = [self.run(r.block, state) if r.blocks else state for r in op.regions]
            return self.merge(*ends)
        if isinstance(op, scf.WhileOp):
            return self._while(op, state)
        blocks = [region.block for region in op.regions if region.blocks]
        if op.name == "frag.roles":  # side by side, and each from here
            for block in blocks:
                self.run(block, state)
            return state
        at_least_once = isinstance(op, scf.ForOp) and _turns(op)
        for block in blocks:
            while True:
                end = self.run(block, state)
                merged = self.merge(state, end)
                if merged == state:
                    break
                state = merged
            state = end if at_least_once else state
        return state

    def _while(self, op: scf.WhileOp, state: StateT) -> StateT:
        while True:
            passed = self.run(op.before_region.block, state)
            merged = self.merge(state, self.run(op.after_region.block, passed))
            if merged == state:
                return passed
            state = merged


def _turns(op: scf.ForOp) -> bool:
    """Whether a loop is known to run once at least."""
    lower, upper = _number(op.lb), _number(op.ub)
    return lower is not None and upper is not None and lower < upper


def _number(value: SSAValue) -> int | None:
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.value
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
    return None
