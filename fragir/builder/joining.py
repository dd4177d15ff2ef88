"""Tiles made of several tiles: the methods `concatenate` and `join` of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import SSAValue

from fragir.builder.checks import by, dimension, items
from fragir.builder.places import fail
from fragir.builder.tiles import TileOperations
from fragir.builder.types import type_name
from fragir.builder.values import Tile
from fragir.dialects import frag


class JoiningOperations(TileOperations):
    """Tiles made of several tiles."""

    def concatenate(self, tiles: Sequence[Tile], axis: int = 0) -> Tile:
        """Tiles behind each other along a dimension; the other sizes and the types are alike."""
        given = items(tiles)
        if not given:
            fail(f"{tiles!r} are no tiles to concatenate", "write k.concatenate([a, b], 1)")
        sources = [self._tile(tile) for tile in given]
        first = frag.tile_of(sources[0])
        dim = dimension(axis, len(first.shape), f"a tile of {by(first.shape)}")
        for source in sources[1:]:
            other = frag.tile_of(source)
            _same_element(first, other)
            rest = [shape[:dim] + shape[dim + 1 :] for shape in (first.shape, other.shape)]
            if len(first.shape) != len(other.shape) or rest[0] != rest[1]:
                fail(f"{by(first.shape)} and {by(other.shape)} differ besides dimension {dim}")

        def behind(one: SSAValue, other: SSAValue) -> SSAValue:
            return self.trace.insert(frag.ConcatenateOp(one, other, dim)).result

        return self.trace.wrap(reduce(behind, sources))

    def join(self, first: Tile, second: Tile) -> Tile:
        """Two tiles with another dimension, of size 2, behind theirs; `tile.split()` undoes it.

        `k.join(x, y).reshape(-1)` of two rows is x0 y0 x1 y1 and so on.
        """
        one, other = self._tile(first), self._tile(second)
        _same_element(frag.tile_of(one), frag.tile_of(other))
        if first.shape != second.shape:
            fail(f"{first!r} and {second!r} differ in shape")
        return self.trace.wrap(self.trace.insert(frag.JoinOp(one, other)).result)


def _same_element(first: frag.TileType, second: frag.TileType) -> None:
    types = [type_name(tile.element_type) for tile in (first, second)]
    if types[0] != types[1]:
        fail(f"tiles of {types[0]} and {types[1]} have no elements in common", "use .cast(...)")
