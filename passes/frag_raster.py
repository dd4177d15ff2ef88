"""`frag-raster`: gives each block its tiles, in an order that keeps what they share in L2."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, kernels_of


@dataclass(frozen=True)
class FragRasterPass(TargetPass):
    """Replaces `frag.for_tiles` by index arithmetic on the block's number, and sets the grid.

    `order` ("rows", "columns", "linear", "grouped", "hilbert") and `group` are those of loops that
    say none; `persistent` makes all of them so. In plain orders a block's tile is its place in the
    grid: block x is the column, block y the row. `linear`, `grouped` and `hilbert` number the tiles
    of a grid of one dimension, and a persistent loop goes on by the number of blocks, which the
    launch asks of the GPU.

    Loops of a function with `frag.cluster` go by clusters of so many blocks. One that has a
    `frag.grid` keeps it where it is what its loops need, or they are
    persistent.
    """

    name = "frag-raster"
    order: str = "rows"
    group: int = 0
    persistent: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.dialects import frag
        from fragir.dialects.frag.raster import ORDERS
        from fragir.passes.tiling.raster import Raster, lower_loop, take_cluster

        require_target(self.target)
        if self.order not in ORDERS:
            raise FragirError(f"order = {self.order}: an order is one of {', '.join(ORDERS)}")
        if self.group < 0:
            raise FragirError(f"group = {self.group}: a group is 1 or more rows of tiles")
        for function in kernels_of(op):
            loops = [loop for loop in function.walk() if isinstance(loop, frag.ForTilesOp)]
            for loop in loops:
                try:
                    take_cluster(function, loop)
                    raster = Raster.of(loop, self.target, self.order, self.group, self.persistent)
                    lower_loop(function, loop, raster)
                except FragirError as error:
                    fail(loop, error.sentence)
