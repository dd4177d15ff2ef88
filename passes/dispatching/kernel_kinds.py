"""Whether a function of linalg is one that a pass makes a kernel of."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.utils.exceptions import PassFailedException

from fragir.errors import FragirError


def problem_of(function: func.FuncOp) -> str | None:
    """Why no pass makes a kernel of a function; None where one does. It is tried on a copy."""
    from fragir.passes.contraction.fusion import Fusion
    from fragir.passes.generics.combining import has_product
    from fragir.passes.generics.tiling import GenericKernel

    copy = function.clone()
    ModuleOp([copy])
    work = [op for op in copy.body.block.ops if isinstance(op, LinalgStructuredOperation)]
    if work and not any(map(has_product, work)):
        problem = GenericKernel(copy).write()
        return None if problem is None else problem.words
    try:
        Fusion(copy).run()
    except (FragirError, PassFailedException) as error:
        return str(error)
    return None
