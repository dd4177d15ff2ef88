"""`frag-prefetch`: slots of rings are filled turns ahead of the one that reads them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class FragPrefetchPass(ModulePass):
    """Lets a loop's copies into rings run ahead of its products, in the same warps.

    Where a turn fills the slot that it reads, all slots but one are filled before the loop, and
    each turn fills the one that was read last, for a turn to come.
    """

    name = "frag-prefetch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.pipelining.ahead import Prefetch, fillings_of

        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                function.attributes.pop(PREFETCH, None)
                for loop in [x for x in function.walk() if isinstance(x, scf.ForOp)]:
                    for filling in fillings_of(loop):
                        Prefetch(loop, filling).run()


PREFETCH = "frag.prefetch"
"""The attribute of a function that asks for it."""
