"""Bodies of named operations: what one computes of elements, with arith and math."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_bits


class ScalarBody:
    """A body that is written, front to back."""

    def __init__(self, block: Block, unsigned: bool):
        self._block, self.unsigned = block, unsigned

    def put(self, op: Operation) -> SSAValue:
        """Adds an operation; its result."""
        self._block.add_op(op)
        return op.results[0]

    def cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """A number as another type has it (MLIR, `convertScalarToDtype`)."""
        old = value.type
        if old == type_:
            return value
        if is_float(type_):
            if is_float(old):
                wider = element_bits(type_) > element_bits(old)
                same = element_bits(type_) == element_bits(old)
                if same:  # f16 and bf16 by f32
                    return self.cast(self.cast(value, _F32), type_)
                return self.put((arith.ExtFOp if wider else arith.TruncFOp)(value, type_))
            return self.put(
                (arith.UIToFPOp if self._is_unsigned(old) else arith.SIToFPOp)(
                    value, cast("AnyFloat", type_)
                )
            )
        if is_float(old):
            return self.put(
                (arith.FPToUIOp if self._is_unsigned(type_) else arith.FPToSIOp)(
                    value, cast("IntegerType", type_)
                )
            )
        if isinstance(old, IndexType) or isinstance(type_, IndexType):
            return self.put(arith.IndexCastOp(value, type_))
        if element_bits(old) > element_bits(type_):
            return self.put(arith.TruncIOp(value, cast("IntegerType", type_)))
        kind = arith.ExtUIOp if self._is_unsigned(old) else arith.ExtSIOp
        return self.put(kind(value, cast("IntegerType", type_)))

    def _is_unsigned(self, type_: Attribute) -> bool:
        return self.unsigned or element_bits(type_) == 1

    def number(self, value: float, type_: Attribute) -> SSAValue:
        """A constant."""
        if is_float(type_):
            return self.put(arith.ConstantOp(FloatAttr(value, cast("AnyFloat", type_))))
        return self.put(arith.ConstantOp(IntegerAttr(int(value), cast("IntegerType", type_))))

    def of_two(self, name: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """A function of two numbers of one type, by its name in `TWO`."""
        of_floats, signed, unsigned = TWO[name]
        kind = of_floats if is_float(x.type) else unsigned if self.unsigned else signed
        if kind is None:
            raise ValueError(f"{name} of {x.type} is not defined")
        return self.put(kind(x, y))


_F32 = Float32Type()
Two = Callable[[SSAValue, SSAValue], Operation]
TWO: dict[str, tuple[Two | None, Two | None, Two | None]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "sub": (arith.SubfOp, arith.SubiOp, arith.SubiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "div": (arith.DivfOp, arith.DivSIOp, arith.DivUIOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
    "powf": (math.PowFOp, None, None),
}
"""For floats, integers with a sign, and without."""
ONE: dict[str, Callable[[SSAValue], Operation]] = {
    "exp": math.ExpOp,
    "log": math.LogOp,
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "floor": math.FloorOp,
    "negf": arith.NegfOp,
    "round": math.RoundOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "tanh": math.TanhOp,
    "erf": math.ErfOp,
}


def is_float(type_: Attribute) -> bool:
    """Whether numbers of a type are floats."""
    return not isinstance(type_, IntegerType | IndexType)


def one(name: str) -> Callable[[ScalarBody, Sequence[SSAValue]], SSAValue]:
    """A function of one input, in the type of the output."""

    def body(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
        x = to.cast(args[0], args[-1].type)
        if name == "square":
            return to.of_two("mul", x, x)
        if name == "reciprocal":
            return to.of_two("div", to.number(1.0, x.type), x)
        if name == "abs" and not is_float(x.type):
            return to.put(math.AbsIOp(x))
        if not is_float(x.type):
            raise ValueError(f"{name} of {x.type} is not defined")
        return to.put(ONE[name](x))

    return body


def two(name: str) -> Callable[[ScalarBody, Sequence[SSAValue]], SSAValue]:
    """A function of two inputs, in the type of the output."""

    def body(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
        x, y = (to.cast(value, args[-1].type) for value in args[:2])
        return to.of_two(name, x, y)

    return body


def select(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
    """The second input where the first holds, else the third."""
    x, y = (to.cast(value, args[-1].type) for value in args[1:3])
    return to.put(arith.SelectOp(args[0], x, y))


def copy_element(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
    """The input in the type of the output."""
    return to.cast(args[0], args[-1].type)


def product(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
    """`old + x y`."""
    x, y = (to.cast(value, args[-1].type) for value in args[:2])
    return to.of_two("add", args[-1], to.of_two("mul", x, y))


def quantized_product(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
    """`old + (x - x0) (y - y0)`."""
    x, y, x0, y0 = (to.cast(value, args[-1].type) for value in args[:4])
    factors = to.of_two("sub", x, x0), to.of_two("sub", y, y0)
    return to.of_two("add", args[-1], to.of_two("mul", *factors))


def pooling(name: str) -> Callable[[ScalarBody, Sequence[SSAValue]], SSAValue]:
    """A window's elements combined; the second input only says how large it is."""

    def body(to: ScalarBody, args: Sequence[SSAValue]) -> SSAValue:
        return to.of_two(name, args[-1], to.cast(args[0], args[-1].type))

    return body


# -- cast attributes -------------------------------------------------------------------------------
# Attributes of linalg that xDSL lacks: how inputs are cast, which elementwise function.


class _WordAttr(Data[str]):
    """One of some words, `#linalg.name<word>`."""

    WORDS: ClassVar[frozenset[str]]

    def verify(self) -> None:
        if self.data not in self.WORDS:
            raise VerifyException(
                f"#{self.name} has no {self.data}; there are {', '.join(sorted(self.WORDS))}"
            )

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@irdl_attr_definition
class TypeFnAttr(_WordAttr):
    """How inputs are cast to the type of the output."""

    name = "linalg.type_fn"
    WORDS = frozenset(("cast_signed", "cast_unsigned"))

    @property
    def is_unsigned(self) -> bool:
        return self.data == "cast_unsigned"


@irdl_attr_definition
class ElementwiseKindAttr(_WordAttr):
    """What `linalg.elementwise` computes."""

    name = "linalg.elementwise_kind"
    WORDS = frozenset(
        "exp log abs ceil floor negf reciprocal round sqrt rsqrt square tanh erf add sub mul div "
        "div_unsigned max_signed min_signed max_unsigned min_unsigned powf select".split()
    )
