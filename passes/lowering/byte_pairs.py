"""Tiles of bytes in shared memory whose lanes have two neighbours, as accumulators do.

A register has four bytes, two pairs at two places: each pair is one access of 16 bits. The low pair
is stored as it stands, the high one is shifted down; loaded pairs become a register by `prmt`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.passes.lowering.places import TilePlaces

PER = 4  # bytes of a register
PAIR = ptx.vector_type(IntegerType(8), 2)
BOTH = 0x5410
"""prmt: the low halves of two registers."""


class BytePairs:
    """Two accesses for every register of a tile of bytes."""

    def __init__(self, access: TilePlaces):
        self._access, self._ar = access, access.ar

    @property
    def fit(self) -> bool:
        """Whether lanes have pairs of bytes that lie side by side, and no more of them."""
        access = self._access
        return (
            access.memory.layout is not None
            and not access.masked
            and not access.layout.where
            and access.chunk % PER == 0
            and access.lie_together(2)
            and not access.lie_together(4)
        )

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        access, ar = self._access, self._ar
        for number, fragment in enumerate(fragments):
            count = access.chunk // PER
            low = ar.insert(ptx.BitcastOp(fragment, ptx.vector_type(i32, count))).result
            half = ar.splat(self._sixteen(), count)
            high = ar.insert(arith.ShRUIOp(low, half)).result
            pairs = [ar.insert(ptx.UnpackOp(words)).scalars for words in (low, high)]
            for word in range(count):
                for place, words in enumerate(pairs):
                    part = ar.insert(ptx.BitcastOp(words[word], PAIR)).result
                    at = access.address(number * access.chunk + word * PER + 2 * place)
                    ar.insert(ptx.StoreOp(part, *at))

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        access, ar = self._access, self._ar
        type_ = ptx.vector_type(access.memory.element, access.chunk)
        chunks: list[SSAValue] = []
        for first in range(0, access.count, access.chunk):
            low, high = self._words(first), self._words(first + 2)
            words = ar.insert(ptx.PermuteOp(low, high, ar.constant(BOTH))).result
            chunks.append(ar.insert(ptx.BitcastOp(words, type_)).result)
        return chunks

    def _words(self, first: int) -> SSAValue:
        """Every second pair of a chunk from an element on, each in a register."""
        access, ar = self._access, self._ar
        words: list[SSAValue] = []
        for element in range(first, first + access.chunk, PER):
            pointer, offset = access.address(element)
            loaded = ar.insert(ptx.LoadOp(pointer, offset, PAIR)).value
            words.append(ar.insert(ptx.BitcastOp(loaded, i32)).result)
        return ar.insert(ptx.PackOp(words)).result

    def _sixteen(self) -> SSAValue:
        attribute = IntegerAttr(16, i32)
        key = ("constant", attribute)
        return self._ar.pure(key, (), lambda: arith.ConstantOp(attribute))
