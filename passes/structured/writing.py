"""Writes a function of structured operations as one kernel, if one can compute it.

Three writers, asked in this order: a product with what is elementwise around it
becomes a `frag.matmul` (`fusion`), operations of common loops tiles as memory lies (`rows`), all
else elements from their places (`points`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from fragir.errors import FragirError
from fragir.mlir.diagnostics import trial
from fragir.passes.structured.bodies import KernelProblem, has_product
from fragir.passes.structured.memory import write_copies
from fragir.passes.structured.products import is_reduction, recognise
from fragir.passes.structured.sums import piece_of


class WrittenKernel(NamedTuple):
    """A function that has become a kernel: of tiles, or of one `frag.matmul`."""

    function: func.FuncOp
    is_matmul: bool


def write(function: func.FuncOp, target: str) -> WrittenKernel | KernelProblem:
    """The kernel of a function, for a machine such as "sm_80". The function is used up: it is the
    kernel, or, after a problem, of no more use.
    """
    product = matrix_product(function)
    if product is not None:
        copy = copy_function(function)
        problem = fuse(copy)
        if problem is None:
            return WrittenKernel(copy, True)
        if sum(not isinstance(op, ops.FillOp) for op in work_of(function)) > 1:
            # only `frag.matmul` has more than a product; of less than that the others make kernels
            most = max(_place(copy, problem.op), computed_in(function).index(product))
            return problem._replace(most=most)
    problem = tile(function, target)
    return WrittenKernel(function, False) if problem is None else problem


def _place(function: func.FuncOp, op: Operation) -> int:
    """Which operation of a function is the first that is another one, or uses it."""
    found, pending, order = {op}, [op], computed_in(function)
    while pending:
        users = {use.operation for result in pending.pop().results for use in result.uses}
        pending += users - found
        found |= users
    return next((at for at, one in enumerate(order) if one in found), len(order) - 1)


def fuse(function: func.FuncOp) -> KernelProblem | None:
    """Makes a `frag.matmul` of a function; or says why there is none, and leaves it in pieces."""
    from fragir.passes.structured.fusion import Fusion

    fusion = Fusion(function)
    try:
        with trial():
            fusion.run()
    except (FragirError, PassFailedException) as error:
        return KernelProblem(fusion.at, str(error))
    return None


def tile(function: func.FuncOp, target: str) -> KernelProblem | None:
    """Makes a program of tiles of a function; or says why there is none."""
    from fragir.passes.structured.points import PointKernel
    from fragir.passes.structured.rows import GenericKernel
    from fragir.passes.structured.sums import lies_across

    write_copies(function)
    work = work_of(function)
    if any(piece_of(op) is not None for op in work):
        return PointKernel(function, target).write()  # others do not know what a part is
    if not any(map(has_product, work)):
        sums = [op for op in work if is_reduction(op)]
        if sums and all(map(lies_across, sums)) and PointKernel(function, target).write() is None:
            return None  # tiles of whole rows would have a sum's numbers far apart in memory
        if GenericKernel(function).write() is None:
            return None
    return PointKernel(function, target).write()


def matrix_product(function: func.FuncOp) -> LinalgStructuredOperation | None:
    """The first operation that is a product which `frag.matmul` computes."""
    for op in work_of(function):
        if is_reduction(op) and piece_of(op) is None:
            with suppress(FragirError, PassFailedException), trial():
                recognise(op)
                return op
    return None


def work_of(function: func.FuncOp) -> list[LinalgStructuredOperation]:
    """Its structured operations, but for copies."""
    return [op for op in function.body.block.ops if isinstance(op, LinalgStructuredOperation)]


def copy_function(function: func.FuncOp) -> func.FuncOp:
    """A copy, in a module of its own, as passes want it."""
    copy = function.clone()
    ModuleOp([copy])
    return copy


def computed_in(function: func.FuncOp) -> list[Operation]:
    """Its operations that kernels compute: structured ones and copies."""
    return [op for op in function.body.block.ops if is_computed(op)]


def is_computed(op: Operation) -> bool:
    """Whether an operation is one that kernels compute."""
    return isinstance(op, LinalgStructuredOperation | memref.CopyOp)
