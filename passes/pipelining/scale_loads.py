"""The scales of a product in tensor memory: loads of them, as copies into shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag
from fragir.dialects.frag.attributes import SCALES
from fragir.dialects.frag.products import are_chunks
from fragir.dialects.frag.tensor_scales import (
    BLOCKS,
    CHUNK_SHAPE,
    ROWS,
    chunk_layout,
    chunked,
    turned,
)
from fragir.mlir.diagnostics import fail
from fragir.passes.pipelining.insertion import insert_before


class ScaleLoad(NamedTuple):
    """A load of scales of A or B, which have so many rows and blocks along K."""

    load: frag.LoadOp
    rows: int
    blocks: int
    chunked: bool
    turned: bool
    """Whether memory has blocks along K first."""

    @property
    def in_tensor_memory(self) -> MemRefType[Attribute]:
        """What they become there."""
        element = frag.tile_of(self.load.tile).element_type
        space = frag.TensorMemoryAttr(SCALES)
        return MemRefType(element, (self.rows, self.blocks), memory_space=space)

    @property
    def in_shared(self) -> MemRefType[Attribute]:
        """What they are ahead of that: chunks, or a matrix laid out in chunks."""
        element, (across, along) = frag.tile_of(self.load.tile).element_type, self._chunks
        space = frag.SharedAttr()
        if self.chunked:
            return MemRefType(element, (across, along, *CHUNK_SHAPE), memory_space=space)
        shape, layout = (ROWS * across, BLOCKS * along), chunk_layout(self.rows, self.blocks)
        if self.turned:
            shape, layout = shape[::-1], turned(layout)
        return MemRefType(element, shape, frag.ExplicitLayoutAttr(layout), space)

    @property
    def _chunks(self) -> tuple[int, int]:
        return chunked(self.rows, self.blocks)

    def copies(self, shared: SSAValue, at: InsertPoint) -> Iterator[frag.CopyOp]:
        """The copies that fill shared memory: of chunks by TMA."""
        indices = self.load.all_indices()
        if not self.chunked:
            yield self._located(
                frag.CopyOp(self.load.memory, indices, shared, [], masked=True, is_async=True)
            )
            return
        across, along = self._chunks
        row, block, *within = indices
        for i in range(across):
            for j in range(along):
                places = [_moved(row, i, at), _moved(block, j, at), *within]
                yield self._located(frag.CopyOp(self.load.memory, places, shared, [i, j], tma=True))

    def _located(self, copy: frag.CopyOp) -> frag.CopyOp:
        copy.location = self.load.location
        return copy


def _moved(index: int | SSAValue, by: int, at: InsertPoint) -> int | SSAValue:
    if by == 0:
        return index
    if isinstance(index, int):
        return index + by
    step = insert_before(arith.ConstantOp(IntegerAttr(by, IndexType())), at)
    return insert_before(arith.AddiOp(index, step), at)


def scales_of(product: frag.MmaOp) -> list[ScaleLoad]:
    """The loads of a product's scales, of A and of B; the pass ends where they are none."""
    found: list[ScaleLoad] = []
    if not product.scales:
        return found
    a, _, _, d = product.tile_types()
    blocks = a.cols // product.how().block
    for value, rows in zip(product.scales, d.shape, strict=True):
        load = value.owner
        if not isinstance(load, frag.LoadOp) or load.parent is not product.parent:
            fail(product, "scales go to tensor memory from global memory: load them in this loop")
        is_chunked = are_chunks(frag.tile_of(value))
        k_first = (value is product.scales[1]) != (load.transposed is not None)
        found.append(ScaleLoad(load, rows, blocks, is_chunked, k_first and not is_chunked))
    return found
