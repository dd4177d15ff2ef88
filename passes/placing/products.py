"""Products before layouts are chosen.

Batches as matrices, padding, and those too small for their warps.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.regrouped import STAGED, RenamingOp
from fragir.isa.spelling import mnk
from fragir.isa.tiling import sharing
from fragir.passes.placing.relations import asking

# -- padding ---------------------------------------------------------------------------------------
# Products that no instruction divides: padded with zeros, before layouts are chosen.


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
    first, second, third = (_pad_tile(value, wanted, new) for value, wanted in operands)
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


def _pad_tile(value: SSAValue, shape: tuple[int, int], new: list[Operation]) -> SSAValue:
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


# -- batches ---------------------------------------------------------------------------------------
# Products of batches as products of matrices, before layouts are chosen.


def split_batch(op: frag.MmaBatchedOp) -> None:
    """Replaces a product of batches by one `frag.mma` a matrix.

    Each is cut out of its batch and put behind the one before: other names for registers, where
    the batch's matrices are in the same lanes, which the layouts of the products propose.
    """
    new: list[Operation] = []
    types, results = op.matrices(), list[SSAValue]()
    for number in range(op.d.type.shape[0]):
        parts: list[SSAValue] = []
        for tile, matrix in zip((op.a, op.b, op.c), types[:3], strict=True):
            cut = frag.SliceTileOp(tile, (number, 0, 0), _batch_of_one(matrix))
            named = frag.ReshapeOp(cut.result, matrix)
            new += [cut, named]
            parts.append(named.result)
        a, b, c = parts
        product = frag.MmaOp(a, b, c, types[3])
        product.properties.update(op.properties)
        one = frag.ReshapeOp(product.d, _batch_of_one(types[3]))
        new += [product, one]
        results.append(one.result)

    def behind(first: SSAValue, second: SSAValue) -> SSAValue:
        joined = frag.ConcatenateOp(first, second, 0)
        new.append(joined)
        return joined.result

    whole = reduce(behind, results)
    for each in new:
        each.location = op.location
    block = op.parent
    assert block is not None
    block.insert_ops_before(new, op)
    placed = op.d.type.placement
    whole.name_hint = op.d.name_hint
    if placed is not None:  # a layout that the program gives
        convert = frag.ConvertOp(whole, op.d.type)
        block.insert_op_before(convert, op)
        whole = convert.result
    op.d.replace_all_uses_with(whole)
    op.detach()
    op.erase()


def _batch_of_one(matrix: frag.TileType) -> frag.TileType:
    """A batch of one matrix."""
    return frag.TileType((1, *matrix.shape), matrix.element_type)


# -- idle ------------------------------------------------------------------------------------------
# Products that are too small for their warps: what is said of them.

PRODUCTS = ("frag.mma", "frag.mma_sparse", "frag.wgmma")


def idle_warps(operations: Iterable[Operation]) -> list[str]:
    """Placed products that are too small for their warps."""
    return [words for op in operations if op.name in PRODUCTS for words in _idle(op)]


def _idle(op: Operation) -> list[str]:
    tile = frag.tile_of(op.results[-1])
    placement = tile.placement
    if not isinstance(placement, frag.MmaLayoutAttr) or tile.products > 1:
        return []
    fragment = placement.data
    m, n, _ = fragment.mnk
    (over_m, over_n), unit = fragment.warps, "warpgroups" if fragment.is_wgmma else "warps"
    busy = sharing(over_m, tile.rows // m) * sharing(over_n, tile.cols // n)
    if busy == over_m * over_n:
        return []
    return [
        f"{op.name} of {tile.rows}x{tile.cols} is shared by {busy} of {over_m * over_n} {unit}, "
        "the others compute the same; a larger tile, or fewer of them, costs less"
    ]
