"""Index arithmetic in the IR, of which constants fold."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag

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
