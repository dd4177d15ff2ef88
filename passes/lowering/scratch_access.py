"""A tile's elements in the memory that conversions pass data through, with any strides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fragir.dialects import frag, ptx
from fragir.layout import Axis, Layout, Mode
from fragir.passes.lowering.access import TileAccess
from fragir.passes.lowering.memory import shared_bytes, shared_memory
from fragir.passes.lowering.state import LoweringState


class ScratchAccess(TileAccess):
    """A tile at the beginning of the scratch memory, rows in order, or where `strides` and `first`,
    in elements, say."""

    def __init__(
        self,
        state: LoweringState,
        tile: frag.TileType,
        strides: Sequence[int] | None = None,
        first: int = 0,
    ):
        layout = in_memory(tile.shape, strides, first)
        super().__init__(
            state.ar,
            state.hardware,
            tile,
            shared_memory(state.scratch.pointer, layout, tile.shape, tile.element_type),
            [0] * len(tile.shape),
            transposed=False,
            masked=False,
            target=state.target,
        )

    @staticmethod
    def bytes_of(tile: frag.TileType) -> int:
        """Bytes of a tile with its rows in order."""
        return shared_bytes(in_memory(tile.shape), ptx.bits(tile.element_type))


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one to the next along each dimension, with rows in order."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def in_memory(shape: Sequence[int], strides: Sequence[int] | None = None, first: int = 0) -> Layout:
    """Where in memory the elements of a tile lie, with an axis for each dimension."""
    steps = row_strides(shape) if strides is None else strides
    axes = (
        Axis(f"d{dim}", (Mode(size, (step,)),))
        for dim, (size, step) in enumerate(zip(shape, steps, strict=True))
    )
    return Layout(tuple(axes), ("index",), (first,))
