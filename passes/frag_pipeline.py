"""`frag-pipeline`: loops' loads go through rings of shared memory, products stay under way."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, kernels_of


@dataclass(frozen=True)
class FragPipelinePass(TargetPass):
    """Fetches what a loop multiplies through rings.

    A loop with `frag.stages = N`, and with the option `stages` every loop whose products take tiles
    straight from global memory, gets a ring of N slots for the loads of each product. A turn fills
    a slot, awaits it, multiplies from it and releases it; that the filling runs ahead is what
    `frag-specialize` (warps of their own) or `frag-prefetch` (the same warps) make of it. In a
    function with `frag.warpgroups` products become wgmma, under way round the loop where their sums
    are carried. With `tma` the copies are the tensor memory accelerator's, and of a cluster's
    blocks (`frag.cluster`) each fetches its share of the tiles that all of them take.
    """

    name = "frag-pipeline"
    stages: int | None = None
    tma: bool | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.pipelining.loop import (
            STAGES,
            TENSOR,
            TMA,
            LoopPipeline,
            PipelineWay,
            lies_across,
            order_sums,
        )
        from fragir.passes.pipelining.streams import groups_of, shared_tiles
        from fragir.passes.scopes import WARPGROUPS, WARPS, warps_of

        require_target(self.target)
        for function in kernels_of(op):
            for loop in [x for x in function.walk() if isinstance(x, scf.ForOp)]:
                stages = self._stages(loop)
                if stages is None:
                    continue
                tensor = TENSOR in loop.attributes
                groups = groups_of(loop, 4 if tensor else 8)
                if not groups:
                    if STAGES in loop.attributes:
                        fail(loop, "no product of this loop takes a tile from global memory")
                    continue
                tma = TMA in loop.attributes if self.tma is None else self.tma
                wgmma = WARPGROUPS in function.attributes
                warps = warps_of(function, WARPGROUPS if wgmma else WARPS)
                products = [p for group in groups for p in group.products]
                if wgmma and not tensor and any(map(lies_across, products)):
                    order_sums(loop, warps, self.target)
                    groups = groups_of(loop)
                way = PipelineWay(stages, tma, warps, wgmma, self.target, shared_tiles(loop))
                made = LoopPipeline
                if tensor:
                    from fragir.passes.pipelining.tensor_memory import TensorPipeline

                    made = TensorPipeline
                made(loop, groups, way).run()

    def _stages(self, loop: scf.ForOp) -> int | None:
        from fragir.passes.pipelining.loop import STAGES

        given = loop.attributes.get(STAGES)
        if isinstance(given, IntegerAttr) and given.value.data > 0:
            return given.value.data
        return self.stages
