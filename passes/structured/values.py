"""Places and tiles as values: affine expressions as arith, tiles along some of a kernel's axes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import add
from typing import NamedTuple

from xdsl.builder import Builder
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag
from fragir.dialects.frag.types import tile_of
from fragir.dialects.shorthands import constant_of, memref_type

Kind = AffineBinaryOpKind
Number = int | SSAValue
Insert = Callable[[Operation], SSAValue]
_OPERATIONS: Mapping[Kind, Callable[[SSAValue, SSAValue], Operation]] = {
    Kind.Add: arith.AddiOp,
    Kind.Mul: arith.MuliOp,
    Kind.FloorDiv: arith.FloorDivSIOp,
    Kind.CeilDiv: arith.CeilDivSIOp,
}


def value_of(insert: Insert, number: Number, is_index: bool) -> SSAValue:
    """A number as a value, of index or i32."""
    if isinstance(number, int):
        return insert(arith.ConstantOp(IntegerAttr(number, IndexType() if is_index else i32)))
    return number


def compute(
    insert: Insert, expression: AffineExpr, loops: Mapping[int, Number], is_index: bool
) -> Number:
    """An expression of dimensions, whose numbers are given; what is known is folded."""
    if isinstance(expression, AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return expression.value
    assert isinstance(expression, AffineBinaryOpExpr)
    x = compute(insert, expression.lhs, loops, is_index)
    y = compute(insert, expression.rhs, loops, is_index)
    kind = expression.kind
    if isinstance(x, int) and isinstance(y, int):
        return _fold(kind, x, y)
    if (kind is Kind.Add and y == 0) or (kind is not Kind.Add and kind is not Kind.Mod and y == 1):
        return x
    if (kind is Kind.Add and x == 0) or (kind is Kind.Mul and x == 1):
        return y
    if kind is Kind.Mul and 0 in (x, y):
        return 0
    left, right = value_of(insert, x, is_index), value_of(insert, y, is_index)
    if kind is not Kind.Mod:
        return insert(_OPERATIONS[kind](left, right))
    times = insert(arith.MuliOp(insert(arith.FloorDivSIOp(left, right)), right))
    return insert(arith.SubiOp(left, times))


def _fold(kind: Kind, x: int, y: int) -> int:
    ways = {
        Kind.Add: lambda: x + y,
        Kind.Mul: lambda: x * y,
        Kind.Mod: lambda: x % y,
        Kind.FloorDiv: lambda: x // y,
        Kind.CeilDiv: lambda: -(-x // y),
    }
    return ways[kind]()


INDEX, I32 = IndexType(), IntegerType(32)
ROWS, COLUMNS, DEPTH = 0, 1, 2
"""The axes of a kernel's tiles; along the last one lies what is reduced."""
Axes = tuple[int, ...]
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
        self.layouts: dict[Axes, frag.LayoutAttr] = {}
        """Where tiles along these axes lie, if that is not for the compiler to choose."""
        self._parts: dict[SSAValue, tuple[TileValue, Size]] = {}
        self._ahead: dict[object, TileValue] = {}
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

    def sum(self, one: Size, other: Size) -> Size:
        """Of sizes."""
        return compute(self.put, AffineDimExpr(0) + AffineDimExpr(1), {0: one, 1: other}, True)

    def smaller(self, one: Size, other: Size) -> Size:
        """Of two sizes."""
        if isinstance(one, int) and isinstance(other, int):
            return min(one, other)
        left, right = (self.constant(x) if isinstance(x, int) else x for x in (one, other))
        return self.put(arith.MinSIOp(left, right))

    def ceil_divided(self, size: Size, by: Size) -> Size:
        """A size by another, rounded up."""
        expression = AffineBinaryOpExpr(Kind.CeilDiv, AffineDimExpr(0), AffineDimExpr(1))
        return compute(self.put, expression, {0: size, 1: by}, True)

    def divided(self, size: Size, by: Size) -> Size:
        """A size by another, rounded down."""
        expression = AffineBinaryOpExpr(Kind.FloorDiv, AffineDimExpr(0), AffineDimExpr(1))
        return compute(self.put, expression, {0: size, 1: by}, True)

    def dim(self, memory: SSAValue, dim: int) -> Size:
        """A size of memory."""
        size = memref_type(memory.type).get_shape()[dim]
        if size >= 0:
            return size
        return self.put(memref.DimOp(memory, self.constant(dim)))

    # --- tiles --------------------------------------------------------------------------------

    def type_of(self, axes: Axes, element: Attribute) -> frag.TileType:
        """A tile along axes."""
        shape = tuple(self.sizes[axis] for axis in axes)
        return frag.TileType(shape, element, self.layouts.get(axes))

    def widen(self, tile: TileValue, axes: Axes) -> TileValue:
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

    def counting_place(self, axis: int, first: Size) -> Place:
        """The places of a tile along an axis, of which the first one is given."""
        iota = self.put(frag.IotaOp(0, self.type_of((axis,), I32)))
        tile = TileValue(iota, (axis,))
        if first == 0:
            return tile
        start = self.scalar(TileValue(first) if isinstance(first, SSAValue) else first)
        return self.map([tile], (axis,), I32, lambda at, x: at(arith.AddiOp(x[0], start)))

    # --- places that change from turn to turn by what is the same for all ------------------------

    def parts(self, place: Place) -> tuple[TileValue | None, Size]:
        """A place as what lanes have of it, which loops around may share, and what all have."""
        if isinstance(place, int):
            return None, place
        if not place.axes:
            return None, place.value
        return self._parts.get(place.value, (place, 0))

    def together(self, tile: TileValue | None, same: Size) -> Place:
        """The place of which these are the parts."""
        if tile is None:
            return place_of_size(same)
        if same == 0:
            return tile
        scalar = self.scalar(place_of_size(same))
        found = self.map([tile], tile.axes, I32, lambda at, x: at(arith.AddiOp(x[0], scalar)))
        self._parts[found.value] = tile, same
        return found

    def drop_unused(self) -> None:
        """Erases places of which only parts are used."""
        pending: list[SSAValue] = list(self._parts)
        while pending:
            value = pending.pop()
            op = value.owner
            if not isinstance(op, Operation) or op.parent is None or value.uses:
                continue
            if op.name.startswith(("arith.", "frag.map")):
                pending += op.operands
                op.detach()
                op.erase()

    def ahead(self, expression: AffineExpr, tiles: Mapping[int, TileValue], order: Axes) -> Place:
        """An expression of tiles, once, where they are made."""
        values = {at: tile.value for at, tile in tiles.items()}
        blocks = {value.owner.parent for value in values.values() if isinstance(value, OpResult)}
        block = blocks.pop() if len(blocks) == 1 else None
        key = expression, tuple(values.items()), order, block or self.block
        if key not in self._ahead:
            with self.inside(block or self.block):
                self._ahead[key] = _map_of(self, expression, dict(tiles), {}, order)
        return self._ahead[key]

    def map(
        self,
        tiles: Sequence[TileValue],
        axes: Axes,
        element: Attribute,
        body: Callable[[Insert, Sequence[SSAValue]], SSAValue],
        name: str | None = None,
    ) -> TileValue:
        """A function of the elements of tiles, which are made as wide as `axes`."""
        wide = [self.widen(tile, axes).value for tile in tiles]
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


