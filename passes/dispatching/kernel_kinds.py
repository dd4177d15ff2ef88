"""Which pass makes a kernel of a function of linalg, if one does."""

from __future__ import annotations

from contextlib import suppress

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.utils.exceptions import PassFailedException

from fragir.diagnostics import trial
from fragir.errors import FragirError
from fragir.passes.generics.axes import KernelProblem


def problem_of(function: func.FuncOp, target: str) -> str | None:
    """Why no pass makes a kernel of a function; None where one does. It is tried on a copy."""
    if has_matrix_product(function):
        problem = fusion_problem(function)
        if problem is None or not _is_alone(function):
            return problem
    copy = _copied(function)
    found = tile(copy, target)
    return None if found is None else found.words


def has_matrix_product(function: func.FuncOp) -> bool:
    """Whether an operation is a product that `convert-linalg-to-frag` knows."""
    from fragir.passes.contraction.product import is_reduction, recognise

    for op in _work(function):
        if is_reduction(op):
            with suppress(FragirError, PassFailedException), trial():
                recognise(op)
                return True
    return False


def fusion_problem(function: func.FuncOp) -> str | None:
    """Why `convert-linalg-to-frag` makes no `frag.matmul` of a function."""
    from fragir.passes.contraction.fusion import Fusion

    try:
        with trial():
            Fusion(_copied(function)).run()
    except (FragirError, PassFailedException) as error:
        return str(error)
    return None


def tile(function: func.FuncOp, target: str) -> KernelProblem | None:
    """Makes a program of tiles of a function; or says why there is none, and leaves it."""
    from fragir.passes.generics.combining import has_product
    from fragir.passes.generics.tiling import GenericKernel
    from fragir.passes.generics.views import write_copies
    from fragir.passes.points.kernel import PointKernel

    write_copies(function)
    if not any(map(has_product, _work(function))) and GenericKernel(function).write() is None:
        return None
    return PointKernel(function, target).write()


def _work(function: func.FuncOp) -> list[LinalgStructuredOperation]:
    return [op for op in function.body.block.ops if isinstance(op, LinalgStructuredOperation)]


def _is_alone(function: func.FuncOp) -> bool:
    return sum(not isinstance(op, ops.FillOp) for op in _work(function)) == 1


def _copied(function: func.FuncOp) -> func.FuncOp:
    """A copy, in a module of its own, as passes want it."""
    copy = function.clone()
    ModuleOp([copy])
    return copy
