"""Tiles from and to places that tiles of indices say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.indexed import Indexed, rows_layout
from fragir.errors import FragirError
from fragir.layout.modes import LayoutError
from fragir.layout.replicas import Holders, single_holders
from fragir.passes.lowering.arithmetic import INDEX, Predicate, Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.layout_arithmetic import NOWHERE, LaneOffset
from fragir.passes.lowering.memory import MemoryPlace
from fragir.passes.lowering.tile_access import TileAccess, split


class IndexedAccess(TileAccess):
    """One tile's elements, each at the place that its indices say.

    `writes`: of those who hold an element alike one accesses it.
    """

    def __init__(self, lanes: Lanes, op: Indexed, *, writes: bool, other: SSAValue | None = None):
        state, tile = lanes.state, frag.tile_of(op.tiles()[0])
        super().__init__(
            state.ar,
            state.hardware,
            tile,
            lanes.memory(op.memory),
            (),
            transposed=False,
            masked=op.masked is not None,
            target=state.target,
            other=other,
        )
        self.by_rows, self.behind = op.by_rows, op.behind
        tiles = op.index_tiles()
        if self.by_rows:
            self._check_rows(op, tile)
        self.at: list[Value | list[Value]] = [
            [self._index(x) for x in lanes.elements(tiles[dim])]
            if dim in tiles
            else state.index(index)
            for dim, index in enumerate(op.all_indices())
        ]
        self.mask = None if op.mask is None else self._elements(state.tiles[op.mask])
        self.holders = Holders()
        if writes:
            try:
                self.holders = single_holders(self.layout, state.threads)
            except LayoutError as error:
                raise FragirError(error.message, hint="convert the tile before") from error

    def _index(self, number: SSAValue) -> SSAValue:
        """An i32 as an index."""
        key = ("index", number)
        return self.ar.pure(key, (number,), lambda: arith.IndexCastOp(number, INDEX))

    def _elements(self, fragments: Sequence[SSAValue]) -> list[SSAValue]:
        return [x for part in fragments for x in split(self.ar, part, 1)]

    def _check_rows(self, op: Indexed, tile: frag.TileType) -> None:
        (rows,) = (frag.tile_of(value) for value in op.index_tiles().values())
        wanted = rows_layout(tile.layout, tile.shape)
        found, needed = rows.resolve(), wanted.layout(*rows.shape)
        if found != needed and not found.equivalent(needed):
            raise FragirError(
                f"the rows of {tile} lie where {rows} does not say it",
                hint=f"give the indices the layout {wanted}",
            )

    @cached_property
    def width(self) -> int:
        """As of any tile, but a mask of elements, and whether others have it, is asked for each."""
        alone = self.holders.overlaps or (self.mask is not None and not self.by_rows)
        return 1 if alone else super().width

    @cached_property
    def numbers(self) -> list[int]:
        """For each element which of a lane's indices is its own."""
        if not self.by_rows:
            return list(range(self.count))
        shape = self.tile.shape
        rows = replace(rows_layout(self.tile.layout, shape).layout(*shape[:1]), where=())
        zeros = {axis.name: 0 for axis in rows.axes}
        size = rows.size("element") if "element" in rows.names else 1
        held = {rows(**{**zeros, "element": e}): e for e in reversed(range(size))}
        return [held[point[-len(shape)],] for point in self._steps]

    @cached_property
    def _memory_places(self) -> tuple[list[MemoryPlace], list[tuple[int, ...]]]:
        rank = len(self.at)
        nowhere, behind = (NOWHERE,) * rank, self.behind
        alone = not any(isinstance(x, list) for x in self.at)
        known: dict[tuple[int, tuple[LaneOffset, ...]], MemoryPlace] = {}
        places: list[MemoryPlace] = []
        constants: list[tuple[int, ...]] = []
        for element, index in enumerate(self.numbers):
            number = 0 if alone else index
            lanes, steps = nowhere, (0,) * rank
            if behind:
                place, point = self._in_rows[0][element], self._in_rows[1][element]
                lanes = (*nowhere[behind:], *place.lanes[-behind:])
                steps = (*steps[behind:], *point[-behind:])
            found = known.get((number, lanes))
            if found is None:
                at = tuple(x[number] if isinstance(x, list) else x for x in self.at)
                found = known[number, lanes] = MemoryPlace(lanes, at)
            places.append(found)
            constants.append(steps)
        return places, constants

    @cached_property
    def _in_rows(self) -> tuple[list[MemoryPlace], list[tuple[int, ...]]]:
        """Where the elements would lie if the rows were in order."""
        if self.layout.exclusive:
            return self._exclusive
        return [self.place()] * self.count, self._steps

    @cached_property
    def places(self) -> list[MemoryPlace]:
        """One for each row, or element."""
        return self._memory_places[0]

    @cached_property
    def constants(self) -> list[tuple[int, ...]]:
        """How far each element lies behind the beginning of its row."""
        return self._memory_places[1]

    def _predicate(self, first: int) -> Predicate:
        held = super()._predicate(first)
        held = self.ar.both(held, self.hardware.speaks(self.holders, first))
        return held if self.mask is None else self.ar.both(held, self.mask[self.numbers[first]])

    def condition(self, first: int) -> Predicate:
        """Whether this lane accesses an element."""
        return self._predicate(first)

    def pointer(self, element: int) -> tuple[SSAValue, int]:
        """Where it lies: a pointer, and bytes from there."""
        return self.address(element)
