"""Builds index arithmetic at lane level: folded, shared, and as far out of loops as it can be.

Every pure operation is looked up before it is made, and is put at the end of the innermost block
that defines one of its operands. Blocks are built front to back and a loop's operation is added
to its block only after its body is built, so that the end of an outer block is always before the
loop. That makes common subexpression elimination and loop-invariant code motion a matter of
construction, which costs nothing, where the passes would walk thousands of operations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import islice
from math import gcd
from typing import NamedTuple, TypeAlias, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    UnknownLoc,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from fragir.dialects import ptx
from fragir.dialects.limits import check_index, is_s32

# -- distances -------------------------------------------------------------------------------------
# Distances in memory: strides that are products of sizes, which 32 bits need not hold.
#
# A size and an index have 32 bits, a product of them has not: the stride of a matrix of 8192 x
# 128256 f32 is 4.2 GB. So such a stride stays a product until an address is formed, in 64 bits:
#
#     index * d1 * 4             mul.wide.s32 x, index, d1; mad.lo.s64 address, x, 4, pointer
#     index * d1 * d2 * 4        ahead of loops: mul.wide.s32 s, d1, d2; shl.b64 s, s, 2
#                                cvt.s64.s32 i, index; mad.lo.s64 address, i, s, pointer

Value = int | SSAValue


class Distance(NamedTuple):
    """The product of sizes, or of a size and a number."""

    factors: tuple[SSAValue, ...]
    scale: int


Stride = Value | Distance


def factors_of(stride: Stride) -> Distance:
    """A stride as the product that it is."""
    if isinstance(stride, Distance):
        return stride
    return Distance((), stride) if isinstance(stride, int) else Distance((stride,), 1)


def times(x: Stride, y: Stride) -> Stride:
    """x * y; zero, numbers and single sizes stay what they are."""
    one, other = factors_of(x), factors_of(y)
    scale = one.scale * other.scale
    factors = (*one.factors, *other.factors) if scale else ()
    if not factors:
        return scale
    return factors[0] if len(factors) == 1 and scale == 1 else Distance(factors, scale)


# -- placement -------------------------------------------------------------------------------------
# Where operations of the lane level are put: as far out of loops as they may stand.

OpT = TypeVar("OpT", bound=Operation)

Literal: TypeAlias = (
    "IntegerAttr | FloatAttr[AnyFloat] | DenseIntOrFPElementsAttr | DenseResourceAttr"
)
"""What `arith.constant` takes."""


class Placement:
    """Appends operations to the blocks of one function; those without effects are made once."""

    def __init__(self, entry: Block):
        self.blocks = [entry]
        self.location: LocationAttr = UnknownLoc()
        self._depth: dict[Block, int] = {entry: 0}
        self._memo: dict[object, SSAValue] = {}
        self._branches: list[Block] = []
        self._floor = entry  # the outermost block that operations are put into

    @property
    def block(self) -> Block:
        """Where operations with effects go."""
        return self.blocks[-1]

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Builds a nested block."""
        self.blocks.append(block)
        self._depth[block] = len(self.blocks) - 1
        try:
            yield
        finally:
            self.blocks.pop()

    @contextmanager
    def branch(self, block: Block) -> Generator[None]:
        """Builds a nested block that may be passed by. What is computed from values of the loop
        that it stands in is computed in it: ahead of it, it would take registers meanwhile.
        """
        known = len(self._memo)
        self._branches.append(block)
        try:
            with self.inside(block):
                yield
        finally:
            self._branches.pop()
            depth = self._depth[block]
            for key in list(islice(self._memo, known, None)):
                if self.depth(self._memo[key]) >= depth:
                    del self._memo[key]

    @contextmanager
    def apart(self, block: Block) -> Generator[None]:
        """Builds a nested block that is rarely entered: what is computed for it stands inside of
        it, not further out, where it would be computed and kept in registers in any case.
        """
        memo, floor = self._memo.copy(), self._floor
        with self.inside(block):
            self._floor = block
            try:
                yield
            finally:
                self._memo, self._floor = memo, floor

    @contextmanager
    def at_top(self) -> Generator[None]:
        """Builds at the end of what the function's first block has so far: ahead of the loop or
        branch that is being built."""
        blocks, memo, floor = self.blocks, self._memo, self._floor
        self.blocks, self._floor = blocks[:1], blocks[0]
        self._memo = {key: value for key, value in memo.items() if self.depth(value) == 0}
        try:
            yield
        finally:
            self.blocks, self._memo, self._floor = blocks, self._memo | memo, floor

    def insert(self, op: OpT, name: str | None = None) -> OpT:
        """Appends an operation to the current block."""
        return self._place(op, self.block, name)

    def _place(self, op: OpT, block: Block, name: str | None) -> OpT:
        op.location = self.location
        block.add_op(op)
        if name is not None:
            for result in op.results:
                result.name_hint = name
        return op

    def pure(
        self,
        key: object,
        operands: Sequence[SSAValue],
        make: Callable[[], Operation],
        name: str | None = None,
    ) -> SSAValue:
        """The first result of an operation without effects, made once, as far out as possible."""
        found = self._memo.get(key)
        if found is not None:
            return found
        block = max(
            (self.owner(v) for v in operands), key=self._depth.__getitem__, default=self._floor
        )
        if self._depth[block] < self._depth[self._floor]:
            block = self._floor
        elif self._branches:
            block = self._within(block)
        op = self._place(make(), block, name)
        self._memo[key] = op.results[0]
        return op.results[0]

    def literal(self, attribute: Literal) -> SSAValue:
        """A constant, made once."""
        return self.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))

    def _within(self, block: Block) -> Block:
        """The branch in a block of a loop that is being built, if there is one."""
        depth = self._depth[block]
        while 0 < depth < len(self.blocks) - 1 and self.blocks[depth + 1] in self._branches:
            depth += 1
        return self.blocks[depth]

    def owner(self, value: SSAValue) -> Block:
        """The block that defines a value."""
        if type(value) is OpResult:
            block = value.op.parent
            assert block is not None
            return block
        assert isinstance(value, BlockArgument)
        return value.block

    def depth(self, value: int | SSAValue) -> int:
        """How many loops and branches deep a value is defined; 0 at the function's top."""
        return 0 if isinstance(value, int) else self._depth[self.owner(value)]


