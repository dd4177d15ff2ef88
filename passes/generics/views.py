"""Kernels of generics on parts of memory, and copies as generics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AffineMapAttr, StringAttr, UnitAttr
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from fragir.dialects import frag
from fragir.dialects.narrow import is_memref, memref_type
from fragir.passes.contraction.views import is_named, root_of
from fragir.passes.generics.axes import NoKernelError
from fragir.ptx.machines import GRID

BLOCKS = 1024
"""Of a kernel whose launch does not know its sizes, at most: those that run at once."""


def identity_copy(source: SSAValue, target: SSAValue) -> ops.GenericOp:
    """A generic that copies memory to memory of its shape."""
    types = [memref_type(x.type) for x in (source, target)]
    rank = len(types[1].get_shape())
    map_ = AffineMapAttr(AffineMap.identity(rank))
    block = Block(arg_types=[type_.element_type for type_ in types])
    block.add_op(ops.YieldOp(block.args[0]))
    loops = [attrs.IteratorTypeAttr.parallel()] * rank
    return ops.GenericOp([source], [target], Region(block), [map_, map_], loops)


def share_tiles(function: func.FuncOp, loop: frag.ForTilesOp) -> None:
    """Lets blocks take tiles until none is left, where a launch cannot tell how many there are.

    Where there may be more rows of tiles than a grid has blocks along y, or matrices along z, tiles
    are numbered along x.
    """
    *counts, columns = (
        -(-extent // size) if isinstance(extent, int) else None
        for extent, size in zip(loop.all_extents(), loop.tile_shape, strict=True)
    )
    outer = counts[:-1]
    many = [counts[-1], None if None in outer else prod(x for x in outer if x is not None)]
    if any(count is None or count > GRID[1] for count in many):
        loop.order = StringAttr("columns" if columns == 1 and not outer else "linear")
    if not all(map(is_named, loop.all_extents())) and "frag.grid" not in function.attributes:
        loop.persistent = UnitAttr()
        count = frag.BlockCount((frag.Extent(BLOCKS),), resident=True)
        function.attributes["frag.grid"] = frag.GridAttr((count,))


def write_copies(function: func.FuncOp) -> None:
    """Makes a generic of every copy of a function."""
    for op in list(function.body.block.ops):
        if isinstance(op, memref.CopyOp):
            made = identity_copy(op.source, op.destination)
            for inner in made.walk():
                inner.location = op.location
            Rewriter.replace_op(op, made, [])


def check_views(work: Sequence[LinalgStructuredOperation]) -> None:
    """NoKernelError where blocks would see what others write: memory that is written is one value,
    of which no other view is used.
    """
    seen: dict[SSAValue, SSAValue] = {}
    writers: dict[SSAValue, Operation] = {}
    for op in work:
        writers.update({root_of(value): op for value in op.outputs})
    for op in work:
        for value in op.operands:
            if not is_memref(value.type):
                continue
            root = root_of(value)
            if isinstance(root.owner, memref.AllocOp) and root is not value:
                raise NoKernelError(op, f"{op.name} works on a view of the kernel's own memory")
            if root in writers and seen.setdefault(root, value) is not value:
                raise NoKernelError(
                    op, f"{op.name} takes another view of memory that the kernel writes"
                )
