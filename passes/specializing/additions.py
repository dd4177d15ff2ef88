"""Tiles that roles add to memory: the copy engine adds them as it stores others.

While it is decided how tiles leave, a `frag.atomic add` is a store that is marked; what does not
leave by TMA becomes an atomic again.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.frag.tensor_copies import ADDED
from fragir.passes.pipelining.insertion import put

ADDS = "frag.adds"
"""The attribute of a store that stands for an addition."""


def as_stores(function: func.FuncOp) -> None:
    """Replaces the atomics that the copy engine can do by marked stores."""
    for op in [op for op in function.walk() if op.name == "frag.atomic"]:
        assert isinstance(op, frag.AtomicOp)
        if not _is_copied(op):
            continue
        tile, transposed = op.tile, False
        turn = tile.owner
        if isinstance(turn, frag.TransposeOp) and tile.has_one_use():
            tile, transposed = turn.source, True
        masked = op.masked is not None
        at = op.all_indices()
        made = frag.StoreOp(tile, op.memory, at, masked=masked, transposed=transposed)
        made.attributes[ADDS], made.location = UnitAttr(), op.location
        Rewriter.replace_op(op, made)
        if transposed:
            assert isinstance(turn, frag.TransposeOp)
            Rewriter.erase_op(turn)


def as_atomics(function: func.FuncOp, by_tma: str) -> None:
    """Makes atomics again of marked stores that do not leave by TMA."""
    for op in [op for op in function.walk() if isinstance(op, frag.StoreOp)]:
        if ADDS not in op.attributes or by_tma in op.attributes:
            continue
        tile, at = op.tile, InsertPoint.before(op)
        if op.transposed is not None:
            tile = put(frag.TransposeOp(tile, (1, 0)), at, tile.name_hint)
        masked = op.masked is not None
        made = frag.AtomicOp("add", tile, op.memory, op.all_indices(), masked=masked)
        made.location = op.location
        Rewriter.replace_op(op, made)


def _is_copied(op: frag.AtomicOp) -> bool:
    """Whether it adds a tile to as large a part of memory, of a type that the copy engine adds."""
    return (
        op.kind.data == "add"
        and op.old is None
        and op.mask is None
        and not frag.is_shared(op.memory.type)
        and element_name(frag.tile_of(op.tile).element_type) in ADDED
        and all(isinstance(index.type, IndexType) for index in op.indices)
    )
