"""The layout of a tile that nothing says anything about."""

from __future__ import annotations

from math import prod

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.distribution import handed_out
from fragir.layout.modes import WARP


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    Lanes lie along the last dimension as far as they divide it, then along the one before it, and
    warps behind them. Of a tile with fewer elements than threads several threads hold the same
    ones. FragirError where the threads do not divide a larger tile.
    """
    vector = (*(1,) * (len(tile.shape) - 1), _vector(tile, threads))
    lanes, warps = min(threads, WARP), max(1, threads // WARP)
    layout = handed_out(tile.shape, {"element": vector, "lane": lanes, "warp": warps})
    if prod(layout.sizes.values()) > prod(tile.shape) >= threads:
        raise FragirError(
            f"{threads} threads do not divide {tile} evenly and no instruction gives it a layout",
            hint='write its layout: #frag.layout<"warp [...] lane [...] element [...]">',
        )
    return layout


def _vector(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane: 16 bytes, or what the threads divide; predicates apart."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    while vector > 1 and (tile.shape[-1] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    return vector
