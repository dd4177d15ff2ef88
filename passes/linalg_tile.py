"""`linalg-tile`: operations of linalg without a product become a program of tiles."""

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
    """A function of generics on memory, without a product, becomes a loop over tiles.

    What they read and write may be transposed or broadcast; buffers of the function's own become
    tiles in registers. Where something is reduced, tiles have whole rows of it. A function with a
    product stays as it is.
    """

    name = "linalg-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.generics.combining import has_product
        from fragir.passes.generics.tiling import GenericKernel

        for function in kernels_of(op):
            work = [x for x in function.body.block.ops if isinstance(x, LinalgStructuredOperation)]
            if not work or any(map(has_product, work)):
                continue
            problem = GenericKernel(function).write()
            if problem is not None:
                fail(problem.op, problem.words)
