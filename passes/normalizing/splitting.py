"""Generics rewritten.

Outputs reduced and not divided, transposes and broadcasts in the maps of who reads them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

PARALLEL = attrs.IteratorTypeAttr.parallel()


def split_generics(function: func.FuncOp) -> None:
    """An output on tensors that has an element for every turn of all loops gets a generic without
    reductions. What both compute is computed twice, or once where they become one kernel.
    """
    for op in list(function.walk()):
        if (parts := parts_of(op)) and isinstance(op, ops.GenericOp):
            made = {at: value for part in parts for at, value in _part(op, part).items()}
            Rewriter.replace_op(op, [], [made[at] for at in range(len(op.outputs))])


def parts_of(op: Operation) -> list[list[int]]:
    """The outputs that have an element for every turn, and the others; none if it stays whole."""
    if not isinstance(op, ops.GenericOp) or all(kind == PARALLEL for kind in op.iterator_types):
        return []
    if len(op.outputs) < 2 or not all(isinstance(x.type, TensorType) for x in op.outputs):
        return []
    maps = [attribute.data for attribute in op.indexing_maps]
    first, args = len(op.inputs), op.body.block.args
    every = [at for at, map_ in enumerate(maps[first:]) if _is_permutation(map_)]
    others = [at for at in range(len(op.outputs)) if at not in every]
    # an output for every turn that depends on a sum up to there is a scan
    if not every or not others or _behind(op, every) & {args[first + at] for at in others}:
        return []
    return [every, others]


def _is_permutation(map_: AffineMap) -> bool:
    found = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    return len(map_.results) == len(found) and sorted(found) == list(range(map_.num_dims))


def _behind(op: ops.GenericOp, outputs: Sequence[int]) -> set[SSAValue]:
    """What outputs are computed from: values of the body, and its arguments."""
    block = op.body.block
    end = block.last_op
    assert end is not None
    left, seen = [end.operands[at] for at in outputs], set[SSAValue]()
    while left:
        value = left.pop()
        if value not in seen:
            seen.add(value)
            if isinstance(value, OpResult) and value.op.parent is block:
                left += [x for inner in value.op.walk() for x in inner.operands]
    return seen


def _part(op: ops.GenericOp, outputs: Sequence[int]) -> dict[int, SSAValue]:
    """A generic of some of the outputs; their results. What it reads of others is an input."""
    first, block = len(op.inputs), op.body.block
    needed = _behind(op, outputs)
    reduces = any(not _is_permutation(op.indexing_maps.data[first + at].data) for at in outputs)
    inputs = [
        at
        for at, argument in enumerate(block.args)
        if at - first not in outputs and (argument in needed or (reduces and at < first))
    ]
    order = [*inputs, *(first + at for at in outputs)]
    body = Block(arg_types=[block.args[at].type for at in order])
    known: dict[SSAValue, SSAValue] = {}
    for at, argument in zip(order, body.args, strict=True):
        known[block.args[at]] = argument
        argument.name_hint = block.args[at].name_hint
    for inner in block.ops:
        if any(result in needed for result in inner.results):
            copy = inner.clone(known)
            for one, other in zip(inner.walk(), copy.walk(), strict=True):
                other.location = one.location
            body.add_op(copy)
    end = block.last_op
    assert end is not None
    yielded = ops.YieldOp(*(known.get(end.operands[at], end.operands[at]) for at in outputs))
    yielded.location = end.location
    body.add_op(yielded)
    made = ops.GenericOp(
        [op.operands[at] for at in inputs],
        [op.outputs[at] for at in outputs],
        Region(body),
        [op.indexing_maps.data[at] for at in order],
        list(op.iterator_types) if reduces else [PARALLEL] * len(op.iterator_types),
        [op.outputs[at].type for at in outputs],
    )
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    for at, result in zip(outputs, made.res, strict=True):
        result.name_hint = op.res[at].name_hint
    return dict(zip(outputs, made.res, strict=True))


# -- folding ---------------------------------------------------------------------------------------
# Transposes and broadcasts of tensors, folded into the maps of those who read them.


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
