"""`frag-prefetch`: slots of rings are filled turns ahead of the one that reads them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from fragir.passes.tile_passes import TargetPass, kernels_of


@dataclass(frozen=True)
class FragPrefetchPass(TargetPass):
    """Lets a loop's copies into rings run ahead of its products, in the same warps.

    Where a turn fills the slot that it reads, all slots but one are filled before the loop, and
    each turn fills the one that was read last, for a turn to come.

    A loop that multiplies by mma.sync what it loads from a slot also carries the fragments of the
    next turn's first instructions, unless `fragments` is false: they are loaded ahead of a turn's
    last products. Then all slots are filled before the loop, and each turn fills its own again.
    """

    name = "frag-prefetch"
    fragments: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.dialects import frag
        from fragir.passes.pipelining.ahead import Prefetch, fillings_of, fragment_loads
        from fragir.passes.scopes import WARPGROUPS, WARPS, warps_of

        for function in kernels_of(op):
            function.attributes.pop(PREFETCH, None)
            warps = warps_of(function, WARPS)
            single = self.fragments and WARPGROUPS not in function.attributes
            for loop in [x for x in function.walk() if isinstance(x, scf.ForOp)]:
                fillings = fillings_of(loop)
                for filling in fillings:
                    ring, fragments = filling.acquire.ring.owner, None
                    if single and len(fillings) == 1 and isinstance(ring, frag.RingOp):
                        fragments = fragment_loads(loop, ring, warps, self.target)
                    Prefetch(loop, filling, fragments).run()


PREFETCH = "frag.prefetch"
"""The attribute of a function that asks for it."""
