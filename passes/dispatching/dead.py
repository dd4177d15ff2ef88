"""Erases what nobody sees: operations whose memory nobody reads, and sizes of such memory."""

from __future__ import annotations

from xdsl.dialects import cf, memref
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.constants import constant_of, index_constant
from fragir.dialects.narrow import is_memref
from fragir.passes.contraction.views import VIEWS, root_of


def erase_unread(block: Block) -> None:
    """Erases operations of linalg that write memory of the block's own which nothing behind them
    reads. Sizes of such memory are those that it was allocated with.
    """
    for op in list(block.ops):
        if isinstance(op, memref.DimOp) and isinstance(op.source.owner, memref.AllocOp):
            _forward(op, op.source.owner)
    read: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        if isinstance(op, (memref.AllocOp, memref.DeallocOp, memref.DimOp, *VIEWS)):
            continue
        memories = {
            root_of(value)
            for inner in op.walk()
            for value in inner.operands
            if is_memref(value.type)
        }
        if isinstance(op, LinalgStructuredOperation):
            written = {root_of(output) for output in op.outputs}
            asserts = any(isinstance(inner, cf.AssertOp) for inner in op.body.block.ops)
            if not asserts and all(
                isinstance(m.owner, memref.AllocOp) and m not in read for m in written
            ):
                Rewriter.erase_op(op)
                continue
        read |= memories


def _forward(op: memref.DimOp, memory: memref.AllocOp) -> None:
    """Gives a size of memory as it was given when that was allocated."""
    dim = constant_of(op.index)
    shape = memory.memref.type.get_shape()
    if dim is None or not 0 <= dim < len(shape):
        return
    if shape[dim] < 0:
        size: SSAValue = memory.dynamic_sizes[sum(s < 0 for s in shape[:dim])]
    else:
        made: Operation = index_constant(shape[dim])
        Rewriter.insert_op(made, InsertPoint.before(op))
        size = made.results[0]
    Rewriter.replace_op(op, [], [size])
