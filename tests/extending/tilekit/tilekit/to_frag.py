"""`kit-to-frag`: from `kit.gram` to `frag.matmul`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fragir.dialects import frag

from .gram import GramOp


@dataclass(frozen=True)
class KitToFragPass(ModulePass):
    """Replaces `kit.gram` by a product with the transposed matrix."""

    name = "kit-to-frag"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for gram in [op for op in op.walk() if isinstance(op, GramOp)]:
            product = frag.MatmulOp(gram.a, gram.a, gram.c, b_transposed=True)
            product.location = gram.location  # where errors about it stand
            Rewriter.replace_op(gram, product, [])
