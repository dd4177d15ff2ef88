"""`linalg-tile`: operations of linalg become a program of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, kernels_of


@dataclass(frozen=True)
class LinalgTilePass(TargetPass):
    """A function of generics on memory becomes a loop over tiles.

    What they read and write may be transposed or broadcast; buffers of the function's own become
    tiles in registers. Where rows are reduced, tiles have whole rows of it; else elements are
    computed from their places: any maps and bodies, sums element after element, many at a time, or
    on tensor cores. A function with a product that `convert-linalg-to-frag` knows stays as it is.
    """

    name = "linalg-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.structured.bodies import KernelProblem, has_product
        from fragir.passes.structured.writing import (
            copy_function,
            is_computed,
            matrix_product,
            tile,
            work_of,
            write,
        )

        for function in kernels_of(op):
            if not any(map(is_computed, function.body.block.ops)):
                continue
            if matrix_product(function) is not None:
                found = write(copy_function(function), self.target)
                if isinstance(found, KernelProblem) or found.is_matmul:
                    continue
            problem = tile(function, self.target)
            if problem is not None and not any(map(has_product, work_of(function))):
                fail(problem.op, problem.words)
