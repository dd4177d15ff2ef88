"""The layout of a tile that nothing says anything about."""

from __future__ import annotations

from math import gcd, prod

from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import default_dims

LANES = 32
#: The dimensions of a tile of four.
FOUR = ("outer", "inner", "row", "col")


def default_layout(tile: frag.TileType, threads: int) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane.

    Lanes lie along the last dimension as far as they divide it, then along the one before it, and
    warps behind them. Of a tile with fewer elements than threads several threads hold the same
    ones. FragirError where the threads do not divide a larger tile.
    """
    rest = _Rest(tile)
    rest.keep(_vector(tile, threads))
    lane = rest.spread(min(threads, LANES))
    warp = rest.spread(max(1, threads // LANES))
    if rest.spare > 1 and prod(tile.shape) >= threads:
        raise FragirError(
            f"{threads} threads do not divide {tile} evenly and no instruction gives it a layout",
            hint='write its layout: #frag.layout<"warp [...] lane [...] element [...]">',
        )
    rest.keep(None)
    axes = (("warp", warp), ("lane", lane), ("element", rest.kept))
    kept = tuple(Axis(name, tuple(m for m in modes if m.size > 1)) for name, modes in axes)
    rank = len(tile.shape)
    return Layout(kept, FOUR if rank == 4 else default_dims(rank))


def _vector(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane: 16 bytes, or what the threads divide; predicates apart."""
    vector = 1 if tile.element == "pred" else max(1, 128 // ptx.bits(tile.element_type))
    while vector > 1 and (tile.shape[-1] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    return vector


class _Rest:
    """What of a tile is not distributed yet: how much of every dimension, in which steps."""

    def __init__(self, tile: frag.TileType):
        self.left = list(tile.shape)
        self.steps = [1] * len(tile.shape)
        self.spare = 1  # threads that hold the same elements
        self.kept: list[Mode] = []  # by one lane

    def _mode(self, dim: int, size: int) -> Mode:
        stride = tuple(step * (d == dim) for d, step in enumerate(self.steps))
        self.left[dim] //= size
        self.steps[dim] *= size
        return Mode(size, stride)

    def keep(self, count: int | None) -> None:
        """So many neighbours in the last dimension are one lane's; None: all that is left."""
        if count is not None:
            self.kept.append(self._mode(-1 % len(self.left), count))
            return
        self.kept += [self._mode(d, self.left[d]) for d in reversed(range(len(self.left)))]

    def spread(self, count: int) -> list[Mode]:
        """Gives every one of so many lanes or warps its part, along the last dimension first."""
        modes: list[Mode] = []
        for dim in reversed(range(len(self.left))):
            part = gcd(count, self.left[dim])
            modes.append(self._mode(dim, part))
            count //= part
        self.spare *= count
        return [*modes, Mode(count, (0,) * len(self.left))]
