"""`frag-specialize`: warps that fetch, and warps that multiply."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute

from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.tile_passes import TargetPass, kernels_of

SPECIALIZE = "frag.specialize"
"""The attribute of a function that asks for it."""
CONSUMERS = "frag.consumers"
"""The attribute of a function that says how many roles multiply."""


@dataclass(frozen=True)
class FragSpecializePass(TargetPass):
    """Divides a kernel whose loops use rings: a role fills them, another one does all the rest.

    What both need, loops and indices, stands in both; scalars and shared memory at the top of the
    function are computed by all. The multiplying role has the warps that the function had
    (`frag.warps`, `frag.warpgroups`).

    With `consumers = N`, or `frag.consumers = N` at the function, N roles of so many warps each
    multiply. Each computes every N-th tile of a persistent loop; they take turns at the products,
    so that one's epilogue is under way while another one multiplies (ping-pong, of two).
    """

    name = "frag-specialize"
    consumers: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.specializing.divide import divide
        from fragir.passes.specializing.epilogue import divert, mark

        require_target(self.target)
        for function in kernels_of(op):
            function.attributes.pop(SPECIALIZE, None)
            given = function.attributes.pop(CONSUMERS, None)
            try:
                consumers = self._consumers(given)
                mark(function, self.target, consumers)
                divide(function, consumers)
                divert(function)
            except FragirError as error:
                fail(function, str(error))

    def _consumers(self, given: Attribute | None) -> int:
        """How many roles multiply; FragirError where that is no number of roles."""
        count = given.value.data if isinstance(given, IntegerAttr) else self.consumers
        if (given is not None and not isinstance(given, IntegerAttr)) or (count or 1) < 1:
            raise FragirError(
                f"{CONSUMERS} is the number of roles that multiply",
                hint=f"write {CONSUMERS} = 2 : i64",
            )
        return 1 if count is None else count
