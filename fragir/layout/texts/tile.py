"""A tensor spread over threads piece by piece, and then cut or repeated to the tensor's shape.

Triton's encodings say a tile: so many elements a thread, so many threads, so many warps along each
dimension. A tensor that is larger repeats the tile in further registers; of one that is smaller
several threads or registers hold the same element.
"""

from __future__ import annotations

from collections.abc import Iterable

from fragir.layout.digits import unit
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point
from fragir.layout.texts.bases import dims_of

AXES = ("lane", "element", "warp", "block")


class ThreadTile:
    """Digits of the axes, each next one along a dimension moves by what is covered there."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.extent = [1] * rank
        self.modes: dict[str, list[Mode]] = {name: [] for name in AXES}

    def spread(self, axis: str, size: int, dim: int) -> None:
        """A digit of the axis along a dimension."""
        self.modes[axis].append(Mode(size, unit(dim, self.rank, self.extent[dim])))
        self.extent[dim] *= size

    def copies(self, axis: str, size: int) -> None:
        """A digit of the axis that moves nothing."""
        self.modes[axis].append(Mode(size, (0,) * self.rank))

    def spread_all(self, axis: str, sizes: Point, order: Iterable[int]) -> None:
        """A digit along every dimension, in this order."""
        for dim in order:
            self.spread(axis, sizes[dim], dim)

    def fit(self, shape: Point, order: Iterable[int]) -> None:
        """Cut to the shape, then repeated in registers, dimensions in this order.

        Raises LayoutError where the shape is no multiple of the tile or of a part of it.
        """
        for name, modes in self.modes.items():
            self.modes[name] = [part for mode in modes for part in _cut(mode, shape, name)]
        for dim in order:
            if self.extent[dim] < shape[dim]:
                if shape[dim] % self.extent[dim]:
                    raise LayoutError(
                        f"The shape's {shape[dim]} along dimension {dim} is no multiple of the "
                        f"encoding's tile of {self.extent[dim]}."
                    )
                self.spread("element", shape[dim] // self.extent[dim], dim)

    def layout(self) -> Layout:
        """The tile as a layout; axes of warps and blocks only where there are several."""
        axes = (
            Axis(name, tuple(modes))
            for name, modes in self.modes.items()
            if name in ("lane", "element") or any(mode.size > 1 for mode in modes)
        )
        return Layout(tuple(axes), dims_of(self.rank)).simplified()


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
