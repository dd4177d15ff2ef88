"""The layout of a tile that nothing says anything about."""

from __future__ import annotations

from math import gcd, prod

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import WARP, default_dims

#: The dimensions of a tile of four.
FOUR = ("outer", "inner", "row", "col")


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    Lanes lie along the last dimension as far as they divide it, then along the one before it, and
    warps behind them. Of a tile with fewer elements than threads several threads hold the same
    ones. FragirError where the threads do not divide a larger tile.
    """
    rest = _Rest(tile)
    element = [rest.take(len(tile.shape) - 1, _vector(tile, threads))]
    lane = rest.spread(min(threads, WARP))
    warp = rest.spread(max(1, threads // WARP))
    if rest.spare > 1 and prod(tile.shape) >= threads:
        raise FragirError(
            f"{threads} threads do not divide {tile} evenly and no instruction gives it a layout",
            hint='write its layout: #frag.layout<"warp [...] lane [...] element [...]">',
        )
    element += [rest.take(dim, rest.left[dim]) for dim in reversed(range(len(tile.shape)))]
    axes = (("warp", warp), ("lane", lane), ("element", element))
    kept = tuple(Axis(name, tuple(m for m in modes if m.size > 1)) for name, modes in axes)
    rank = len(tile.shape)
    return Layout(kept, FOUR if rank == 4 else default_dims(rank))


def _vector(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane: 16 bytes, or what the threads divide; predicates apart."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    while vector > 1 and (tile.shape[-1] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    return vector


class _Rest:
    """What of a tile is not distributed yet: how much of every dimension, in which steps."""

    def __init__(self, tile: frag.TileType):
        self.left = list(tile.shape)
        self.steps = [1] * len(tile.shape)
        self.spare = 1  # threads that hold the same elements

    def take(self, dim: int, size: int) -> Mode:
        """The next so many steps along a dimension."""
        stride = tuple(step * (d == dim) for d, step in enumerate(self.steps))
        self.left[dim] //= size
        self.steps[dim] *= size
        return Mode(size, stride)

    def spread(self, count: int) -> list[Mode]:
        """Gives every one of so many lanes or warps its part, along the last dimension first."""
        modes: list[Mode] = []
        for dim in reversed(range(len(self.left))):
            part = gcd(count, self.left[dim])
            modes.append(self.take(dim, part))
            count //= part
        self.spare *= count
        return [*modes, Mode(count, (0,) * len(self.left))]
