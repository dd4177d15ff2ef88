"""`convert-frag-to-ptx`: from placed tiles to what one lane does."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.scopes import threads_of
from fragir.passes.tile_passes import TargetPass, check_level, kernels_of


class ConvertFragToPtxPass(TargetPass):
    """Lowers every function of placed tiles to a kernel of the `ptx` dialect.

    A memref argument becomes a pointer followed by one i32 for every dynamic dimension and then
    one for every dynamic stride; pointers are 16-byte aligned. A block has as many threads as
    `frag.warps` and `frag.warpgroups` say, or as its roles have together.
    """

    name = "convert-frag-to-ptx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.remarks import check_shared

        try:
            require_target(self.target)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
        for function in kernels_of(op):
            check_level(function, self.name)
            try:
                lowered = self.lower(function)
            except FragirError as error:
                fail(function, str(error))
            lowered.location = function.location
            grid = function.attributes.get("frag.grid")
            if grid is not None:
                lowered.attributes["frag.grid"] = grid
            Rewriter.insert_op(lowered, InsertPoint.before(function))
            Rewriter.erase_op(function, safe_erase=False)
            check_shared(lowered, self.target)

    def lower(self, function: func.FuncOp) -> func.FuncOp:
        """What one lane does of a function of placed tiles."""
        from fragir.passes.lowering.function import FunctionLowering

        return FunctionLowering(function, threads_of(function), self.target).run()
