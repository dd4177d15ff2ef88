"""The meaning of loops, branches, calls of functions and launches of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation
from xdsl.traits import SymbolTable

from fragir.dialects import frag
from fragir.dialects.calls import callee_of
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.memory import BoundedMemory
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


# -- calls -----------------------------------------------------------------------------------------
# Calls of functions, and launches of kernels.

# --- calls ----------------------------------------------------------------------------------------


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


# --- launches -------------------------------------------------------------------------------------


def launch(run: Run, op: frag.LaunchOp) -> None:
    """Runs the kernel on the same memory."""
    kernel = kernel_of(op)
    values = [run.values[value] for value in op.arguments]
    sizes: dict[str, int] = {}
    for number, value in enumerate(values):
        if isinstance(value, BoundedMemory):
            names, _ = frag.size_names(kernel, number)
            pairs = zip(names, value.value.shape, strict=True)
            sizes.update({name: size for name, size in pairs if isinstance(name, str)})
    run.nested().run_function(kernel, values, _grid(kernel, sizes))


def kernel_of(op: Operation) -> func.FuncOp:
    """The function that is launched; the verifier has seen it."""
    assert isinstance(op, frag.LaunchOp)
    kernel = SymbolTable.lookup_symbol(op, op.callee)
    assert isinstance(kernel, func.FuncOp)
    return kernel


def _grid(kernel: func.FuncOp, sizes: dict[str, int]) -> tuple[int, int, int]:
    """Its blocks, for these sizes; one where tiles are shared out among however many there are."""
    grid = kernel.attributes.get("frag.grid")
    if not isinstance(grid, frag.GridAttr):
        return 1, 1, 1
    try:
        return grid.evaluate(sizes, None)
    except KeyError as error:
        raise FragirError(
            f"the grid of @{kernel.sym_name.data} needs the size {error.args[0]}",
            hint="name a dimension so, with frag.sizes",
        ) from None
