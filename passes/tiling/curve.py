"""The n-th tile on a generalised Hilbert curve, in integer operations.

A table in constant memory would have to be made by every launch, as sizes are known only then; this
takes some 35 operations for each halving of the rectangle, once a tile.
`fragir.scheduling.l2.curve` walks the same curve and says where it is from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag

# -- indices ---------------------------------------------------------------------------------------
# Index arithmetic in the IR, of which constants fold.

Number = int | SSAValue
INDEX = IndexType()


class Indices:
    """Builds numbers of type index at one place. Divisions are of what is not negative."""

    def __init__(self, place: InsertPoint, location: LocationAttr):
        self.builder, self.location = Builder(place), location

    @classmethod
    def at_end(cls, block: Block, like: Indices) -> Indices:
        """Builds at the end of a block, where `like` is from."""
        return cls(InsertPoint.at_end(block), like.location)

    def insert_op(self, op: Operation) -> Operation:
        op.location = self.location
        return self.builder.insert(op)

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Inserts an operation with one result."""
        result = self.insert_op(op).results[0]
        if name is not None:
            result.name_hint = name
        return result

    def value(self, number: Number) -> SSAValue:
        """A number as a value."""
        if isinstance(number, int):
            return self.insert(arith.ConstantOp(IntegerAttr(number, INDEX)))
        return number

    def block(self, dimension: frag.Dimension, name: str) -> SSAValue:
        """The block's place in the grid."""
        return self.insert(frag.BlockIdOp(dimension), name)

    def add(self, x: Number, y: Number, name: str | None = None) -> Number:
        """x + y."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if x == 0 or y == 0:
            return y if x == 0 else x
        return self.insert(arith.AddiOp(self.value(x), self.value(y)), name)

    def sub(self, x: Number, y: Number) -> Number:
        """x - y."""
        if isinstance(x, int) and isinstance(y, int):
            return x - y
        return x if y == 0 else self.insert(arith.SubiOp(self.value(x), self.value(y)))

    def mul(self, x: Number, y: Number, name: str | None = None) -> Number:
        """x y."""
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if x == 0 or y == 0:
            return 0
        if x == 1 or y == 1:
            return y if x == 1 else x
        return self.insert(arith.MuliOp(self.value(x), self.value(y)), name)

    def div(self, x: Number, y: Number, name: str | None = None) -> Number:
        """x / y rounded down."""
        if isinstance(x, int) and isinstance(y, int):
            return x // y
        return x if y == 1 else self.insert(arith.DivUIOp(self.value(x), self.value(y)), name)

    def rem(self, x: Number, y: Number) -> Number:
        """x mod y."""
        if isinstance(x, int) and isinstance(y, int):
            return x % y
        return 0 if y == 1 else self.insert(arith.RemUIOp(self.value(x), self.value(y)))

    def ceil(self, x: Number, y: int, name: str | None = None) -> Number:
        """x / y rounded up."""
        return self.div(self.add(x, y - 1), y, name)

    def below(self, x: Number, y: Number) -> SSAValue:
        """x < y."""
        return self.insert(arith.CmpiOp(self.value(x), self.value(y), "ult"))

    def select(self, condition: SSAValue, x: Number, y: Number) -> SSAValue:
        """x where a condition holds, else y."""
        return self.insert(arith.SelectOp(condition, self.value(x), self.value(y)))

    def least(self, x: Number, y: Number) -> Number:
        """The smaller one."""
        if isinstance(x, int) and isinstance(y, int):
            return min(x, y)
        x, y = self.value(x), self.value(y)
        return self.select(self.below(x, y), x, y)

    def most(self, x: Number, y: Number) -> Number:
        """The larger one."""
        if isinstance(x, int) and isinstance(y, int):
            return max(x, y)
        x, y = self.value(x), self.value(y)
        return self.select(self.below(x, y), y, x)

    def starts(
        self, places: Sequence[Number], tile: Sequence[int], names: tuple[str, ...] = ("row", "col")
    ) -> list[SSAValue]:
        """The first elements of a tile: matrices, and what `names` says."""
        names = ("matrix",) * (len(places) - len(names)) + names
        return [
            self.value(self.mul(place, size, name))
            for place, size, name in zip(places, tile, names, strict=True)
        ]


class CurvePart(NamedTuple):
    """A rectangle of tiles, how the curve goes through it, and how far one is."""

    number: Number
    """Tiles that lie before it."""
    length: Number
    """Tiles along the side that the way leads along, and across it."""
    width: Number
    ahead: Number
    """1 or -1: towards larger or smaller numbers along either side."""
    aside: Number
    along: Number
    """The place of the corner where it begins."""
    across: Number
    by_columns: Number
    """1 where the way leads along a row, 0 along a column."""


def place_on_curve(
    at: Indices, number: Number, rows: Number, columns: Number
) -> tuple[Number, Number]:
    """Row and column of the n-th tile of `rows` x `columns`."""
    if isinstance(rows, int) and isinstance(columns, int):
        start = CurvePart(
            number, max(rows, columns), min(rows, columns), 1, 1, 0, 0, rows <= columns
        )
    else:
        wide = at.below(rows, at.add(columns, 1))
        sides = at.select(wide, columns, rows), at.select(wide, rows, columns)
        start = CurvePart(number, *sides, 1, 1, 0, 0, at.select(wide, 1, 0))
    end = _until_narrow(at, start)
    narrow = at.below(end.width, 2)
    # one row of tiles, or one column, is left
    along = at.add(end.along, at.mul(end.ahead, at.select(narrow, end.number, 0)))
    across = at.add(end.across, at.mul(end.aside, at.select(narrow, 0, end.number)))
    by_columns = at.below(0, end.by_columns)
    return at.select(by_columns, across, along), at.select(by_columns, along, across)


def _until_narrow(at: Indices, start: CurvePart) -> CurvePart:
    """The last rectangle: it has one tile along a side."""
    values = [at.value(number) for number in start]
    before, after = (Block(arg_types=[INDEX] * len(values)) for _ in range(2))
    inside = Indices(InsertPoint.at_end(before), at.location)
    part = CurvePart(*before.args)
    both = inside.insert(arith.AndIOp(inside.below(1, part.length), inside.below(1, part.width)))
    inside.insert_op(scf.ConditionOp(both, *before.args))
    inside = Indices(InsertPoint.at_end(after), at.location)
    inside.insert_op(scf.YieldOp(*_part(inside, CurvePart(*after.args))))
    types = [INDEX] * len(values)
    loop = at.insert_op(scf.WhileOp(values, types, Region(before), Region(after)))
    return CurvePart(*loop.results)


def _part(at: Indices, part: CurvePart) -> Sequence[SSAValue]:
    """The part of a rectangle in which the tile is.

    One that is longer than one and a half times its width is cut in the middle; another into a
    corner, the long side, and the other corner turned round.
    """
    half, half_width = at.div(part.length, 2), at.div(part.width, 2)
    long = at.below(at.mul(part.width, 3), at.mul(part.length, 2))

    def cut(at: Indices) -> CurvePart:
        middle = _even_half(at, half, part.length)
        before = at.mul(middle, part.width)
        behind = at.sub(part.number, before)
        rest = part._replace(
            number=behind,
            length=at.sub(part.length, middle),
            along=at.add(part.along, at.mul(part.ahead, middle)),
        )
        first = at.below(part.number, before)
        return _choose(at, first, part._replace(length=middle), rest)

    def turn(at: Indices) -> CurvePart:
        middle = _even_half(at, half_width, part.width)
        corner = at.mul(middle, half)
        side = at.add(corner, at.mul(part.length, at.sub(part.width, middle)))
        other = at.sub(1, part.by_columns)
        first = CurvePart(
            *(part.number, middle, half, part.aside, part.ahead, part.across, part.along, other)
        )
        second = part._replace(
            number=at.sub(part.number, corner),
            width=at.sub(part.width, middle),
            across=at.add(part.across, at.mul(part.aside, middle)),
        )
        last = CurvePart(
            at.sub(part.number, side),
            middle,
            at.sub(part.length, half),
            at.sub(0, part.aside),
            at.sub(0, part.ahead),
            at.add(part.across, at.mul(part.aside, at.sub(middle, 1))),
            at.add(part.along, at.mul(part.ahead, at.sub(part.length, 1))),
            other,
        )
        later = _choose(at, at.below(part.number, side), second, last)
        return _choose(at, at.below(part.number, corner), first, later)

    return _either(at, long, cut, turn)


def _even_half(at: Indices, half: Number, whole: Number) -> Number:
    """A half, or one more where it is odd and the whole is more than 2."""
    odd = at.rem(half, 2)
    return at.add(half, at.select(at.below(2, whole), odd, 0))


def _choose(at: Indices, condition: SSAValue, x: CurvePart, y: CurvePart) -> CurvePart:
    return CurvePart(
        *(p if p is q else at.select(condition, p, q) for p, q in zip(x, y, strict=True))
    )


def _either(
    at: Indices,
    condition: SSAValue,
    x: Callable[[Indices], CurvePart],
    y: Callable[[Indices], CurvePart],
) -> Sequence[SSAValue]:
    """A branch: all threads of a block go the same way."""
    blocks: list[Block] = []
    for build in (x, y):
        block = Block()
        inside = Indices(InsertPoint.at_end(block), at.location)
        inside.insert_op(scf.YieldOp(*map(inside.value, build(inside))))
        blocks.append(block)
    types = [INDEX] * len(CurvePart._fields)
    return at.insert_op(scf.IfOp(condition, types, Region(blocks[0]), Region(blocks[1]))).results
