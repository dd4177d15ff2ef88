"""`frag-tile`: cuts `frag.matmul` into tiles, with a schedule for mma.sync or wgmma."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, kernels_of

# what every block would do once more
_NOT_BESIDE = ("frag.", "scf.", "memref.store", "memref.copy", "linalg.")


@dataclass(frozen=True)
class FragTilePass(TargetPass):
    """A loop over the tiles of C, and in it one over K that loads tiles of A and B and multiplies.

    The epilogue is applied in registers. Sizes may be dynamic and no multiple of the tile: what
    lies outside is read as zero and not written. On sm_90a, types that wgmma takes are multiplied
    by warpgroups; else by warps with mma.sync. How A and B come through shared memory is made by
    frag-pipeline and what follows it, as the loops' attributes say.

    The function must hold nothing but the product and operations on scalars. With `allocates` the
    sums of few tiles may have parts in memory that the launch allocates: the function is then one
    of the host.
    """

    name = "frag-tile"
    allocates: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.tiling.choosing import choice_for
        from fragir.passes.tiling.gemm import Gemm

        require_target(self.target)
        for function in kernels_of(op):
            products = [p for p in function.walk() if isinstance(p, frag.MatmulOp)]
            if not products:
                continue
            product = products[-1]
            if len(products) > 1 or product.parent is not function.body.block:
                fail(
                    product,
                    "a kernel computes one frag.matmul, at the top level of its function; split "
                    "the program into several functions",
                )
            for other in function.body.block.ops:
                if other is not product and other.name.startswith(_NOT_BESIDE):
                    fail(
                        other,
                        f"{other.name} stands beside a frag.matmul, which takes all of a kernel; "
                        "put it into the epilogue or into a function of its own",
                    )
            try:
                kind, schedule = (
                    Gemm,
                    choice_for(product, self.target, allocates=self.allocates).schedule,
                )
                if schedule.parts is not None:
                    from fragir.passes.tiling.sum_parts import GemmInParts  # few products have them

                    kind = GemmInParts
                    if not product.in_parts:
                        from fragir.passes.tiling.parts_memory import give_memory

                        function, product = give_memory(function, product, schedule)
                kind(function, product, schedule).run()
            except FragirError as error:
                fail(product, str(error))
