"""Tiles along some of a kernel's axes, and the operations that compute them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag
from fragir.dialects.frag.types import tile_of
from fragir.dialects.narrow import memref_type

INDEX, I32 = IndexType(), IntegerType(32)
Axes = tuple[int, ...]
Insert = Callable[[Operation], SSAValue]
Size = int | SSAValue


class TileValue(NamedTuple):
    """A value for every place along some axes, in their order; along none, a scalar."""

    value: SSAValue
    axes: Axes = ()


Place = int | TileValue
"""Where along a loop: a number, a scalar of index, or a tile of i32."""


class ValueBuilder:
    """Puts operations on tiles at the end of a block. A tile has so many places along each axis."""

    def __init__(self, block: Block, model: Operation):
        self._model = model
        self.sizes: dict[int, int] = {}
        self._at(block)

    def _at(self, block: Block) -> None:
        self.block = block
        self._builder = Builder(InsertPoint.at_end(block))

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Builds in another block."""
        outer = self.block
        self._at(block)
        try:
            yield
        finally:
            self._at(outer)

    # --- scalars ------------------------------------------------------------------------------

    def add(self, op: Operation) -> None:
        """Inserts an operation."""
        op.location = self._model.location
        self._builder.insert(op)

    def put(self, op: Operation, name: str | None = None) -> SSAValue:
        """Inserts an operation with one result."""
        self.add(op)
        if name is not None:
            op.results[0].name_hint = name
        return op.results[0]

    def constant(self, number: int, type_: IndexType | IntegerType = INDEX) -> SSAValue:
        """A number."""
        return self.put(arith.ConstantOp(IntegerAttr(number, type_)))

    def index(self, place: Place) -> SSAValue:
        """A scalar place as an index."""
        if isinstance(place, int):
            return self.constant(place)
        assert not place.axes
        return place.value

    def scalar(self, place: Place) -> SSAValue:
        """A scalar place as an i32."""
        if isinstance(place, int):
            return self.constant(place, I32)
        assert not place.axes
        return self.put(arith.IndexCastOp(place.value, I32))

    def product(self, factors: Sequence[Size]) -> Size:
        """Of sizes."""
        number, values = 1, list[SSAValue]()
        for factor in factors:
            if isinstance(factor, int):
                number *= factor
            else:
                values.append(factor)
        if not values or not number:
            return number
        found = values[0]
        for value in values[1:]:
            found = self.put(arith.MuliOp(found, value))
        return found if number == 1 else self.put(arith.MuliOp(found, self.constant(number)))

    def dim(self, memory: SSAValue, dim: int) -> Size:
        """A size of memory."""
        size = memref_type(memory.type).get_shape()[dim]
        if size >= 0:
            return size
        return self.put(memref.DimOp(memory, self.constant(dim)))

    # --- tiles --------------------------------------------------------------------------------

    def type_of(self, axes: Axes, element: Attribute) -> frag.TileType:
        """A tile along axes."""
        return frag.TileType(tuple(self.sizes[axis] for axis in axes), element)

    def wide(self, tile: TileValue, axes: Axes) -> TileValue:
        """The same along more axes, among which its own stand in their order."""
        if tile.axes == axes:
            return tile
        if not tile.axes:
            filled = frag.FillOp(tile.value, self.type_of(axes, tile.value.type))
            return TileValue(self.put(filled, tile.value.name_hint), axes)
        value, have = tile.value, list(tile.axes)
        assert [axis for axis in axes if axis in have] == have
        for at, axis in enumerate(axes):
            if axis not in have:
                value = self.put(frag.BroadcastOp(value, at, self.sizes[axis]), value.name_hint)
        return TileValue(value, axes)

    def counted(self, axis: int, first: Size) -> Place:
        """The places of a tile along an axis, of which the first one is given."""
        iota = self.put(frag.IotaOp(0, self.type_of((axis,), I32)))
        tile = TileValue(iota, (axis,))
        if first == 0:
            return tile
        start = self.scalar(TileValue(first) if isinstance(first, SSAValue) else first)
        return self.map([tile], (axis,), I32, lambda at, x: at(arith.AddiOp(x[0], start)))

    def map(
        self,
        tiles: Sequence[TileValue],
        axes: Axes,
        element: Attribute,
        body: Callable[[Insert, Sequence[SSAValue]], SSAValue],
        name: str | None = None,
    ) -> TileValue:
        """A function of the elements of tiles, which are made as wide as `axes`."""
        wide = [self.wide(tile, axes).value for tile in tiles]
        block = Block(arg_types=[tile_of(tile).element_type for tile in wide])
        for tile, argument in zip(wide, block.args, strict=True):
            argument.name_hint = tile.name_hint
        inner = Builder(InsertPoint.at_end(block))

        def at(op: Operation) -> SSAValue:
            op.location = self._model.location
            inner.insert(op)
            return op.results[0]

        end = frag.YieldOp(body(at, block.args))
        end.location = self._model.location
        inner.insert(end)
        made = frag.MapOp(wide, Region(block), self.type_of(axes, element))
        return TileValue(self.put(made, name), axes)
