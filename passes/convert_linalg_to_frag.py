"""`convert-linalg-to-frag`: matrix products in linalg, on memrefs, become `frag.matmul`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import check_level, kernels_of


@dataclass(frozen=True)
class ConvertLinalgToFragPass(ModulePass):
    """A product and the elementwise operations after it become one `frag.matmul`.

    The product is a `linalg.matmul` of equal types, or a `linalg.generic` with the loops, maps and
    body of a matrix product, any operand transposed. `linalg.fill` before it gives the start of the
    sum; elementwise operations after it become the epilogue, and buffers in between that are
    allocated in the function and used for nothing else disappear. Distinct arguments must not
    overlap in memory. Whatever else stands there is refused at its place.
    """

    name = "convert-linalg-to-frag"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.structured.fusion import Fusion

        for function in kernels_of(op):
            found = [inner for inner in function.walk() if inner.name.startswith("linalg.")]
            if not found:
                continue
            if len(function.body.blocks) == 1:
                check_level(function, self.name)
            if len(function.body.blocks) > 1 or found[0].parent is not function.body.block:
                fail(
                    found[0],
                    f"{found[0].name} stands in a loop or branch; a matrix product stands at the "
                    "top level of its function",
                )
            Fusion(function).run()
