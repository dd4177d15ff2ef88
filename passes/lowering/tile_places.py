"""Where the elements of a tile lie in memory: which dimension is which, and each one's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import gcd

from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.layout import Layout
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.layout_arithmetic import NOWHERE, LaneOffset
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace, address, alignment


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
        other: SSAValue | None = None,
    ):
        self.other = other
        """What is loaded outside of the memory; None for zero."""
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
                None if size == 1 or dim < 0 else dim
                for size, dim in zip(memory.shape, range(dims - rank, dims), strict=True)
            ]
        if transposed:
            mapped[-1], mapped[-2] = mapped[-2], mapped[-1]
        self.mapped = tuple(mapped)
        self.chunk = tile.chunk if chunk is None else chunk
        self.count = self.layout.size("element")

    @cached_property
    def constants(self) -> list[tuple[int, ...]]:
        """How far each element lies from where the lanes' elements begin, see `places`."""
        return self._exclusive[1] if self.layout.exclusive else self._steps

    @cached_property
    def places(self) -> list[MemoryPlace]:
        """Where each element's lanes begin: one place, unless lanes flip bits that elements set."""
        return self._exclusive[0] if self.layout.exclusive else [self.place()] * self.count

    @cached_property
    def _steps(self) -> list[tuple[int, ...]]:
        everywhere = replace(self.layout, where=()) if self.layout.where else self.layout
        zeros = {axis.name: 0 for axis in self.layout.axes}
        return [
            self._to_memory(everywhere(**{**zeros, "element": e}) or ()) for e in range(self.count)
        ]

    @cached_property
    def _exclusive(self) -> tuple[list[MemoryPlace], list[tuple[int, ...]]]:
        known: dict[tuple[LaneOffset, ...], MemoryPlace] = {}
        places: list[MemoryPlace] = []
        constants: list[tuple[int, ...]] = []
        for element in range(self.count):
            found = [
                (NOWHERE, 0) if d is None else self.hardware.place(self.layout, d, element)
                for d in self.mapped
            ]
            lanes = tuple(lane for lane, _ in found)
            places.append(known.setdefault(lanes, MemoryPlace(lanes, self.indices)))
            constants.append(tuple(constant for _, constant in found))
        return places, constants

    def holds(self, element: int) -> Predicate:
        """Whether a lane has an element at all."""
        return self.hardware.holds(self.layout.where, element)

    def _to_memory(self, point: Sequence[int]) -> tuple[int, ...]:
        return tuple(0 if d is None else point[d] for d in self.mapped)

    def place(self, layout: Layout | None = None) -> MemoryPlace:
        """Where the lanes' elements begin; for ldmatrix with the layout of its addresses."""
        lanes = tuple(
            NOWHERE if d is None else self.hardware.coordinate(layout or self.layout, d)
            for d in self.mapped
        )
        return MemoryPlace(lanes, self.indices)

    def address(self, element: int) -> tuple[SSAValue, int]:
        """Where an element lies."""
        return address(self.ar, self.memory, self.places[element], self.constants[element])

    @cached_property
    def _alignment(self) -> int:
        places = dict.fromkeys(self.places)  # any order: it does not show in a divisor
        return gcd(*(alignment(self.ar, self.memory, p, self.masked) for p in places))

    def lie_together(self, width: int) -> bool:
        """Whether so many neighbours in the fragment are aligned neighbours in memory."""
        contiguous = self.memory.contiguous()
        if contiguous is None or self._alignment % width or self.chunk % width:
            return False
        for first in range(0, self.count, width):
            start, place = self.constants[first], self.places[first]
            if start[contiguous] % width:
                return False
            for i in range(1, width):
                wanted = tuple(x + i * (d == contiguous) for d, x in enumerate(start))
                if self.constants[first + i] != wanted or self.places[first + i] is not place:
                    return False
            if self.layout.where:
                held = self.holds(first)
                if any(self.holds(first + i) is not held for i in range(1, width)):
                    return False
        return True
