"""How much memory a product's parts of sums and their counts take: checked, and told the launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.grid import LEAST
from fragir.errors import FragirError
from fragir.passes.tiling.gemm_schedule import Schedule


def note_least(function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule) -> None:
    """Writes `frag.least` at the arguments that parts go through; FragirError where one is too
    small whatever a launch brings. What is no argument of the function is not known."""
    arguments: list[SSAValue] = list(function.body.block.args)
    assert schedule.parts is not None
    if product.c not in arguments:
        return
    *batch, m, n = frag.size_names(function, arguments.index(product.c))[0]
    tile_m, tile_n, _ = schedule.tile
    parts = frag.Extent(schedule.parts[0])
    whole = [frag.Extent(size) for size in batch]
    needed = (
        [parts, *whole, frag.Extent(m), frag.Extent(n)],
        [*whole, frag.Extent(m, tile_m), frag.Extent(n, tile_n)],
    )
    for value, least in zip(product.through(), needed, strict=True):
        if value in arguments:
            least = [frag.Extent(e.least()) if isinstance(e.size, int) else e for e in least]
            _note(function, arguments.index(value), least)


def _note(function: func.FuncOp, index: int, least: Sequence[frag.Extent]) -> None:
    dims, _ = frag.size_names(function, index)
    known = [
        (size, extent.size)
        for size, extent in zip(dims, least, strict=True)
        if isinstance(size, int) and isinstance(extent.size, int)
    ]
    if any(size < low for size, low in known):
        name = function.body.block.args[index].name_hint or f"arg{index}"
        shape, wanted = ("x".join(str(x) for x in sizes) for sizes in (dims, least))
        raise FragirError(
            f"%{name} is {shape}, the parts of sums take {wanted}",
            hint="make it that large, or leave its sizes to the launch: ?",
        )
    if all(size == extent.size for size, extent in zip(dims, least, strict=True)):
        return  # as with every size that has a name, the launch checks it
    count = len(function.body.block.args)
    old = function.arg_attrs
    entries = list(old.data) if old is not None else [DictionaryAttr({})] * count
    entries[index] = DictionaryAttr({**entries[index].data, LEAST: frag.LeastAttr(tuple(least))})
    function.arg_attrs = ArrayAttr(entries)
