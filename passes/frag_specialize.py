"""`frag-specialize`: warps that fetch, and warps that multiply."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from fragir.diagnostics import fail
from fragir.errors import FragirError
from fragir.isa.targets import known
from fragir.passes.target_pass import TargetPass

SPECIALIZE = "frag.specialize"
"""The attribute of a function that asks for it."""


@dataclass(frozen=True)
class FragSpecializePass(TargetPass):
    """Divides a kernel whose loops use rings: a role fills them, another one does all the rest.

    What both need, loops and indices, stands in both; scalars and shared memory at the top of the
    function are computed by all. The multiplying role has the warps that the function had
    (`frag.warps`, `frag.warpgroups`).
    """

    name = "frag-specialize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.specializing.divide import divide
        from fragir.passes.specializing.epilogue import divert, mark

        known(self.target)
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                function.attributes.pop(SPECIALIZE, None)
                try:
                    mark(function, self.target)
                    divide(function)
                    divert(function)
                except FragirError as error:
                    fail(function, str(error))
