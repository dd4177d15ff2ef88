"""The meaning of loops and branches."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import scf

from fragir.dialects.interfaces import MEANINGS
from fragir.errors import FragirError
from fragir.reference.bounded import exactly
from fragir.reference.run import Run


@MEANINGS.attach(scf.ForOp)
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


@MEANINGS.attach(scf.IfOp)
def branch(run: Run, op: scf.IfOp) -> None:
    condition = run[op.cond]
    if condition.bound.any():
        raise FragirError("the condition of scf.if depends on rounding", hint="use arith.select")
    region = op.true_region if condition.value else op.false_region
    values = run.run_block(region.block) if region.blocks else []
    for result, value in zip(op.results, values, strict=True):
        run[result] = value
