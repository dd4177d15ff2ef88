"""Reductions by a function: what `k.reduce(tiles, axis, function)` is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from fragir.builder.callbacks import call
from fragir.builder.places import fail, items, place, require_dimension
from fragir.builder.trace import Trace
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag


def reduce_by(
    trace: Trace, tiles: Sequence[Tile], axis: int, function: Callable[..., object]
) -> tuple[Tile | Scalar, ...]:
    """What is left of several tiles of one shape."""
    given = items(tiles)
    if not given or not all(isinstance(tile, Tile) for tile in given):
        fail(f"{tiles!r} are no tiles", "give a list: k.reduce([x, y], axis, function)")
    first = tiles[0]
    if any(tile.shape != first.shape for tile in tiles):
        fail(f"{', '.join(map(repr, tiles))} differ in shape")
    dim = require_dimension(axis, len(first.shape), repr(first))
    sources = [trace.use(tile) for tile in tiles]
    location = place()
    region = trace.elementwise(
        [tile.element for tile in tiles] * 2,
        lambda arguments: _call(trace, function, arguments, len(tiles)),
        location,
    )
    op = trace.insert(frag.ReduceByOp(dim, sources, region), location=location)
    return tuple(
        trace.wrap(found) if isinstance(found.type, frag.TileType) else Scalar(trace, found)
        for found in op.reduced
    )


def _call(
    trace: Trace, function: Callable[..., object], arguments: Sequence[SSAValue], count: int
) -> list[SSAValue]:
    """What the function returns for two elements of every tile."""
    result = call(trace, function, arguments)
    given = [result] if isinstance(result, Scalar) else items(result)
    if given is None or len(given) != count:
        fail(f"the function returns {result!r}, it must return a scalar for each of {count} tiles")
    values: list[SSAValue] = []
    for value in given:
        if not isinstance(value, Scalar):
            fail(f"the function returns {value!r}, it must return scalars of the kernel")
        values.append(trace.use(value))
    return values
