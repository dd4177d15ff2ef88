"""`linalg-tile`: elementwise operations of linalg become a program of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.passes import ModulePass

from fragir.diagnostics import fail
from fragir.dialects.frag.kernels import kernels_of


@dataclass(frozen=True)
class LinalgTilePass(ModulePass):
    """A function of elementwise generics on memory, without a product, becomes a loop over tiles.

    What they read and write may be transposed or broadcast; buffers of the function's own become
    tiles in registers. A function with a product, or a reduction, stays as it is.
    """

    name = "linalg-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.contraction.product import is_reduction
        from fragir.passes.generics.tiling import ElementwiseKernel

        for function in kernels_of(op):
            work = [x for x in function.body.block.ops if isinstance(x, LinalgStructuredOperation)]
            if not work or any(is_reduction(x) for x in work):
                continue
            problem = ElementwiseKernel(function).write()
            if problem is not None:
                fail(problem.op, problem.words)
