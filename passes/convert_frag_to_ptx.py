"""`convert-frag-to-ptx`: from placed tiles to what one lane does."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from fragir.diagnostics import fail
from fragir.dialects.interfaces import WarpgroupCollective
from fragir.dialects.narrow import integers, is_array
from fragir.errors import FragirError
from fragir.isa.targets import known
from fragir.passes.levels import require
from fragir.passes.target_pass import TargetPass
from fragir.ptx.machines import THREADS


def warps_of(function: func.FuncOp, name: str) -> tuple[int, int]:
    """The `frag.warps` or `frag.warpgroups` of a function; (1, 1) without one."""
    attribute: Attribute | None = function.attributes.get(name)
    if attribute is None:
        return 1, 1
    pair = integers(attribute) if is_array(attribute) else []
    if len(pair) == 2:
        m, n = pair
        if m > 0 and n > 0:
            return m, n
    raise FragirError(
        f"{name} = {attribute} is no pair of positive numbers",
        hint=f"write {name} = array<i64: 2, 2>",
    )


def threads_of(function: func.FuncOp) -> int:
    """Threads of a block: 32 for each of `frag.warps`, 128 for each of `frag.warpgroups`."""
    warps, groups = warps_of(function, "frag.warps"), warps_of(function, "frag.warpgroups")
    collective = any(op.has_trait(WarpgroupCollective) for op in function.walk())
    threads = 32 * warps[0] * warps[1]
    if collective or "frag.warpgroups" in function.attributes:
        threads = max(threads, 128 * groups[0] * groups[1])
    if threads > THREADS:
        raise FragirError(f"a block of {threads} threads; the machine takes {THREADS} at most")
    return threads


class ConvertFragToPtxPass(TargetPass):
    """Lowers every function of placed tiles to a kernel of the `ptx` dialect.

    A memref argument becomes a pointer followed by one i32 for every dynamic dimension and then
    one for every dynamic stride; pointers are 16-byte aligned. A block has as many threads as
    `frag.warps` and `frag.warpgroups` say.
    """

    name = "convert-frag-to-ptx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.passes.limits import check_shared
        from fragir.passes.lowering.function import FunctionLowering

        try:
            known(self.target)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
        for function in [f for f in op.ops if isinstance(f, func.FuncOp)]:
            if function.is_declaration:
                continue
            require(function, self.name)
            try:
                lowered = FunctionLowering(function, threads_of(function), self.target).run()
            except FragirError as error:
                fail(function, str(error))
            lowered.location = function.location
            grid = function.attributes.get("frag.grid")
            if grid is not None:
                lowered.attributes["frag.grid"] = grid
            Rewriter.insert_op(lowered, InsertPoint.before(function))
            Rewriter.erase_op(function, safe_erase=False)
            check_shared(lowered, self.target)
