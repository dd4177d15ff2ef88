"""Forward analysis of structured programs: what holds ahead of every operation, on all paths.

A state is any value that can be compared; `step` says what an operation makes of it, `merge` what
is known where two paths meet, which must lose something or be equal, and `pass_on` what becomes of
it where loops and branches carry values on under other names. Loops are gone through until nothing
changes any more, short ones of a known number of turns turn by turn. A state has finitely many
values, so that this ends: what counts has an end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects.shorthands import constant_of
from fragir.passes.settling import rounds

StateT = TypeVar("StateT")
MOST_TURNS = 16
"""Turns of a loop that are gone through one by one, where their number is known."""
MOST_IN_ALL = 1024
"""The same of loops in loops, all together."""
PassOn: TypeAlias = Callable[[StateT, Sequence[SSAValue], Sequence[SSAValue]], StateT]


class Forward(Generic[StateT]):
    """The states of a program. `before` has the one ahead of each operation, once `run` is done."""

    def __init__(
        self,
        step: Callable[[Operation, StateT], StateT],
        merge: Callable[[StateT, StateT], StateT],
        pass_on: PassOn[StateT] = lambda state, _values, _names: state,
    ):
        self.step, self.merge, self.pass_on = step, merge, pass_on
        self.before: dict[Operation, StateT] = {}
        self._turns = 1  # of all loops around that are gone through turn by turn

    def run(self, block: Block, state: StateT) -> StateT:
        """The state behind a block's last operation."""
        for op in block.ops:
            known = self.before.get(op)
            self.before[op] = state if known is None else self.merge(known, state)
            state = self._follow_regions(op, state) if op.regions else self.step(op, state)
        return state

    def _follow_regions(self, op: Operation, state: StateT) -> StateT:
        if isinstance(op, scf.IfOp):
            return self._if(op, state)
        if isinstance(op, scf.WhileOp):
            return self._while(op, state)
        if isinstance(op, scf.ForOp):
            return self._for(op, state)
        blocks = [region.block for region in op.regions if region.blocks]
        if op.name == "frag.roles":  # side by side, and each from here
            for block in blocks:
                self.run(block, state)
            return state
        for block in blocks:
            for _ in rounds(f"what holds in {op.name}"):
                merged = self.merge(state, self.run(block, state))
                if merged == state:
                    break
                state = merged
        return state

    def _if(self, op: scf.IfOp, state: StateT) -> StateT:
        ends: list[StateT] = []
        for region in op.regions:
            end = self.run(region.block, state) if region.blocks else state
            ends.append(
                self.pass_on(end, _passed_values(region.block), op.results) if op.results else end
            )
        return self.merge(*ends)

    def _for(self, op: scf.ForOp, state: StateT) -> StateT:
        body = op.body.block
        arguments, yielded = body.args[1:], _passed_values(body)
        around = self.pass_on(state, op.iter_args, arguments)
        turns = _turns(op)
        if turns and turns <= MOST_TURNS and turns * self._turns <= MOST_IN_ALL:
            self._turns *= turns
            end = self.run(body, around)
            for _ in range(turns - 1):
                end = self.run(body, self.pass_on(end, yielded, arguments))
            self._turns //= turns
            return self.pass_on(end, yielded, op.results)
        end = around
        for _ in rounds("what holds in a loop"):
            end = self.run(body, around)
            merged = self.merge(around, self.pass_on(end, yielded, arguments))
            if merged == around:
                break
            around = merged
        behind = self.pass_on(end, yielded, op.results)
        if turns:
            return behind
        return self.merge(self.pass_on(state, op.iter_args, op.results), behind)

    def _while(self, op: scf.WhileOp, state: StateT) -> StateT:
        before, after = op.before_region.block, op.after_region.block
        state = self.pass_on(state, op.arguments, before.args)
        end, passed = state, _passed_values(before)[1:]
        for _ in rounds("what holds in a loop"):
            end = self.run(before, state)
            back = self.run(after, self.pass_on(end, passed, after.args))
            merged = self.merge(state, self.pass_on(back, _passed_values(after), before.args))
            if merged == state:
                break
            state = merged
        return self.pass_on(end, passed, op.results)


def _passed_values(block: Block) -> Sequence[SSAValue]:
    """What a block's last operation passes on."""
    last = block.last_op
    return () if last is None else last.operands


def _turns(op: scf.ForOp) -> int | None:
    """How often a loop runs; None where that is not known."""
    lower, upper, step = (constant_of(value) for value in (op.lb, op.ub, op.step))
    if lower is None or upper is None or step is None or step < 1:
        return None
    return len(range(lower, upper, step))
