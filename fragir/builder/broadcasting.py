"""Tiles of several shapes in one operation: numpy's rules of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.builder.places import by, fail, require_dimension, require_number, require_shape
from fragir.builder.shapes import Builds, reshape
from fragir.builder.values import Tile
from fragir.dialects import frag


def together(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that all can be stretched to, or None.

    As of numpy: shapes are aligned at their last dimension; a dimension that is missing or of size
    1 takes the size of the others.
    """
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    sizes = tuple(max(column) for column in zip(*padded, strict=True))
    fits = all(n in (1, size) for shape in padded for n, size in zip(shape, sizes, strict=True))
    return sizes if fits else None


def stretch_all(trace: Builds, tiles: Sequence[Tile]) -> list[Tile]:
    """The tiles, all of one shape. An error at the user's line where there is no such shape."""
    shape = together([tile.shape for tile in tiles])
    if shape is None:
        first = tiles[0]
        other = next(t for t in tiles if together([first.shape, t.shape]) is None or t is tiles[-1])
        hint = "dimensions are counted from the last; t[:, None] adds one of size 1"
        fail(f"{first!r} and {other!r} have no shape in common", hint)
    return [stretch(trace, tile, shape) for tile in tiles]


def broadcast(trace: Builds, tile: Tile, axis: int, size: int) -> Tile:
    """A tile repeated along a new dimension."""
    rank = len(tile.shape)
    if rank == frag.MOST_DIMENSIONS:
        fail(f"{tile!r} has {rank} dimensions, and a tile no more")
    dim = require_dimension(axis, rank + 1, f"{tile!r} with one more")
    op = frag.BroadcastOp(trace.use(tile), dim, require_number(size, "size", 1))
    return trace.wrap(trace.insert(op).result)


def broadcast_to(trace: Builds, tile: Tile, shape: Sequence[int]) -> Tile:
    """A tile repeated to a shape by numpy's rules."""
    return stretch(trace, tile, tuple(require_shape(shape)))


def stretch(trace: Builds, tile: Tile, shape: Sequence[int]) -> Tile:
    """The tile repeated along new dimensions and along those of size 1."""
    if tile.shape == tuple(shape):
        return tile
    if together([tile.shape, tuple(shape)]) != tuple(shape):
        fail(f"{tile!r} cannot be repeated to {by(shape)}")
    padded = (1,) * (len(shape) - len(tile.shape)) + tile.shape
    repeated = [dim for dim, n in enumerate(shape) if padded[dim] != n]
    kept = [n for dim, n in enumerate(padded) if dim not in repeated]
    if not kept:  # one element: a tile has a dimension, which the last one takes
        last = repeated.pop()
        kept = [shape[last]]
        row = frag.BroadcastOp(trace.use(reshape(trace, tile, [1])), 0, shape[last])
        tile = trace.wrap(trace.insert(row).result)
    ssa = trace.use(reshape(trace, tile, kept))
    for dim in repeated:
        ssa = _repeat(trace, ssa, dim, shape[dim])
    return trace.wrap(ssa)


def _repeat(trace: Builds, ssa: SSAValue, dim: int, size: int) -> SSAValue:
    """A tile along a new dimension, once however often it is asked for: so it has one layout."""

    def make() -> SSAValue:
        return trace.insert(frag.BroadcastOp(ssa, dim, size)).result

    return trace.once(("broadcast", ssa, dim, size), make)


# -- batched ---------------------------------------------------------------------------------------
# Products of batches: tiles whose first dimension counts matrices, one product for each.


def leads(a: Tile, b: Tile, using: str) -> bool:
    """Whether the first dimension of the operands counts products.

    The last one does for m8n8k4.f16, which forms four at once: B ends in 4 there, and in N
    elsewhere, of which every instruction has a multiple of 8.
    """
    return b.shape[2:] != (4,) and not using.startswith("m8n8k4.f16")


def check_batch(a: Tile, b: Tile, c: Tile | None, scales: object) -> None:
    """An error at the user's line where they are no product of one batch."""
    if scales is not None:
        fail("mma: a batch has no scales", "multiply its matrices: k.mma(a[0], b[0])")
    given = [tile.shape for tile in (a, b, c) if tile is not None]
    hint = "a is batch x M x K, b is batch x K x N, c is batch x M x N"
    if any(len(shape) != 3 or shape[0] != a.shape[0] for shape in given):
        fail(f"mma: {' and '.join(map(by, given))} are no batch of products", hint)
    product = (*a.shape[:-1], b.shape[-1])
    sums = product if c is None else c.shape
    if a.shape[2] != b.shape[1] or sums != product:
        fail(f"mma: {by(a.shape)} times {by(b.shape)} plus {by(sums)}", hint)