def place_of_size(size: Size) -> Place:
    """A size as a place."""
    return size if isinstance(size, int) else TileValue(size)


def union(axes: Sequence[Axes], order: Axes) -> Axes:
    """All of these axes, in an order that has them."""
    return tuple(axis for axis in order if any(axis in some for some in axes))


def place_of(
    build: ValueBuilder, expression: AffineExpr, loops: Sequence[Place], order: Axes
) -> Place:
    """An expression of loops; a tile along those axes, in that order, on which it depends."""
    if isinstance(expression, AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return expression.value
    used = {e.position: loops[e.position] for e in expression.dfs() if isinstance(e, AffineDimExpr)}
    tiles = {at: x for at, x in used.items() if isinstance(x, TileValue) and x.axes}
    numbers: dict[int, Number] = {}
    if not tiles:
        for at, place in used.items():
            numbers[at] = place if isinstance(place, int) else place.value
        found = compute(build.put, expression, numbers, is_index=True)
        return found if isinstance(found, int) else TileValue(found)
    split = _split(expression, tiles)
    if split is not None:
        lanes, same = split
        for at, place in used.items():
            if at not in tiles:
                numbers[at] = place if isinstance(place, int) else place.value
        own = {at: tile for at, tile in tiles.items() if at in lanes.used_dims()}
        held = build.ahead(lanes, own, order)
        assert isinstance(held, TileValue)
        return build.together(held, compute(build.put, same, numbers, is_index=True))
    for at, place in used.items():
        if at not in tiles:
            numbers[at] = place if isinstance(place, int) else build.scalar(place)
    return _map_of(build, expression, tiles, numbers, order)


def _split(
    expression: AffineExpr, tiles: Mapping[int, TileValue]
) -> tuple[AffineExpr, AffineExpr] | None:
    """The terms of a sum that tiles have part in, and all others; None where a term has both, or
    there are none of one kind."""
    lanes, same = list[AffineExpr](), list[AffineExpr]()
    for term in _terms(expression):
        dims = term.used_dims()
        if dims & set(tiles) and dims - set(tiles):
            return None
        (lanes if dims & set(tiles) else same).append(term)
    if not lanes or not same:
        return None
    return sum_of(lanes), sum_of(same)


def sum_of(terms: Sequence[AffineExpr]) -> AffineExpr:
    """Of one term or more."""
    return reduce(add, terms)


def _terms(expression: AffineExpr) -> list[AffineExpr]:
    if isinstance(expression, AffineBinaryOpExpr) and expression.kind is Kind.Add:
        return [*_terms(expression.lhs), *_terms(expression.rhs)]
    return [expression]


def _map_of(
    build: ValueBuilder,
    expression: AffineExpr,
    tiles: Mapping[int, TileValue],
    numbers: Mapping[int, Number],
    order: Axes,
) -> TileValue:
    """An expression of tiles and numbers."""
    axes = union([tile.axes for tile in tiles.values()], order)

    def body(insert: Insert, elements: Sequence[SSAValue]) -> SSAValue:
        every = {**numbers, **dict(zip(tiles, elements, strict=True))}
        return value_of(insert, compute(insert, expression, every, is_index=False), False)

    return build.map(list(tiles.values()), axes, I32, body)


def part_of(build: ValueBuilder, linear: Place, behind: Number, extent: Number | None) -> Place:
    """A loop's place, of all places of several loops, counted through. `behind`: how many of them
    have one place of the loop; `extent`: the loop's size, but of the outermost one.
    """
    if behind == 1 and extent is None:
        return linear
    steps: list[tuple[type[arith.DivUIOp | arith.RemUIOp], Number]] = []
    if behind != 1:
        steps.append((arith.DivUIOp, behind))
    if extent is not None:
        steps.append((arith.RemUIOp, extent))

    def divided(insert: Insert, x: SSAValue, is_index: bool) -> SSAValue:
        for op, by in steps:
            x = insert(op(x, value_of(insert, by, is_index)))
        return x

    if isinstance(linear, TileValue) and linear.axes:
        steps = [
            (op, by if isinstance(by, int) else build.scalar(TileValue(by))) for op, by in steps
        ]
        return build.map([linear], linear.axes, I32, lambda at, x: divided(at, x[0], False))
    return TileValue(divided(build.put, build.index(linear), True))


def number_of(value: SSAValue) -> Number:
    """A constant as a number."""
    found = constant_of(value)
    return value if found is None else found
