"""`kit-set-tile{m=64 n=64 k=32}`: how large a tile of C one block computes."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.passes import ModulePass

from fragir.dialects import frag


@dataclass(frozen=True)
class SetTilePass(ModulePass):
    """Gives every product that does not say its tile this one."""

    name = "kit-set-tile"
    m: int = 64
    n: int = 64
    k: int = 32

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for product in op.walk():
            if isinstance(product, frag.MatmulOp) and product.tile is None:
                product.tile = DenseArrayBase.from_list(i64, [self.m, self.n, self.k])
