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

Layouts of blocks of neighbours: so many elements a lane, so many lanes, so many warps.

Of 64 by 64 elements a lane holds eight of a row at once, eight lanes complete the row and four are
below each other, then four warps; what is left of the tile are further elements of the same lanes:

>>> print(blocked((64, 64), {"element": (1, 8), "lane": (4, 8), "warp": (4, 1)}))
warp [4:(4,0)] lane [8:(0,8) 4:(1,0)] element [8:(0,1) 4:(16,0)]

This is Triton's `#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA =
[4, 1], order = [1, 0]}>`, and the blocked product of three compact layouts, repeated over the tile.
One number for all dimensions goes along each as far as it divides what is left there; those that
find nothing left hold copies:

>>> print(blocked((64, 24), {"element": (1, 8), "lane": 32}))
lane [32:(1,0)] element [8:(0,1) 3:(0,8) 2:(32,0)]
>>> print(blocked((4, 8), {"lane": 64}))
lane [8:(0,1) 4:(1,0) 2:(0,0)] element []

A tile over threads that do not divide it: parts overlap, and what two of them hold is the same.

>>> print(covering((1, 40), 1, 32, 1))
warp [] lane [32:(0,1)] element [2:(0,8)]
>>> print(covering((33, 33), 1, 32, 4))
warp [4:(8,0)] lane [32:(0,1)] element [2:(0,1) 9:(1,0)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd, prod
from operator import gt
from typing import cast

from fragir.errors import kind_of, require_whole_number
from fragir.layout.arguments import require_names, require_point, require_shape
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


def blocked(
    shape: Point, shares: Mapping[str, int | Point], order: Iterable[int] | None = None
) -> Layout:
    """The layout of a tile of this shape handed out to axes, the first share fastest.

    A share is how many an axis has along each dimension, or one number that is divided among the
    dimensions. `order` says which dimension goes first, by number; without it the last one. The
    axes of the layout are the shares from the last to the first, then `element`, which gets what
    is left. Where the shares exceed the tile several hold the same element.

    Raises LayoutError where the shape is no multiple of what is handed out along a dimension.
    """
    shape = require_shape(shape, "The shape")
    if not isinstance(cast("object", shares), Mapping):
        raise LayoutError(f"blocked takes shares by axis, not {kind_of(shares)}.")
    rank = len(shape)
    order = range(rank - 1, -1, -1) if order is None else require_point(order, rank, "The order")
    if sorted(order) != list(range(rank)):
        raise LayoutError(f"{tuple(order)} is no order of {rank} dimensions.")
    axes = require_names(tuple(shares), "the axes") if shares else ()
    checked = {axis: _share(axis, shares[axis], rank) for axis in axes}
    return handed_out(shape, checked, order)


def _share(axis: str, share: object, rank: int) -> int | Point:
    what = f"The share of {axis}"
    if isinstance(share, tuple | list):
        return require_point(cast("object", share), rank, what, 1)
    return require_whole_number(share, what, 1)


@lru_cache(maxsize=1024)
def covering(shape: Point, vector: int, lanes: int, warps: int) -> Layout:
    """The layout of a tile in which a lane has few elements, whatever the tile's extents.

    `vector` elements along the last dimension, which it divides, stay together; lanes (a power of
    two) lie along the last dimension as far as that goes, then along the one before it; warps where
    most is left. What does not come out even is held several times.
    """
    rank = len(shape)
    units = (*shape[:-1], shape[-1] // vector)
    steps = (*(1,) * (rank - 1), vector)
    axes: dict[str, list[Mode]] = {"warp": [], "lane": [], "element": []}

    def digit(axis: str, size: int, dim: int, stride: int) -> None:
        if size > 1:
            step = tuple(stride * steps[dim] * (d == dim) for d in range(rank))
            axes[axis].append(Mode(size, step))

    if vector > 1:
        axes["element"].append(Mode(vector, (*(0,) * (rank - 1), 1)))
    block: list[int] = []
    left = lanes
    for dim in reversed(range(rank)):
        share = min(left, 1 << units[dim].bit_length() - 1)
        digit("lane", share, dim, 1)
        block.insert(0, share)
        left //= share
    if left > 1:
        axes["lane"].append(Mode(left, (0,) * rank))
    shares = _shares(units, block, warps)
    for dim in reversed(range(rank)):
        part = units[dim] // shares[dim]
        within = units[dim] - part * (shares[dim] - 1)
        for size, stride in _repeats(block[dim], within):
            digit("element", size, dim, stride)
        digit("warp", shares[dim], dim, part)
    if (copies := warps // prod(shares)) > 1:
        axes["warp"].append(Mode(copies, (0,) * rank))
    return Layout(tuple(Axis(name, tuple(modes)) for name, modes in axes.items()), dims_of(rank))


def _shares(units: Point, block: Sequence[int], warps: int) -> list[int]:
    """Of how many warps each dimension has parts, none of which is smaller than a block."""
    shares = [1] * len(units)
    for prime in _primes(warps):

        def parts(dim: int) -> int:
            return units[dim] // (block[dim] * shares[dim])

        dim = max(range(len(units)), key=parts)
        if parts(dim) >= prime:
            shares[dim] *= prime
    return shares


def _primes(number: int) -> list[int]:
    """The prime factors, the largest first."""
    found: list[int] = []
    factor = 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found[::-1]


def _repeats(block: int, size: int) -> list[tuple[int, int]]:
    """Digits, (size, stride), that repeat a block until it covers a dimension, and no more."""
    if size <= block:
        return []
    most = -(-size // block)
    count = next(c for c in range(most, size - block + 2) if (size - block) % (c - 1) == 0)
    alone = [(count, (size - block) // (count - 1))]
    if count == most:
        return alone
    half = size // 2
    twice = [*_repeats(block, size - half), (2, half)]
    return min(alone, twice, key=lambda digits: prod(n for n, _ in digits))