Predicate = bool | SSAValue

BinaryOp = arith.SignlessIntegerBinaryOperation | arith.SignlessIntegerBinaryOperationWithOverflow

INDEX = IndexType()
FAR = 1 << 30  # bytes: what is nearer is an access's own offset
_NO_FLAGS = arith.IntegerOverflowAttr("none")


class Arithmetic(Placement):
    """Appends operations to the blocks of one function; numbers stay Python numbers."""

    def __init__(self, entry: Block):
        super().__init__(entry)
        self._divisor: dict[SSAValue, int] = {}
        self._sum: dict[SSAValue, tuple[SSAValue, int]] = {}

    # --- facts --------------------------------------------------------------------------------

    def divisor(self, value: Value) -> int:
        """A number that divides the value, 1 where nothing is known; 0 for 0."""
        return abs(value) if isinstance(value, int) else self._divisor.get(value, 1)

    def parts(self, value: Value) -> tuple[Value, int]:
        """A value as the sum of another one and a number, as far as that is known."""
        return (0, value) if isinstance(value, int) else self._sum.get(value, (value, 0))

    def assume_divisor(self, value: SSAValue, divisor: int) -> None:
        """Records that a value is a multiple of `divisor`."""
        if divisor > 1:
            self._divisor[value] = divisor

    # --- numbers ------------------------------------------------------------------------------

    def constant(self, number: int) -> SSAValue:
        """An index constant as a value."""
        check_index(number, "an index")
        return self.pure(
            ("constant", number),
            (),
            lambda: arith.ConstantOp.create(
                result_types=(INDEX,), properties={"value": IntegerAttr(number, INDEX)}
            ),
        )

    def value(self, value: Value) -> SSAValue:
        """A value, also of a number."""
        return self.constant(value) if isinstance(value, int) else value

    def _binary(
        self,
        op: type[BinaryOp],
        x: Value,
        y: Value,
        name: str | None,
        commutes: bool = False,
    ) -> SSAValue:
        left, right = self.value(x), self.value(y)
        key = (op, frozenset((left, right)) if commutes and left != right else (left, right))

        def make() -> Operation:
            # past the constructor, which takes most of an operation's time
            return op.create(
                operands=(left, right),
                result_types=(left.type,),
                properties=_properties(op),
            )

        return self.pure(key, (left, right), make, name)

    def add(self, x: Value, y: Value, name: str | None = None) -> Value:
        """x + y; constants are gathered, so (x + 1) + 2 is x + 3."""
        if isinstance(x, int):
            x, y = y, x
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if y == 0:
            return x
        assert not isinstance(x, int)
        if isinstance(y, int) and x in self._sum:
            base, known = self._sum[x]
            return self.add(base, known + y, name)
        result = self._binary(arith.AddiOp, x, y, name, commutes=True)
        if isinstance(y, int):
            self._sum[result] = (x, y)
        self.assume_divisor(result, gcd(self.divisor(x), self.divisor(y)))
        return result

    def total(self, values: Sequence[Value]) -> Value:
        """The sum, formed from what is defined furthest out to what is defined furthest in."""
        result: Value = 0
        for value in sorted(values, key=self.depth):
            result = self.add(result, value)
        return result

    def sub(self, x: Value, y: Value, name: str | None = None) -> Value:
        """x - y."""
        if isinstance(y, int):
            return self.add(x, -y, name)
        if x is y:
            return 0
        return self._binary(arith.SubiOp, x, y, name)

    def mul(self, x: Value, y: Value, name: str | None = None) -> Value:
        """x * y."""
        if isinstance(x, int):
            x, y = y, x
        if isinstance(x, int) and isinstance(y, int):
            return x * y
        if y == 0:
            return 0
        if y == 1:
            return x
        divisor = self.divisor(x) * self.divisor(y)
        if isinstance(y, int) and y & (y - 1) == 0 and y > 0:
            result = self._binary(arith.ShLIOp, x, y.bit_length() - 1, name)
        else:
            result = self._binary(arith.MuliOp, x, y, name, commutes=True)
        self.assume_divisor(result, divisor)
        return result

    def div(self, x: Value, y: int, name: str | None = None) -> Value:
        """x / y rounded down, for x >= 0 and y > 0."""
        if isinstance(x, int):
            return x // y
        if y == 1:
            return x
        if y & (y - 1) == 0:
            result = self._binary(arith.ShRUIOp, x, y.bit_length() - 1, name)
        else:
            result = self._binary(arith.DivUIOp, x, y, name)
        if self.divisor(x) % y == 0:
            self.assume_divisor(result, self.divisor(x) // y)
        return result

    def shift_right(self, x: Value, y: Value) -> Value:
        """The 32 bits of x moved down by y places, 0 <= y < 32, zeros behind."""
        if isinstance(x, int) and isinstance(y, int):
            return (x & (1 << 32) - 1) >> y
        return x if y == 0 else self._binary(arith.ShRUIOp, x, y, None)

    def quotient(self, x: Value, y: int) -> Value:
        """x / y for a power of two that divides x, which may be negative."""
        if isinstance(x, int) or y == 1:
            return self.div(x, y)
        result = self._binary(arith.ShRSIOp, x, y.bit_length() - 1, None)
        self.assume_divisor(result, self.divisor(x) // y)
        return result

    def rem(self, x: Value, y: int, name: str | None = None) -> Value:
        """x mod y, for x >= 0 and y > 0."""
        if isinstance(x, int):
            return x % y
        if y == 1:
            return 0
        if y & (y - 1) == 0:
            return self._binary(arith.AndIOp, x, y - 1, name)
        return self._binary(arith.RemUIOp, x, y, name)

    def and_(self, x: Value, y: int) -> Value:
        """Bitwise and."""
        if isinstance(x, int):
            return x & y
        result = self._binary(arith.AndIOp, x, y, None)
        self.assume_divisor(result, max(_power(self.divisor(x)), _power(y)))
        return result

    def xor(self, x: Value, y: Value, name: str | None = None) -> Value:
        """Bitwise exclusive or."""
        if isinstance(x, int) and isinstance(y, int):
            return x ^ y
        if y == 0:
            return x
        if x == 0:
            return y
        if x is y:
            return 0
        result = self._binary(arith.XOrIOp, x, y, name, commutes=True)
        self.assume_divisor(result, min(_power(self.divisor(x)), _power(self.divisor(y))))
        return result

    # --- conditions ---------------------------------------------------------------------------

    def below(self, x: Value, y: Value) -> Predicate:
        """0 <= x < y, for y >= 0: one comparison without a sign.

        A sum that has wrapped around is not below either.
        """
        if isinstance(x, int) and x < 0:
            return False
        return self.compare("ult", x, y)

    def compare(self, how: str, x: Value, y: Value) -> Predicate:
        """A comparison of arith.cmpi; only eq, ne and ult (of what is not negative) fold."""
        if isinstance(x, int) and isinstance(y, int):
            return {"eq": x == y, "ne": x != y, "ult": x < y}[how]
        if x is y:
            return how == "eq"
        left, right = self.value(x), self.value(y)

        def make() -> Operation:
            return arith.CmpiOp.create(
                operands=(left, right),
                result_types=(i1,),
                properties={"predicate": _relation(how)},
            )

        return self.pure((how, left, right), (left, right), make)

    def both(self, p: Predicate, q: Predicate) -> Predicate:
        """p and q."""
        if isinstance(p, bool):
            return q if p else False
        if isinstance(q, bool):
            return p if q else False
        if p is q:
            return p
        return self._binary(arith.AndIOp, p, q, None, commutes=True)

    def either(self, p: Predicate, q: Predicate) -> Predicate:
        """p or q."""
        if isinstance(p, bool):
            return True if p else q
        if isinstance(q, bool):
            return True if q else p
        return self._binary(arith.OrIOp, p, q, None, commutes=True)

    def predicate(self, p: Predicate) -> SSAValue | None:
        """A predicate for an operation's `if`: None where it always holds."""
        if p is True:
            return None
        if p is False:
            return self.literal(IntegerAttr(0, i1))
        return p

    # --- pointers -----------------------------------------------------------------------------

    def offset(
        self, pointer: SSAValue, index: Stride, scale: int = 1, stride: Stride = 1
    ) -> tuple[SSAValue, int]:
        """pointer + index * stride * scale bytes, as a pointer and a constant to add."""
        factors, number = factors_of(times(times(index, stride), scale))
        if not factors:
            return pointer, number
        if len(factors) == 1 and factors[0] in self._sum:
            base, known = self._sum[factors[0]]
            return self._offset(pointer, (base,), number), known * number
        return self._offset(pointer, factors, number), 0

    def offset_whole(self, pointer: SSAValue, index: Value, scale: int = 1) -> SSAValue:
        """pointer + index * scale bytes, with all that there is to add in the pointer."""
        return pointer if index == 0 else self._offset(pointer, (self.value(index),), scale)

    def _offset(self, pointer: SSAValue, factors: Sequence[SSAValue], scale: int) -> SSAValue:
        """pointer + scale * all of the factors."""
        first, *others = factors
        if not others and is_s32(scale):
            key = ("offset", pointer, first, scale)
            return self.pure(key, (pointer, first), lambda: ptx.OffsetOp(pointer, first, scale))
        if len(others) == 1 and scale == 1:
            (second,) = others
            key = ("offset", pointer, first, second)
            return self.pure(
                key, (pointer, *factors), lambda: ptx.OffsetOp(pointer, first, 1, second)
            )
        if len(others) < 2:
            distance = self._widen(first) if not others else self._mul_wide(first, others[0])
            return self._offset_wide(pointer, distance, scale)
        stride = self._mul_wide(others[0], others[1])
        for factor in others[2:]:
            stride = self._mul_64(stride, self._widen(factor))
        if scale != 1:
            stride = self._mul_64(stride, self._number_64(scale))
        return self._offset_wide(pointer, self._widen(first), 1, stride)

    def moved(self, pointer: SSAValue, distance: int) -> SSAValue:
        """A pointer so many bytes further on."""
        if is_s32(distance):
            return self.offset(pointer, self.constant(distance))[0] if distance else pointer
        return self._offset_wide(pointer, self._number_64(distance), 1)

    def reachable(self, pointer: SSAValue, distance: int) -> tuple[SSAValue, int]:
        """A place as a pointer and bytes to add: as many as an access may (PTX ISA 9.2, section
        6.4.1: immediate offsets have 32 bits), and some more."""
        if is_s32(2 * distance):
            return pointer, distance
        near = distance % FAR
        return self.moved(pointer, distance - near), near

    def _offset_wide(
        self, pointer: SSAValue, distance: SSAValue, scale: int, stride: SSAValue | None = None
    ) -> SSAValue:
        key = ("offset", pointer, distance, scale, stride)
        operands = (pointer, distance) if stride is None else (pointer, distance, stride)
        return self.pure(key, operands, lambda: ptx.OffsetWideOp(*operands[:2], scale, stride))

    def _mul_wide(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.pure(("wide", frozenset((x, y))), (x, y), lambda: ptx.MulWideOp(x, y))

    def _widen(self, x: SSAValue) -> SSAValue:
        """An index in 64 bits."""
        return self.pure(("wide", x), (x,), lambda: arith.IndexCastOp(x, i64))

    def _mul_64(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._binary(arith.MuliOp, x, y, None, commutes=True)

    def _number_64(self, number: int) -> SSAValue:
        return self.literal(IntegerAttr(number, i64))

    def flip(self, pointer: SSAValue, index: Value) -> SSAValue:
        """A pointer into shared memory with bits flipped that lie below its alignment."""
        if index == 0:
            return pointer
        value = self.value(index)
        key = ("flip", pointer, value)
        return self.pure(key, (pointer, value), lambda: ptx.FlipOp(pointer, value))

    # --- values of other types ----------------------------------------------------------------

    def zero(self, type_: Attribute) -> SSAValue:
        """Zero of any scalar or vector type."""
        return self.pure(("zero", type_), (), lambda: ptx.ZeroOp(type_))

    def splat(self, scalar: SSAValue, count: int) -> SSAValue:
        """A vector of one scalar."""
        return self.pure(("splat", scalar, count), (scalar,), lambda: ptx.SplatOp(scalar, count))


def _power(number: int) -> int:
    """The largest power of two that divides a number."""
    return number & -number


def _properties(op: type[BinaryOp]) -> dict[str, Attribute]:
    """The properties an operation of this class has when none are given."""
    overflows = issubclass(op, arith.SignlessIntegerBinaryOperationWithOverflow)
    return {"overflowFlags": _NO_FLAGS} if overflows else {}


@cache
def _relation(how: str) -> IntegerAttr[IntegerType]:
    """The property by which arith.cmpi says what it compares."""
    return IntegerAttr(arith.CMPI_COMPARISON_OPERATIONS.index(how), i64)
