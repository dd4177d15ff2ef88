"""Tiles without a dimension: what `tile.sum(1)` is."""

from __future__ import annotations

from fragir.builder.checks import dimension
from fragir.builder.places import fail
from fragir.builder.shapes import Builds, reshape
from fragir.builder.types import bf16, f16, f32
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag
from fragir.dialects.frag.reductions import problem


def reduce(trace: Builds, tile: Tile, kind: str, axis: int | None, keepdims: bool) -> Tile | Scalar:
    """A tile without a dimension, or with one of size 1, or the one number that is left.

    Sums and products of 16 bits are formed in f32.
    """
    if axis is None:
        if keepdims:
            fail("keepdims without an axis leaves nothing of a tile", "give the axis")
        found: Tile | Scalar = tile
        while isinstance(found, Tile):
            found = _along(trace, found, kind, len(found.shape) - 1)
        return found
    dim = dimension(axis, len(tile.shape), repr(tile))
    left = _along(trace, tile, kind, dim)
    if not keepdims:
        return left
    shape = [*tile.shape[:dim], 1, *tile.shape[dim + 1 :]]
    if isinstance(left, Tile):
        return reshape(trace, left, shape)
    one = frag.FillOp(trace.use(left), frag.TileType(shape, left.type))
    return trace.wrap(trace.insert(one).tile)


def _along(trace: Builds, tile: Tile, kind: str, dim: int) -> Tile | Scalar:
    narrow = tile.element if kind in ("add", "mul") and tile.element in (f16, bf16) else None
    wide = tile if narrow is None else tile.cast(f32)
    source = trace.use(wide)
    wrong = problem(kind, wide.element)
    if wrong is not None:
        fail(f"{tile!r}: {wrong}")
    result = trace.insert(frag.ReduceOp(kind, dim, source)).result
    if not isinstance(result.type, frag.TileType):
        scalar = Scalar(tile.trace, result)
        return scalar if narrow is None else scalar.cast(narrow)
    reduced = trace.wrap(result)
    return reduced if narrow is None else reduced.cast(narrow)
