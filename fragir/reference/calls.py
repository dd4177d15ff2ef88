"""The meaning of a call: what the function that is called does."""

from __future__ import annotations

from xdsl.dialects import func

from fragir.dialects.calls import callee_of
from fragir.reference.run import Run


def call(run: Run, op: func.CallOp) -> None:
    """Memory that it is given changes; tensors are values."""
    block = callee_of(op).body.block
    for parameter, value in zip(block.args, op.arguments, strict=True):
        run.values[parameter] = run.values[value]
    for inner in block.ops:
        if isinstance(inner, func.ReturnOp):
            for result, value in zip(op.res, inner.operands, strict=True):
                run.values[result] = run.values[value]
        else:
            run.run_known(inner)
