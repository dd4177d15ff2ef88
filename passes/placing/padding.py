"""Products that no instruction divides: padded with zeros, before layouts are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.regrouped import STAGED, RenamingOp
from fragir.isa.spelling import mnk
from fragir.passes.placing.relations import asking


def pad_products(operations: Iterable[Operation], target: str) -> list[str]:
    """Makes every `frag.mma` one of tiles that its instruction divides; remarks on those."""
    found = [op for op in operations if isinstance(op, frag.MmaOp)]
    return [words for op in found for words in _pad(op, target)]


def _pad(op: frag.MmaOp, target: str) -> list[str]:
    a, _, c, d = op.tile_types()
    if d.products > 1:
        return []
    with asking(op):
        name = op.instruction_name(target)
    shape, sizes = mnk(name.partition(".")[0]), (c.rows, c.cols, a.cols)
    m, n, k = (-(-size // step) * step for size, step in zip(sizes, shape, strict=True))
    if (m, n, k) == sizes:
        return []
    new: list[Operation] = []
    operands = zip((op.a, op.b, op.c), ((m, k), (k, n), (m, n)), strict=True)
    first, second, third = (_padded(value, wanted, new) for value, wanted in operands)
    product = frag.MmaOp(first, second, third, frag.TileType((m, n), d.element_type))
    product.properties.update(op.properties)
    part = frag.SliceTileOp(product.d, (0, 0), d.with_layout(None))
    new += [product, part]
    result = part.result
    if d.placement is not None:  # a layout that the program gives
        converted = frag.ConvertOp(result, d)
        new.append(converted)
        result = converted.result
    for each in new:
        each.location = op.location
        if isinstance(each, RenamingOp):  # lanes of a fragment have parts of rows and columns
            each.attributes[STAGED] = UnitAttr()
    block = op.parent
    assert block is not None
    block.insert_ops_before(new, op)
    result.name_hint = op.d.name_hint
    op.d.replace_all_uses_with(result)
    op.detach()
    op.erase()
    before, after = ("x".join(map(str, each)) for each in (sizes, (m, n, k)))
    return [
        f"frag.mma of {before} (M x N x K) is padded to {after}, which {name} divides, through "
        "shared memory; a tile of that size, loaded with `masked`, costs less"
    ]


def _padded(value: SSAValue, shape: tuple[int, int], new: list[Operation]) -> SSAValue:
    """A tile with zeros behind its rows and columns."""
    for dim, wanted in enumerate(shape):
        tile = frag.tile_of(value)
        more = wanted - tile.shape[dim]
        if more:
            sizes = tuple(more if d == dim else size for d, size in enumerate(tile.shape))
            zero = arith.ConstantOp(_zero(tile.element_type))
            fill = frag.FillOp(zero.result, frag.TileType(sizes, tile.element_type))
            behind = frag.ConcatenateOp(value, fill.tile, dim)
            new += [zero, fill, behind]
            value = behind.result
    return value


def _zero(element: Attribute) -> FloatAttr[AnyFloat] | IntegerAttr[IntegerType]:
    if isinstance(element, AnyFloat):
        return FloatAttr(0.0, element)
    width = cast("IntegerType", element)  # as an instruction multiplies it
    return IntegerAttr(0, width)
