"""Transposes and broadcasts of tensors, folded into the maps of those who read them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg import ops
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter


def fold_copies(function: func.FuncOp) -> None:
    """Lets generics read what a copy of elements read, as far as every loop is still known."""
    for op in [x for x in function.walk() if isinstance(x, ops.GenericOp)]:
        if not _is_copy(op):
            continue
        for use in list(op.res[0].uses):
            reader = use.operation
            if isinstance(reader, ops.GenericOp) and use.index < len(reader.inputs):
                _read_through(reader, use.index, op)
        if not op.res[0].uses:
            Rewriter.erase_op(op)


def _is_copy(op: ops.GenericOp) -> bool:
    """Whether an operation on tensors only puts elements elsewhere."""
    end = op.body.block.first_op
    if len(op.inputs) != 1 or len(op.res) != 1 or not isinstance(end, ops.YieldOp):
        return False
    maps = _maps(op)
    dims = [e.position for e in maps[1].results if isinstance(e, AffineDimExpr)]
    whole = sorted(dims) == list(range(maps[1].num_dims)) and len(maps[1].results) == len(dims)
    return whole and end.operands[0] is op.body.block.args[0]


def _maps(op: ops.GenericOp) -> list[AffineMap]:
    return [attribute.data for attribute in op.indexing_maps]


def _read_through(reader: ops.GenericOp, number: int, copy: ops.GenericOp) -> None:
    """Lets an input of a reader be that of a copy."""
    source, written = _maps(copy)
    maps = _maps(reader)
    read = maps[number]
    by_loop: dict[int, AffineExpr] = {}
    for expression, at in zip(written.results, read.results, strict=True):
        assert isinstance(expression, AffineDimExpr)
        by_loop[expression.position] = at
    loops = [by_loop[loop] for loop in range(written.num_dims)]
    places = tuple(expression.replace_dims_and_symbols(loops, []) for expression in source.results)
    maps[number] = AffineMap(read.num_dims, 0, places)
    if not _know_all_loops(maps):
        return
    inputs: list[SSAValue] = list(reader.inputs)
    inputs[number] = copy.inputs[0]
    reader.operands = [*inputs, *reader.outputs]
    reader.properties["indexing_maps"] = ArrayAttr(map(AffineMapAttr, maps))


def _know_all_loops(maps: Sequence[AffineMap]) -> bool:
    """Whether the sizes of operands say how far each loop runs."""
    plain = {e.position for m in maps for e in m.results if isinstance(e, AffineDimExpr)}
    return len(plain) == maps[0].num_dims
