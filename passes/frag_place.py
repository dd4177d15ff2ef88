"""`frag-place`: gives every tile the layout that the instructions demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from fragir.diagnostics import fail
from fragir.dialects.interfaces import Threads
from fragir.errors import FragirError
from fragir.isa.targets import known
from fragir.passes.convert_frag_to_ptx import threads_of, warps_of
from fragir.passes.placing.placement import set_layout
from fragir.passes.placing.relations import Relations, tiles_of

if TYPE_CHECKING:
    from fragir.passes.placing.inference import Inference


@dataclass(frozen=True)
class FragPlacePass(ModulePass):
    """Infers layouts from what operations demand and writes them into the tiles' types.

    Where operations demand different layouts of a tile, the function's layouts are chosen so that
    operations and conversions cost least, and `frag.convert` is inserted. A tile that no
    instruction touches gets rows in order.
    """

    name = "frag-place"
    target: str = "sm_80"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            known(self.target)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
        for function in op.ops:
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                try:
                    place(function, self.target)
                except FragirError as error:
                    fail(function, str(error))


def place(function: func.FuncOp, target: str) -> Inference | None:
    """Places every tile of one function; what was inferred where that was not plain."""
    if not tiles_of(function):
        return None
    warps, groups = warps_of(function, "frag.warps"), warps_of(function, "frag.warpgroups")
    threads = Threads(target, warps, groups)
    count = threads_of(function)
    plain = Relations(function, threads, count).solve()
    for demand, values in plain.placed:
        for value in values:
            set_layout(value, demand.layout)
    if not plain.open:
        return None
    from fragir.passes.placing.inference import infer
    from fragir.passes.placing.rewriting import write

    inference = infer(function, plain.open, threads, count)
    write(inference)
    return inference
