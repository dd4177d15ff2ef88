"""`linalg-dispatch`: a function of linalg becomes kernels, and a function that launches them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, check_level, kernels_of


@dataclass(frozen=True)
class LinalgDispatchPass(TargetPass):
    """Forms groups of operations that one kernel computes, and writes these kernels, each a
    function of its own: a `frag.matmul`, or a loop over tiles.

    A product takes the elementwise operations behind it whose values nobody else reads; elsewhere
    elementwise operations and reductions stand together as far as one kernel can compute them. What
    one group hands to the next lies in memory that the function allocates. The function becomes one
    of the host (`frag.host`) that launches the kernels in order. One whose operations are a single
    group is the kernel. What no kernel computes stays as it is: the passes behind this one, which
    write kernels of whole functions, say why.
    """

    name = "linalg-dispatch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.dispatching.dispatch import Dispatch

        for function in kernels_of(op):
            found = [inner for inner in function.walk() if inner.name.startswith("linalg.")]
            if not found or len(function.body.blocks) > 1:
                continue
            check_level(function, self.name)
            block = function.body.block
            deep = [inner for inner in found if inner.parent is not block]
            if len(deep) == len(found) or any(map(_is_inside, deep)):
                fail(
                    found[0], f"{found[0].name} stands in a loop or branch, where no kernel begins"
                )
            Dispatch(op, function, self.target).run()


def _is_inside(op: object) -> bool:
    """Whether a structured operation is nested in something else than another one's body."""
    from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

    return isinstance(op, LinalgStructuredOperation)
