"""A tile handed out to hardware digit by digit: elements of a lane, lanes, warps.

The next digit of an axis moves by what is covered already along its dimension. An instruction's
fragment grows so to the tile of a block, a copy is spread over threads, and Triton's encodings say
layouts so; `fragir.layout.blocked` explains it.

>>> tile = Distribution((1, 1), {"lane": (), "element": ()})
>>> tile.spread("element", 2, dim=1)
>>> tile.spread("lane", 4, dim=1)
>>> tile.spread("lane", 8, dim=0)
>>> tile.fit((16, 8), order=(1, 0))
>>> print(tile.layout(("row", "col")))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from operator import gt

from fragir.layout.layout import Layout
from fragir.layout.modes import DEFAULT_DIMS, Axis, LayoutError, Mode, Point

ELEMENT = "element"
"""The axis that gets what is left of a tile."""

FOUR = ("outer", "inner", "row", "col")
"""The dimensions of a tile of four."""


def dims_of(rank: int) -> tuple[str, ...]:
    """The names of a tile's dimensions. Raises LayoutError beyond four."""
    if not 1 <= rank <= 4:
        raise LayoutError(f"There are tiles of 1 to 4 dimensions, not of {rank}.")
    return DEFAULT_DIMS.get(rank, FOUR)


class Distribution:
    """Digits of axes, each next one along a dimension moving by what is covered there.

    It begins with one element of a tile, or with a fragment of so many (`extent`) that these modes
    hold. `modes` are per axis, fastest first; their keys are the axes in the order of the layout.
    """

    def __init__(self, extent: Point, modes: Mapping[str, Iterable[Mode]]) -> None:
        self.extent = list(extent)
        self.modes = {name: list(held) for name, held in modes.items()}

    def spread(self, axis: str, size: int, dim: int) -> None:
        """A digit of the axis along a dimension."""
        if size > 1:
            stride = [0] * len(self.extent)
            stride[dim] = self.extent[dim]
            self.extent[dim] *= size
            self.modes[axis].append(Mode(size, tuple(stride)))

    def copies(self, axis: str, size: int) -> None:
        """A digit of the axis that moves nothing."""
        if size > 1:
            self.modes[axis].append(Mode(size, (0,) * len(self.extent)))

    def spread_all(self, axis: str, sizes: Point, order: Iterable[int]) -> None:
        """A digit along every dimension, in this order."""
        for dim in order:
            self.spread(axis, sizes[dim], dim)

    def share(self, axis: str, count: int, shape: Point, order: Iterable[int]) -> None:
        """So many, along every dimension as far as they divide what is left of it; then copies."""
        for dim in order:
            part = gcd(count, max(1, shape[dim] // self.extent[dim]))
            self.spread(axis, part, dim)
            count //= part
        self.copies(axis, count)

    def fit(self, shape: Point, order: Iterable[int]) -> None:
        """Cut to the shape, then repeated in further elements, dimensions in this order.

        Raises LayoutError where the shape is no multiple of the tile or of a part of it.
        """
        if any(map(gt, self.extent, shape)):
            for name, modes in self.modes.items():
                self.modes[name] = [part for mode in modes for part in _cut(mode, shape, name)]
        for dim in order:
            times, rest = divmod(shape[dim], self.extent[dim])
            if times and rest:
                raise LayoutError(
                    f"The shape's {shape[dim]} along dimension {dim} is no multiple of the "
                    f"{self.extent[dim]} that are handed out there."
                )
            self.spread(ELEMENT, times, dim)

    def layout(self, dims: tuple[str, ...]) -> Layout:
        """The tile as a layout."""
        return Layout(tuple([Axis(name, tuple(modes)) for name, modes in self.modes.items()]), dims)


def handed_out(
    shape: Point,
    shares: Mapping[str, int | Point],
    order: Iterable[int] | None = None,
    piece: Point | None = None,
) -> Layout:
    """`fragir.layout.blocked` of what is known to be sound, and in pieces.

    With `piece` boxes of that shape are handed out whole, and the layout says where each begins.
    """
    rank = len(shape)
    order = range(rank - 1, -1, -1) if order is None else tuple(order)
    axes = [name for name in reversed(tuple(shares)) if name != ELEMENT]
    tile = Distribution(piece or (1,) * rank, {name: () for name in (*axes, ELEMENT)})
    for axis, share in shares.items():
        if isinstance(share, int):
            tile.share(axis, share, shape, order)
        else:
            tile.spread_all(axis, share, order)
    tile.fit(shape, order)
    return tile.layout(dims_of(rank))


def _cut(mode: Mode, shape: Point, axis: str) -> Iterable[Mode]:
    """The digit as far as it stays inside of the shape; what is beyond moves nothing."""
    nothing = (0,) * len(mode.stride)
    for dim, stride in enumerate(mode.stride):
        if stride and stride * mode.size > shape[dim]:
            if stride >= shape[dim]:
                return [Mode(mode.size, nothing)]
            inside = shape[dim] // stride
            if shape[dim] % stride or mode.size % inside:
                raise LayoutError(
                    f"The shape's {shape[dim]} along dimension {dim} cuts mode {mode} of axis "
                    f"{axis} where it does not divide."
                )
            return [Mode(inside, mode.stride), Mode(mode.size // inside, nothing)]
    return [mode]
