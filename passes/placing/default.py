"""The layout of a tile that nothing says anything about."""

from __future__ import annotations

from math import prod

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.layout import Layout
from fragir.layout.distribution import handed_out
from fragir.layout.modes import WARP


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    Lanes lie along the last dimension as far as they divide it, then along the one before it, and
    warps behind them. Of a tile with fewer elements than threads several threads hold the same
    ones, and of one that the threads do not divide, unless that takes too many registers: then
    parts overlap (`fragir.layout.covering`). Of elements smaller than a byte a lane has whole
    bytes.
    """
    vector = _vector(tile, threads)
    lanes, warps = min(threads, WARP), max(1, threads // WARP)
    units = (*(1,) * (len(tile.shape) - 1), vector)
    layout = handed_out(tile.shape, {"element": units, "lane": lanes, "warp": warps})
    copies = prod(layout.sizes.values()) > prod(tile.shape)
    if not copies or prod(tile.shape) < threads * vector:
        return layout
    from fragir.layout.covering import covering  # few programs need it

    found = covering(tile.shape, _widest(tile, threads), lanes, warps)
    return min(layout, found, key=lambda one: one.size("element"))


def _vector(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane: 16 bytes, or what the threads divide; predicates apart."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    least = _least(tile)
    while vector > least and (tile.shape[-1] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    return vector


def _widest(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane, as many as leave every lane some."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    least = _least(tile)
    while vector > least and (tile.shape[-1] % vector or prod(tile.shape) < vector * threads):
        vector //= 2
    return vector


def _least(tile: frag.TileType) -> int:
    """Elements of a whole byte, if rows have whole bytes."""
    if is_predicate(tile.element_type):
        return 1
    per = max(1, 8 // ptx.bits(tile.element_type))
    return 1 if tile.shape[-1] % per else per
