"""The meaning of tensors in tiles, and of such as a region gives."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import TensorType

from fragir.dialects.tensors.generating import GenerateOp
from fragir.dialects.tensors.packing import Packing, PacksInTiles, UnpacksTiles
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.formats import Array
from fragir.reference.run import Run


def generate(run: Run, op: GenerateOp) -> None:
    assert isinstance(op.result.type, TensorType)
    shape = run.shape(op.result.type, op.sizes)
    places = [Bounded(at, np.zeros(at.shape)) for at in np.ogrid[tuple(map(slice, shape))]]
    (found,) = run.region(op.body.block, places, shape)
    run[op.result] = Bounded(found.value.copy(), found.bound.copy())


def pack(run: Run, op: PacksInTiles) -> None:
    """Padded to whole tiles, split, and turned."""
    x = run[op.source]
    more = [(0, -size % (op.tile_of(dim) or 1)) for dim, size in enumerate(x.value.shape)]
    value, bound = x.value, x.bound
    if any(behind for _, behind in more):
        if op.padding_value is None:
            raise FragirError(f"{op.name}: the last tiles are not full, and nothing pads them")
        padding = run[op.padding_value]
        value = np.pad(value, more, constant_values=padding.value.item())
        bound = np.pad(bound, more, constant_values=padding.bound.item())
    _give(run, op, Bounded(_tiled(op, value), _tiled(op, bound)))


def unpack(run: Run, op: UnpacksTiles) -> None:
    x, shape = run[op.source], run[op.dest].value.shape
    _give(run, op, Bounded(_whole(op, x.value, shape), _whole(op, x.bound, shape)))


def _give(run: Run, op: Packing, found: Bounded) -> None:
    """To the result, or the memory that is written."""
    if op.result:
        run[op.result[0]] = found
        return
    home = run.memory(op.into)
    if home.value.shape != found.value.shape:
        shapes = ["x".join(map(str, x.value.shape)) for x in (found, home)]
        raise FragirError(f"{op.name} gives {shapes[0]}, its memory is {shapes[1]}")
    home.write(found)


def _tiled(op: Packing, x: Array) -> Array:
    counts = [size // (op.tile_of(dim) or 1) for dim, size in enumerate(x.shape)]
    split = [n for dim, count in enumerate(counts) for n in (count, op.tile_of(dim) or 1)]
    order = [*(2 * dim for dim in op.order), *(2 * dim + 1 for dim in op.positions)]
    rest = [2 * dim + 1 for dim in range(x.ndim) if op.tile_of(dim) is None]
    return x.reshape(split).transpose([*order, *rest]).reshape([*(split[at] for at in order)])


def _whole(op: Packing, x: Array, shape: tuple[int, ...]) -> Array:
    """Places of all elements in the tiles."""
    places = np.ogrid[tuple(map(slice, shape))]
    outer = [places[dim] // (op.tile_of(dim) or 1) for dim in op.order]
    inner = [places[dim] % (op.tile_of(dim) or 1) for dim in op.positions]
    return x[tuple(np.broadcast_arrays(*outer, *inner))]
