"""The meaning of loops and branches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block

from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.run import Run

MOST_TURNS = 1_000_000
"""Turns of a loop before it is thought to have no end."""


def loop(run: Run, op: scf.ForOp) -> None:
    carried = [run[value] for value in op.iter_args]
    block = op.body.block
    for i in range(*run.numbers((op.lb, op.ub, op.step))):
        run[block.args[0]] = exactly(np.int64(i))
        for parameter, value in zip(block.args[1:], carried, strict=True):
            run[parameter] = value
        carried = run.run_block(block)
    for result, value in zip(op.results, carried, strict=True):
        run[result] = value


def while_(run: Run, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    carried = [run[value] for value in op.arguments]
    for _ in range(MOST_TURNS):
        _bind(run, before, carried)
        condition, *carried = run.run_block(before)
        if condition.bound.any():
            raise FragirError("the condition of scf.while depends on rounding")
        if not condition.value:
            for result, value in zip(op.results, carried, strict=True):
                run[result] = value
            return
        _bind(run, after, carried)
        carried = run.run_block(after)
    raise FragirError(
        f"scf.while has gone on for {MOST_TURNS} turns", hint="does its condition ever fail?"
    )


def _bind(run: Run, block: Block, values: Sequence[Bounded]) -> None:
    for parameter, value in zip(block.args, values, strict=True):
        run[parameter] = value


def branch(run: Run, op: scf.IfOp) -> None:
    condition = run[op.cond]
    if condition.bound.any():
        raise FragirError("the condition of scf.if depends on rounding", hint="use arith.select")
    region = op.true_region if condition.value else op.false_region
    values = run.run_block(region.block) if region.blocks else []
    for result, value in zip(op.results, values, strict=True):
        run[result] = value
