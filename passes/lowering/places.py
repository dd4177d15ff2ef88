"""Where the elements of a tile lie in memory: which dimension is which, and each one's place."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.dialects import frag
from fragir.layout import Layout
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace
from fragir.passes.lowering.shared import LaneOffset

NOWHERE = LaneOffset(0, 0)


class TilePlaces:
    """Where one tile's elements lie in one memory."""

    def __init__(
        self,
        ar: Arithmetic,
        hardware: Hardware,
        tile: frag.TileType,
        memory: LaneMemory,
        indices: Sequence[Value],
        *,
        transposed: bool,
        masked: bool,
        target: str,
        broadcast: bool = False,
        chunk: int | None = None,
    ):
        self.ar, self.hardware, self.memory, self.masked = ar, hardware, memory, masked
        self.tile, self.target = tile, target
        self.layout = tile.resolve()
        self.indices = tuple(indices)
        rank, dims = len(memory.shape), len(tile.shape)
        # dimension of the memory -> dimension of the tile, None for a leading one
        mapped: list[int | None] = [None] * (rank - dims) + list(range(dims))
        if broadcast:
            # a memory of one dimension runs along the columns; a size of 1 does not run at all
            mapped = [
                None if size == 1 else dim
                for size, dim in zip(memory.shape, range(dims - rank, dims), strict=True)
            ]
        if transposed:
            mapped[-1], mapped[-2] = mapped[-2], mapped[-1]
        self.mapped = tuple(mapped)
        placement = tile.placement
        assert placement is not None
        self.chunk = placement.chunk if chunk is None else chunk
        self.count = self.layout.size("element")
        zeros = {axis.name: 0 for axis in self.layout.axes}
        self.constants = [
            self._to_memory(self.layout(**{**zeros, "element": e}) or ()) for e in range(self.count)
        ]

    def _to_memory(self, point: Sequence[int]) -> tuple[int, ...]:
        return tuple(0 if d is None else point[d] for d in self.mapped)

    def place(self, layout: Layout | None = None) -> MemoryPlace:
        """Where the lanes' elements begin; for ldmatrix with the layout of its addresses."""
        lanes = tuple(
            NOWHERE if d is None else self.hardware.coordinate(layout or self.layout, d)
            for d in self.mapped
        )
        return MemoryPlace(lanes, self.indices)
