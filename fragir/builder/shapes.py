"""Tiles in other shapes: what `tile.T`, `tile[:, 0:32]`, `tile.reshape(...)` are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol, TypeVar, cast

from xdsl.ir import Operation, SSAValue

from fragir.builder.places import by, fail, items, require_dimension, require_number
from fragir.builder.types import bf16, f16, f32
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag
from fragir.dialects.frag.reductions import COMBINATIONS, problem

OpT = TypeVar("OpT", bound=Operation)


class Builds(Protocol):
    """What is asked of a kernel: `fragir.builder.trace.Trace`."""

    renamings: list[Operation]

    def use(self, value: Scalar | Tile) -> SSAValue:
        """The value in the IR."""
        ...

    def insert(self, op: OpT) -> OpT:
        """Appends an operation."""
        ...

    def once(self, key: object, make: Callable[[], SSAValue]) -> SSAValue:
        """A value that is made once for the present block and those within."""
        ...

    def wrap(self, ssa: SSAValue) -> Tile:
        """A tile of the IR."""
        ...


def transpose(trace: Builds, tile: Tile, axes: Sequence[int]) -> Tile:
    """The tile with its dimensions in another order, the reverse one where none is given."""
    rank = len(tile.shape)
    order = [_dimension(axis, rank, "an axis") for axis in axes or range(rank)[::-1]]
    if sorted(order) != list(range(rank)):
        fail(
            f"{tuple(axes)} is no order of the dimensions of {tile!r}",
            f"write each of the numbers 0 to {rank - 1} once",
        )
    return trace.wrap(trace.insert(frag.TransposeOp(trace.use(tile), order)).result)


def reshape(trace: Builds, tile: Tile, shape: Sequence[object]) -> Tile:
    """The same elements in another shape; one size may be -1, for what is left."""
    given = items(shape[0]) if len(shape) == 1 and items(shape[0]) is not None else list(shape)
    sizes = [require_number(size, "a size") for size in given or ()]
    count = prod(tile.shape)
    if sizes.count(-1) == 1:
        known = prod(size for size in sizes if size != -1)
        if known > 0 and count % known == 0:
            sizes[sizes.index(-1)] = count // known
    if not sizes or min(sizes) < 1 or prod(sizes) != count:
        text = by(tuple(given or ()))
        fail(f"{tile!r} has {count} elements and cannot be {text or 'without dimensions'}")
    if len(sizes) > frag.MOST_DIMENSIONS:
        fail(f"a tile has one to four dimensions, not {len(sizes)}")
    if tuple(sizes) == tile.shape:
        return tile
    source = trace.use(tile)
    before = source.owner
    if isinstance(before, frag.ReshapeOp) and frag.tile_of(before.source).shape == tuple(sizes):
        return trace.wrap(before.source)  # of t[:, None], whose new dimension is repeated
    op = trace.insert(frag.ReshapeOp(source, frag.TileType(sizes, tile.element)))
    trace.renamings.append(op)
    return trace.wrap(op.result)


def split(trace: Builds, tile: Tile) -> tuple[Tile, Tile]:
    """What stands at 0 and at 1 along the last dimension."""
    if len(tile.shape) < 2 or tile.shape[-1] != 2:
        fail(f"{tile!r} is not split", "its last size must be 2: tile.reshape(..., 2).split()")
    op = trace.insert(frag.SplitOp(trace.use(tile)))
    return trace.wrap(op.first), trace.wrap(op.second)


def item(trace: Builds, tile: Tile, key: object) -> Tile:
    """A part: slices with numbers that Python knows, numbers, `...`, and None for a new dimension.

    A number drops its dimension, as in numpy.
    """
    several = None if isinstance(key, list) else items(key)
    keys = _full_key(tile, [key] if several is None else several)
    cutouts: list[range] = []
    shape: list[int] = []
    sizes = iter(tile.shape)
    for part in keys:
        if part is None:
            shape.append(1)
            continue
        size = next(sizes)
        if isinstance(part, slice):
            chosen = _range(tile, cast("slice[Any, Any, Any]", part), size)
            shape.append(len(chosen))
        else:
            place = _dimension(part, size, "an index", f"of {size} places")
            chosen = range(place, place + 1)
        cutouts.append(chosen)
    counts = [len(chosen) for chosen in cutouts]
    if not shape:
        fail(f"one element of {tile!r} is no tile", "keep a dimension, as in tile[0:1, 0:1]")
    part = tile
    if tuple(counts) != tile.shape or any(chosen.step > 1 for chosen in cutouts):
        type_ = frag.TileType(counts, tile.element)
        starts, steps = [c.start for c in cutouts], [c.step for c in cutouts]
        op = trace.insert(frag.SliceTileOp(trace.use(tile), starts, type_, steps))
        part = trace.wrap(op.result)
    return reshape(trace, part, shape)


def _full_key(tile: Tile, keys: list[object]) -> list[object]:
    """A key for every dimension, and None for new ones."""
    given = sum(1 for part in keys if part is not None and part is not Ellipsis)
    missing = len(tile.shape) - given
    dots = [number for number, part in enumerate(keys) if part is Ellipsis]
    if missing < 0 or len(dots) > 1:
        fail(f"{tile!r} has {len(tile.shape)} dimensions, and {given} are indexed")
    at = dots[0] if dots else len(keys)
    return [*keys[:at], *[slice(None)] * missing, *keys[at + 1 :]]


def _range(tile: Tile, part: slice[Any, Any, Any], size: int) -> range:
    """The places of a slice, of which there must be some, in order."""
    for number in (part.start, part.stop, part.step):
        if isinstance(number, Scalar):
            fail(f"{number!r} is known when the kernel runs", "slices of tiles have fixed places")
        if number is not None:
            require_number(number, "a place in a slice")
    if part.step is not None and part.step < 1:
        fail(f"the step of a slice of a tile is {part.step}, it must be positive")
    chosen = range(*part.indices(size))
    if not chosen:
        fail(f"{part.start}:{part.stop} selects nothing of {size} places of {tile!r}")
    return chosen


def _dimension(given: object, count: int, name: str, of: str = "") -> int:
    """A number that may count from the end."""
    if isinstance(given, Scalar):
        fail(f"{given!r} is known when the kernel runs", "parts of tiles have fixed places")
    number = require_number(given, name)
    if not -count <= number < count:
        fail(f"{name} is {number}, there is no such one {of or f'of {count} dimensions'}")
    return number % count


# -- reduced ---------------------------------------------------------------------------------------
# Tiles without a dimension: what `tile.sum(1)` is.


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
    dim = require_dimension(axis, len(tile.shape), repr(tile))
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


# -- scans -----------------------------------------------------------------------------------------
# Cumulative sums and the like: methods of tiles that become `frag.scan`.


def scan(trace: Builds, tile: Tile, kind: str, axis: int, exclusive: bool, reverse: bool) -> Tile:
    """What all up to each element give; sums and products of 16 bits in f32."""
    dim = require_dimension(axis, len(tile.shape), repr(tile))
    narrow = kind in ("add", "mul") and tile.element in (f16, bf16)
    source = tile.cast(f32) if narrow else tile
    wrong = problem(kind, source.element, COMBINATIONS)
    if wrong is not None:
        fail(f"{tile!r}: {wrong}")
    op = frag.ScanOp(kind, dim, trace.use(source), exclusive=exclusive, reverse=reverse)
    found = trace.wrap(trace.insert(op).result)
    return found.cast(tile.element) if narrow else found
