"""The meaning of gather and scatter: elements at places that tiles of indices say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.indexed import Indexed
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, bounded
from fragir.reference.formats import Array
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run


class Places(NamedTuple):
    """Where each element of a tile lies in a memory, as numbers of its elements in row-major order;
    and which are accessed at all."""

    flat: Array
    kept: Array


def places(run: Run, op: Indexed) -> Places:
    """The places of an operation's tile.

    FragirError where an index or the mask depends on rounding, or an element lies outside of the
    memory without `masked`.
    """
    memory, shape = run.memory(op.memory), frag.tile_of(op.tiles()[0]).shape
    kept = np.ones(shape, bool)
    if op.mask is not None:
        mask = run[op.mask]
        if mask.bound.any():
            raise FragirError(f"{op.name}: the mask depends on rounding")
        kept = kept & _spread(mask.value, shape)
    tiles = op.index_tiles()
    indices: list[Array] = []
    for dim, index in enumerate(op.all_indices()):
        if dim in tiles:
            given = run[tiles[dim]]
            if (_spread(given.bound, shape) > 0)[kept].any():
                raise FragirError(f"{op.name}: an index depends on rounding")
            indices.append(np.broadcast_to(_spread(given.value, shape), shape))
            continue
        start = np.int64(run.number(index))
        along = dim - memory.value.ndim + len(shape)
        moves = along >= len(shape) - op.behind
        indices.append(start + (np.indices(shape)[along] if moves else np.zeros(shape, np.int64)))
    sizes = memory.value.shape
    inside = np.all([(i >= 0) & (i < n) for i, n in zip(indices, sizes, strict=True)], axis=0)
    if op.masked is None and (kept & ~inside).any():
        first = tuple(np.argwhere(kept & ~inside)[0])
        raise FragirError(
            f"{op.name}: element {_text(first)} of the tile lies at "
            f"{_text(tuple(i[first] for i in indices))}, outside of the memory of "
            f"{'x'.join(map(str, sizes))}",
            hint="write `masked`",
        )
    kept = kept & inside
    clipped = [np.where(kept, i, 0) for i in indices]
    flat = np.ravel_multi_index(clipped, sizes) if kept.any() else np.zeros(shape, np.int64)
    return Places(np.asarray(flat), kept)


def _spread(values: Array, shape: tuple[int, ...]) -> Array:
    """One value for each row along the rows of a tile; what has its shape as it is."""
    values = values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
    return np.broadcast_to(values, shape)


def _text(point: Iterable[Any]) -> str:
    return "[" + ", ".join(str(int(x)) for x in point) + "]"


def gather(run: Run, op: frag.GatherOp) -> None:
    memory, (flat, kept) = run.memory(op.memory), places(run, op)
    shape = op.tile.type.shape
    value, bound = np.zeros(shape, memory.value.dtype), np.zeros(shape)
    if op.other is not None:
        value[...], bound[...] = run[op.other].value, run[op.other].bound
    value[kept] = memory.value.reshape(-1)[flat[kept]]
    bound[kept] = memory.bound.reshape(-1)[flat[kept]]
    run[op.tile] = Bounded(value, bound)


def scatter(run: Run, op: frag.ScatterOp) -> None:
    flat, kept = places(run, op)
    x = run[op.tile]
    write_one(run.memory(op.memory), flat[kept], Bounded(x.value[kept], x.bound[kept]))


def write_one(memory: BoundedMemory, at: Array, x: Bounded, old: bool = False) -> None:
    """Writes elements to places, of several at one place any; with `old` perhaps none of them."""
    value, bound = memory.value.reshape(-1), memory.bound.reshape(-1)
    low, high = np.full(value.shape, np.inf), np.full(value.shape, -np.inf)
    if old:
        low[at], high[at] = value[at] - bound[at], value[at] + bound[at]
    np.minimum.at(low, at, x.value - x.bound)
    np.maximum.at(high, at, x.value + x.bound)
    certain = np.ones(value.shape, bool)
    np.logical_and.at(certain, at, x.bound == 0)
    if old:
        certain[at] &= bound[at] == 0
    alike = certain & ((low == high) | (np.isnan(low) & np.isnan(high) & _all_nan(at, x, value)))
    value[at] = x.value
    found = bounded(value[at], np.maximum(high[at] - value[at], value[at] - low[at]))
    bound[at] = np.where(alike[at], 0.0, found.bound)


def _all_nan(at: Array, x: Bounded, value: Array) -> Array:
    """Where every element that is written is NaN."""
    found = np.ones(value.shape, bool)
    np.logical_and.at(found, at, np.isnan(x.value))
    return found
