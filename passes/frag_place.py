"""`frag-place`: gives every tile the layout that the instructions demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from fragir.dialects import frag
from fragir.dialects.shorthands import operations_in
from fragir.errors import FragirError
from fragir.isa.targets import require_target
from fragir.mlir.diagnostics import fail
from fragir.passes.placing.placement import set_layout
from fragir.passes.placing.products import PRODUCTS, idle_warps
from fragir.passes.placing.relations import Relations, tiles_of
from fragir.passes.placing.rewriting import PlacedTiles, place_with_staging
from fragir.passes.remarks import remark
from fragir.passes.scopes import WarpScope, scopes
from fragir.passes.tile_passes import TargetPass, kernels_of

if TYPE_CHECKING:
    from fragir.passes.placing.explanation import Explanation


class FragPlacePass(TargetPass):
    """Infers layouts from what operations demand and writes them into the tiles' types.

    Where operations demand different layouts of a tile, the function's layouts are chosen so that
    operations and conversions cost least, and `frag.convert` is inserted. A tile that no
    instruction touches gets rows in order.
    """

    name = "frag-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            require_target(self.target)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
        for function in kernels_of(op):
            try:
                self.place(function)
            except FragirError as error:
                fail(function, str(error))

    def place(self, function: func.FuncOp) -> None:
        """Places every tile of one function."""
        place(function, self.target)


def place(function: func.FuncOp, target: str, told: list[Explanation] | None = None) -> None:
    """Places every tile of one function; why they are placed so is added to `told`."""
    tiles = tiles_of(operations_in(function))
    if not tiles:
        return
    _split_batches(tiles)
    if any(isinstance(value.owner, frag.MmaOp) for value in tiles_of(operations_in(function))):
        from fragir.passes.placing.products import pad_products

        remark(function, pad_products(operations_in(function), target))
    found: list[Explanation] | None = None if told is None else []
    for scope in scopes(function, target):
        _place(function, scope, found)
    if told is not None and found:
        from fragir.passes.placing.explanation import together

        told.append(together(found))


def _place(function: func.FuncOp, scope: WarpScope, told: list[Explanation] | None) -> None:
    """Places the tiles that some threads of a function hold."""
    tiles, threads, count = tiles_of(scope.operations), scope.threads, scope.size
    if not tiles:
        return

    def attempt() -> PlacedTiles:
        plain = Relations(function, scope.operations, tiles, threads, count).solve()
        if not plain.open:
            return PlacedTiles(plain, None)
        from fragir.passes.placing.inference import infer

        return PlacedTiles(plain, infer(function, plain.open, threads, count))

    (plain, inference), remarks = place_with_staging(scope.operations, attempt)
    remark(function, remarks)
    if told is not None:
        from fragir.passes.placing.explanation import explain_function

        told.append(explain_function(function.sym_name.data, threads.target, plain, inference))
    for demand, values in plain.placed:
        for value in values:
            set_layout(value, demand.layout)
    if inference is not None:
        from fragir.passes.placing.rewriting import write

        write(inference)
    if any(op.name in PRODUCTS for op in scope.operations):
        remark(function, idle_warps(scope.operations))
    if plain.asserted:
        from fragir.passes.placing.rewriting import check_free

        for op in plain.asserted:
            check_free(op, threads.target, inference)


def _split_batches(tiles: Sequence[SSAValue]) -> None:
    """Makes products of batches products of matrices."""
    owners = [value.owner for value in tiles]
    found = [op for op in owners if isinstance(op, Operation) and op.name == "frag.mma_batched"]
    if found:
        from fragir.passes.placing.products import split_batch  # few programs need it

        for op in found:
            assert isinstance(op, frag.MmaBatchedOp)
            split_batch(op)
