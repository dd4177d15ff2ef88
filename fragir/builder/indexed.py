"""Memory at computed places: the methods of a kernel that follow indices in memory or in tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref

from fragir.builder.places import fail
from fragir.builder.tiles import TileOperations
from fragir.builder.types import index
from fragir.builder.values import IndexOperand, Memory, Scalar


class IndexedOperations(TileOperations):
    """Numbers from memory."""

    def load_scalar(self, memory: Memory, at: Sequence[IndexOperand]) -> Scalar:
        """One number from global memory, the same for all threads: a bound of a loop, or, with
        `.cast(fragir.index)`, an index. It must exist.
        """
        source, indices = self._memory(memory), self._indices(at)
        if memory.is_shared:
            fail(f"{memory!r} holds no scalars", "a scalar is read from global memory")
        rank = len(memory.type.get_shape())
        if len(indices) != rank:
            fail(f"{memory!r} takes {rank} indices, one a dimension, but {len(indices)} are given")
        places = [self.trace.constant(i, index) if isinstance(i, int) else i for i in indices]
        return Scalar(self.trace, self.trace.insert(memref.LoadOp.get(source, places)).res)
