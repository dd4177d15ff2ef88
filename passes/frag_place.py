"""`frag-place`: gives every tile the layout that the instructions demand."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.dialects.interfaces import Threads
from fragir.errors import FragirError
from fragir.isa.targets import known
from fragir.passes.convert_frag_to_ptx import threads_of, warps_of
from fragir.passes.placing.relations import Demand, Relations, owner_of, tiles_of


@dataclass(frozen=True)
class FragPlacePass(ModulePass):
    """Infers layouts from what mma and wgmma demand and writes them into the tiles' types.

    A tile that two operations demand in different layouts is an error that names both: write
    `frag.convert` between them. A tile that no instruction touches gets rows in order.
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


def place(function: func.FuncOp, target: str) -> None:
    """Places every tile of one function."""
    if not tiles_of(function):
        return
    warps, groups = warps_of(function, "frag.warps"), warps_of(function, "frag.warpgroups")
    threads = Threads(target, warps, groups)
    relations = Relations(function, threads, threads_of(function))
    for demand, values in list(relations.solve()):
        for value in values:
            tile = value.type
            assert isinstance(tile, frag.TileType)
            if tile.layout != demand.layout:
                Rewriter.replace_value_with_new_type(value, _placed(value, tile, demand))


def _placed(value: SSAValue, tile: frag.TileType, demand: Demand) -> frag.TileType:
    try:
        return tile.with_layout(demand.layout)
    except VerifyException as error:
        fail(owner_of(value), f"{tile} cannot have the layout {demand.layout}: {error}")
