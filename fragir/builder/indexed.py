"""Memory at computed places: the methods of a kernel that follow indices in memory or in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from fragir.builder.places import fail, items, require_word
from fragir.builder.tiles import Placement, TileOperations, as_stored, padding_value, read
from fragir.builder.types import condition, index, s32, type_name
from fragir.builder.values import IndexOperand, Memory, Scalar, Tile
from fragir.dialects import frag

Place: TypeAlias = Tile | IndexOperand


class IndexedOperations(TileOperations):
    """Numbers from memory; gather, scatter, atomics."""

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
        number = Scalar(self.trace, self.trace.insert(memref.LoadOp.get(source, places)).res)
        return number.cast(s32) != 0 if memory.conditions else number

    def gather(
        self,
        memory: Memory,
        at: Sequence[Place],
        *,
        shape: Sequence[int],
        masked: bool = False,
        where: Tile | None = None,
        other: Scalar | float | None = None,
        layout: Placement | None = None,
    ) -> Tile:
        """A tile from places that tiles of s32 say, one index a dimension of the memory.

        Tiles of the result's shape, or broadcast to it, say where each element lies. One tile of
        one dimension, for the first dimension of a larger tile, says where each row lies; what
        stands behind it is where columns begin. What lies outside the array (`masked`), or where
        the tile of conditions `where` does not hold, is `other`, zero unless given.
        """
        source = self._memory(memory)
        type_ = self._tile_type(shape, memory.type.element_type, layout)
        beyond = padding_value(self.trace, other, memory)
        places = self._places(at, type_.shape)
        op = frag.GatherOp(
            source,
            places,
            type_,
            masked=masked,
            mask=self._where(where, places, type_.shape),
            other=beyond,
        )
        return read(self.trace, self.trace.insert(op).tile, memory)

    def scatter(
        self,
        tile: Tile,
        memory: Memory,
        at: Sequence[Place],
        *,
        masked: bool = False,
        where: Tile | None = None,
    ) -> None:
        """Writes a tile to places that tiles of s32 say, as in `gather`.

        Of several elements at one place one is written, it is not said which.
        """
        self._tile(tile)
        target = self._memory(memory)
        places = self._places(at, tile.shape)
        mask = self._where(where, places, tile.shape)
        source = self._tile(as_stored(tile, memory) if memory.conditions else tile)
        self.trace.insert(frag.ScatterOp(source, target, places, masked=masked, mask=mask))

    def atomic(
        self,
        kind: str,
        tile: Tile,
        memory: Memory,
        at: Sequence[Place],
        *,
        masked: bool = False,
        where: Tile | None = None,
        expected: Tile | None = None,
        old: bool = False,
    ) -> Tile | None:
        """Changes memory by a tile, each place at once: `kind` is add, max, min, and, or, xor,
        exch, or cas, which writes where memory holds what the tile `expected` has.

        Places are those of a tile, as in `store`, or such as tiles of s32 say, as in `gather`. With
        `old` it returns what memory held, zero where nothing is accessed. PTX ISA 9.2, section
        9.7.13.12.
        """
        source, target = self._tile(tile), self._memory(memory)
        compared = None if expected is None else self._tile(expected)
        places = self._places(at, tile.shape)
        op = frag.AtomicOp(
            require_word(kind, "kind"),
            source,
            target,
            places,
            expected=compared,
            masked=masked,
            mask=self._where(where, places, tile.shape),
            old=old,
        )
        result = self.trace.insert(op).old
        return None if result is None else self.trace.wrap(result)

    def _places(self, values: object, shape: tuple[int, ...]) -> list[int | SSAValue]:
        given = items(values)
        if given is None:
            fail(f"{values!r} is no list of indices", "write (rows, 0)")
        return [
            self._index_tile(value, shape)
            if isinstance(value, Tile)
            else self.trace.index(value, "an index")
            for value in given
        ]

    def _index_tile(self, tile: Tile, shape: tuple[int, ...]) -> SSAValue:
        if tile.element != s32:
            fail(f"indices are s32, not {type_name(tile.element)}", "use .cast(fragir.s32)")
        if len(tile.shape) == len(shape) != 1:  # a column and a row of places are broadcast
            return self._tile(tile.broadcast_to(shape))
        return self._tile(tile)

    def _where(
        self, tile: object, places: Sequence[int | SSAValue], shape: tuple[int, ...]
    ) -> SSAValue | None:
        """Conditions for each place that tiles say, or else for each element."""
        if tile is None:
            return None
        if not isinstance(tile, Tile) or tile.element != condition:
            fail(f"where is {tile!r}, it must be a tile of conditions", "compare: where=x < 3")
        types = [place.type for place in places if isinstance(place, SSAValue)]
        tiles = [type_.shape for type_ in types if isinstance(type_, frag.TileType)]
        return self._tile(tile.broadcast_to(tiles[0] if tiles else shape))
