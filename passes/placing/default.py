"""The layout of a tile that nothing says anything about."""

from __future__ import annotations

from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    FragirError where the threads do not divide the tile.
    """
    rows, cols = tile.rows.data, tile.cols.data
    bits = ptx.bits(tile.element_type)
    vector = max(1, 128 // bits)
    while vector > 1 and (cols % vector or rows * cols % (vector * threads)):
        vector //= 2
    across = min(cols // vector, threads)
    while across > 1 and (cols % (vector * across) or threads % across):
        across -= 1
    down = threads // across
    if len(tile.shape) != 2 or rows % down or cols % (vector * across):
        raise FragirError(
            f"{threads} threads do not divide {tile} evenly and no instruction gives it a layout",
            hint='write its layout: #frag.layout<"warp [...] lane [...] element [...]">',
        )
    modes = [(across, (0, vector)), (down, (1, 0))]
    lane, warp = _split(modes)
    element = [
        (vector, (0, 1)),
        (cols // (vector * across), (0, vector * across)),
        (rows // down, (down, 0)),
    ]
    axes = (("warp", warp), ("lane", lane), ("element", element))
    return Layout(tuple(Axis(n, tuple(Mode(s, st) for s, st in m if s > 1)) for n, m in axes))


def _split(modes: list[tuple[int, tuple[int, int]]]):
    """Cuts thread modes at 32: what a lane and what a warp number contributes."""
    lane: list[tuple[int, tuple[int, int]]] = []
    warp: list[tuple[int, tuple[int, int]]] = []
    room = 32
    for size, stride in modes:
        inner = min(size, room)
        if room % inner or size % inner:
            raise FragirError("the threads of a warp do not divide the tile's rows")
        lane.append((inner, stride))
        room //= inner
        warp.append((size // inner, (stride[0] * inner, stride[1] * inner)))
    return lane, warp
