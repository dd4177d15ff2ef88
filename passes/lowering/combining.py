"""Combines parts of rows that lanes hold: by a word of `frag.reduce`, or as a region says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Block, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.reductions import COMBINATIONS, FLOATS, PLACES, neutral
from fragir.passes.lowering.access import split
from fragir.passes.lowering.elementwise import cast_op, clone_region
from fragir.passes.lowering.lane_builder import REGISTER, Lanes

#: For each row that a lane has: its elements, or elements and places, one vector each.
Part: TypeAlias = tuple[SSAValue, ...]

_OPERATIONS: dict[str, Any] = {op.name: op for op in arith.Arith.operations}


class Combining:
    """What one lane does to combine elements of a type by a word."""

    def __init__(self, lanes: Lanes, kind: str, element: str):
        self.lanes, self.kind, self.element = lanes, kind, element
        self.ar = lanes.arithmetic

    @property
    def once(self) -> bool:
        """Whether an element must not be combined twice: of sums, not of the largest."""
        return self.kind in ("", "add", "mul", "xor")

    def __call__(self, first: Part, second: Part, *, in_order: bool = False) -> Part:
        """Two of them; `in_order` says that the places of the first are before the second's."""
        if self.kind in PLACES:
            return self._better(first, second, in_order)
        name = COMBINATIONS[self.kind].operation(self.element)
        assert name is not None
        (x,), (y,) = first, second
        return (self.lanes.insert(_OPERATIONS[name](x, y)).results[0],)

    def between_lanes(self, part: Part, mask: int) -> Part:
        """What this lane and the lane `lane ^ mask` have: the same in both, to the bit."""
        return self(part, self.of_lane(part, mask))

    def of_lane(self, part: Part, mask: int) -> Part:
        """The part that the lane `lane ^ mask` has."""
        return tuple(self._exchanged(vector, mask) for vector in part)

    def selected(self, condition: SSAValue, first: Part, second: Part) -> Part:
        """The first where a vector of conditions holds, else the second."""
        return tuple(self._chosen(condition, x, y) for x, y in zip(first, second, strict=True))

    def nothing(self, type_: Attribute, count: int) -> SSAValue:
        """So many elements of a type that change nothing they are combined with."""
        number = neutral(self.kind, self.element)
        if isinstance(type_, AnyFloat):
            return self.ar.splat(self._constant(FloatAttr(number, type_)), count)
        signless = IntegerType(ptx.bits(type_))
        vector = self.ar.splat(self._constant(IntegerAttr(int(number), signless)), count)
        if type_ == signless:
            return vector
        wanted = ptx.vector_type(type_, count)
        key = ("cast", vector, wanted)
        return self.ar.pure(key, (vector,), lambda: ptx.BitcastOp(vector, wanted))

    def _constant(self, attribute: FloatAttr[AnyFloat] | IntegerAttr[IntegerType]) -> SSAValue:
        return self.ar.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))

    def vector(self, scalars: Sequence[SSAValue]) -> SSAValue:
        """Scalars as one vector."""
        return self.lanes.insert(ptx.PackOp(scalars)).result

    def _better(self, first: Part, second: Part, in_order: bool) -> Part:
        """The larger or smaller of two elements and its place; of equals that of the first."""
        (x, at), (y, there) = first, second
        way = "gt" if self.kind == "argmax" else "lt"
        if self.element in FLOATS:
            # a NaN is better than any number
            number = self._compare("ord", x, x)
            better = self._both(self._compare(f"u{way}", y, x), number)
            equal = self._compare("ueq", y, x)
            if not in_order:
                # unordered are equal if both are NaN: x is a number, and better was right, or not
                equal = self._both(equal, self._same(number, self._compare("ord", y, y)))
        else:
            better = self._compare(("u" if self.element == "u32" else "s") + way, y, x)
            equal = self._compare("eq", y, x)
        if not in_order:
            earlier = self._both(equal, self._compare("slt", there, at))
            better = self.lanes.insert(arith.OrIOp(better, earlier)).result
        return self.selected(better, second, first)

    def _chosen(self, condition: SSAValue, first: SSAValue, second: SSAValue) -> SSAValue:
        if not is_predicate(ptx.scalar_type(first.type)):
            return self.lanes.insert(ptx.SelectOp(condition, first, second)).result
        # selp takes no predicates
        every = self.ar.splat(self._true(), ptx.length(first.type))
        otherwise = self.lanes.insert(arith.XOrIOp(condition, every)).result
        kept = self._both(first, condition), self._both(second, otherwise)
        return self.lanes.insert(arith.OrIOp(*kept)).result

    def _compare(self, how: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(ptx.CompareOp(how, x, y)).result

    def _both(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(arith.AndIOp(x, y)).result

    def _same(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Where both hold, or neither."""
        differ = self.lanes.insert(arith.XOrIOp(x, y)).result
        every = self.ar.splat(self._true(), ptx.length(x.type))
        return self.lanes.insert(arith.XOrIOp(differ, every)).result

    def _true(self) -> SSAValue:
        return self.ar.pure(("true",), (), lambda: arith.ConstantOp.from_int_and_width(1, 1))

    def _exchanged(self, vector: SSAValue, mask: int) -> SSAValue:
        """The vector that another lane has."""
        lanes, type_ = self.lanes, ptx.scalar_type(vector.type)
        if is_predicate(type_):  # as numbers
            moved = lanes.shuffle_xor(cast_op(self.ar, vector, type_, i32), mask)
            return self._compare("ne", moved, self.ar.zero(moved.type))
        width, count = ptx.bits(type_), ptx.length(vector.type)
        if count * width % REGISTER == 0:
            return lanes.shuffle_xor(vector, mask)
        scalars = split(self.ar, vector, 1)
        filled = self.vector([*scalars, *scalars[-1:] * (-count % (REGISTER // width))])
        moved = split(self.ar, lanes.shuffle_xor(filled, mask), 1)
        return self.vector(moved[:count])


class RegionCombining(Combining):
    """Combines n values each by a region on 2 n scalars."""

    def __init__(self, lanes: Lanes, block: Block):
        super().__init__(lanes, "", "")
        self.block = block

    def __call__(self, first: Part, second: Part, *, in_order: bool = False) -> Part:
        rows = ptx.length(first[0].type)
        values = clone_region(self.ar, self.block, (*first, *second), rows, self.lanes.scalar)
        return tuple(values)

    def between_lanes(self, part: Part, mask: int) -> Part:
        """That of the lower lane stands first: what is added in another order may round in another
        way, and lanes that have a row together must have the same."""
        theirs = self.of_lane(part, mask)
        lane = self.lanes.state.hardware.axis("lane")
        upper = self.ar.predicate(self.ar.compare("ne", self.ar.and_(lane, mask), 0))
        assert upper is not None
        every = self.ar.splat(upper, ptx.length(part[0].type))
        return self(self.selected(every, theirs, part), self.selected(every, part, theirs))
