"""Products of batches as products of matrices, before layouts are chosen."""

from __future__ import annotations

from functools import reduce

from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag


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
            cut = frag.SliceTileOp(tile, (number, 0, 0), _alone(matrix))
            named = frag.ReshapeOp(cut.result, matrix)
            new += [cut, named]
            parts.append(named.result)
        a, b, c = parts
        product = frag.MmaOp(a, b, c, types[3])
        product.properties.update(op.properties)
        one = frag.ReshapeOp(product.d, _alone(types[3]))
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


def _alone(matrix: frag.TileType) -> frag.TileType:
    """A batch of one matrix."""
    return frag.TileType((1, *matrix.shape), matrix.element_type)
