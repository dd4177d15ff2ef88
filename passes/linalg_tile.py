"""`linalg-tile`: operations of linalg become a program of tiles."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fragir.diagnostics import fail
from fragir.passes.kernels import kernels_of
from fragir.passes.target_pass import TargetPass


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
        from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

        from fragir.passes.dispatching.groups import is_computed
        from fragir.passes.dispatching.kernel_kinds import (
            fusion_problem,
            has_matrix_product,
            problem_of,
            tile,
        )
        from fragir.passes.generics.combining import has_product

        for function in kernels_of(op):
            work = [x for x in function.body.block.ops if is_computed(x)]
            if not work:
                continue
            if has_matrix_product(function) and (
                fusion_problem(function) is None or problem_of(function, self.target) is not None
            ):
                continue
            problem = tile(function, self.target)
            generics = (x for x in work if isinstance(x, LinalgStructuredOperation))
            if problem is not None and not any(map(has_product, generics)):
                fail(problem.op, problem.words)
