"""Which operation an operator or function becomes, by the type of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.builder.places import fail
from fragir.builder.types import condition, f32, index, is_float, s32, type_name
from fragir.dialects.elements import element_bits

Make: TypeAlias = Callable[..., Operation]
Insert: TypeAlias = Callable[[Operation], SSAValue]


@dataclass(frozen=True)
class TypedOperations:
    """The operations for floats, for integers (None: there is none) and for indices."""

    floats: Make | None
    integers: Make | None
    indices: Make | None = None
    conditions: Make | None = None
    compares: bool = False

    def choose(self, type_: Attribute) -> Make | None:
        """The operation on operands of this type."""
        if type_ == condition:
            return self.conditions
        if is_float(type_):
            return self.floats
        if type_ == index:
            return self.indices or self.integers
        # arith takes signless integers only; ui8 and the like are for memory and products
        return self.integers if element_bits(type_) >= 16 else None


def _compare(floats: str, integers: str) -> TypedOperations:
    def of_floats(x: SSAValue, y: SSAValue) -> Operation:
        return arith.CmpfOp(x, y, floats)

    def of_integers(x: SSAValue, y: SSAValue) -> Operation:
        return arith.CmpiOp(x, y, integers)

    return TypedOperations(of_floats, of_integers, compares=True)


FUNCTIONS: dict[str, TypedOperations] = {
    "+": TypedOperations(arith.AddfOp, arith.AddiOp),
    "-": TypedOperations(arith.SubfOp, arith.SubiOp),
    "*": TypedOperations(arith.MulfOp, arith.MuliOp),
    "/": TypedOperations(arith.DivfOp, None),
    "//": TypedOperations(None, arith.FloorDivSIOp, arith.DivUIOp),
    "%": TypedOperations(None, None, arith.RemUIOp),
    "&": TypedOperations(None, arith.AndIOp, conditions=arith.AndIOp),
    "|": TypedOperations(None, arith.OrIOp, conditions=arith.OrIOp),
    "^": TypedOperations(None, arith.XOrIOp, conditions=arith.XOrIOp),
    "<<": TypedOperations(None, arith.ShLIOp),
    ">>": TypedOperations(None, arith.ShRSIOp),
    "max": TypedOperations(arith.MaximumfOp, arith.MaxSIOp),
    "min": TypedOperations(arith.MinimumfOp, arith.MinSIOp),
    "<": _compare("olt", "slt"),
    "<=": _compare("ole", "sle"),
    ">": _compare("ogt", "sgt"),
    ">=": _compare("oge", "sge"),
    "==": _compare("oeq", "eq"),
    "!=": _compare("une", "ne"),  # true for NaN, as in Python
    "neg": TypedOperations(arith.NegfOp, None),
    "abs": TypedOperations(math.AbsFOp, math.AbsIOp),
    "exp": TypedOperations(math.ExpOp, None),
    "exp2": TypedOperations(math.Exp2Op, None),
    "log": TypedOperations(math.LogOp, None),
    "log2": TypedOperations(math.Log2Op, None),
    "log10": TypedOperations(math.Log10Op, None),
    "log1p": TypedOperations(math.Log1pOp, None),
    "expm1": TypedOperations(math.ExpM1Op, None),
    "erf": TypedOperations(math.ErfOp, None),
    "pow": TypedOperations(math.PowFOp, math.IPowIOp),
    "cbrt": TypedOperations(math.CbrtOp, None),
    "sinh": TypedOperations(math.SinhOp, None),
    "cosh": TypedOperations(math.CoshOp, None),
    "tan": TypedOperations(math.TanOp, None),
    "asin": TypedOperations(math.AsinOp, None),
    "acos": TypedOperations(math.AcosOp, None),
    "atan": TypedOperations(math.AtanOp, None),
    "atan2": TypedOperations(math.Atan2Op, None),
    "asinh": TypedOperations(math.AsinhOp, None),
    "acosh": TypedOperations(math.AcoshOp, None),
    "atanh": TypedOperations(math.AtanhOp, None),
    "copysign": TypedOperations(math.CopySignOp, None),
    "count_ones": TypedOperations(None, math.CtPopOp),
    "leading_zeros": TypedOperations(None, math.CountLeadingZerosOp),
    "trailing_zeros": TypedOperations(None, math.CountTrailingZerosOp),
    "sqrt": TypedOperations(math.SqrtOp, None),
    "rsqrt": TypedOperations(math.RsqrtOp, None),
    "tanh": TypedOperations(math.TanhOp, None),
    "sin": TypedOperations(math.SinOp, None),
    "cos": TypedOperations(math.CosOp, None),
    "floor": TypedOperations(math.FloorOp, None),
    "ceil": TypedOperations(math.CeilOp, None),
    "round": TypedOperations(math.RoundEvenOp, None),
    "trunc": TypedOperations(math.TruncOp, None),
    "fma": TypedOperations(math.FmaOp, None),
}
# -x and ~x of integers have no operation of their own: 0 - x, x ^ -1
REWRITTEN: dict[str, tuple[str, int, bool]] = {"neg": ("-", 0, True), "~": ("^", -1, False)}


def has_no_modulo(function: str, type_: Attribute) -> bool:
    """Whether this is Python's `%` of signed integers: x - x // y * y, where `//` rounds down."""
    return function == "%" and type_ != index and FUNCTIONS["//"].choose(type_) is not None


def check(function: str, type_: Attribute) -> None:
    """An error at the user's line where there is no such function of this type."""
    if function == "select" or (function in REWRITTEN and not is_float(type_)):
        return
    known = FUNCTIONS.get(function)
    if known is None or known.choose(type_) is None:
        if function in ("//", "%"):
            hint = "it is for integers; / divides floats"
        elif function == "/":
            hint = "cast to f32 first; // divides integers"
        elif type_ == condition:
            hint = "conditions take & | ^ ~, select and if_"
        else:
            hint = "cast first"
        fail(f"there is no {function} of {type_name(type_)}", hint)


def result_type(function: str, type_: Attribute) -> Attribute:
    """The type of a function's result for operands of a type."""
    known = FUNCTIONS.get(function)
    return condition if known is not None and known.compares else type_


def build(function: str, operands: Sequence[SSAValue], fastmath: Sequence[str] = ()) -> Operation:
    """The operation for operands whose types have been checked, with flags where it takes any."""
    if function == "select":
        return arith.SelectOp(*operands)
    make = FUNCTIONS[function].choose(operands[0].type)
    assert make is not None
    op = make(*operands)
    if fastmath and "fastmath" in op.properties:
        flags = [FastMathFlag(flag) for flag in fastmath]
        op.properties["fastmath"] = arith.FastMathFlagsAttr(flags)
    return op


def attribute(number: float, type_: Any) -> FloatAttr | IntegerAttr:
    """A Python number as a constant of a type; an error where the type has no such number."""
    if is_float(type_):
        try:
            return FloatAttr(float(number), type_)
        except OverflowError:
            fail(f"this number is larger than any {type_name(type_)}")
    if isinstance(number, float):
        fail(f"{number} is no {type_name(type_)}", "write a whole number, or cast to f32")
    if type_ == condition:
        return IntegerAttr(int(number != 0), type_)
    bits = element_bits(type_)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        shown = number if abs(number) < 10**40 else "a huge number"
        fail(f"{shown} does not fit {type_name(type_)} ({bits} bits)")
    return IntegerAttr(number, type_)


def cast(value: SSAValue, target: Any, insert: Insert) -> SSAValue:
    """A scalar in another type; an error at the user's line where there is no such conversion."""
    source = value.type
    if source == target:
        return value
    from_float, to_float = is_float(source), is_float(target)
    if from_float and to_float:
        return _float_to_float(value, target, insert)
    if index in (source, target):
        other = target if source == index else source
        if other == s32:
            return insert(arith.IndexCastOp(value, target))
        if other != condition:
            return cast(cast(value, s32, insert), target, insert)
    if from_float and target != condition:
        return insert(arith.FPToSIOp(value, target))
    if to_float:
        if source == condition:
            value = cast(value, s32, insert)
        return insert(arith.SIToFPOp(value, target))
    if source == condition and target != index:
        return insert(arith.ExtUIOp(value, target))
    if target == condition or index in (source, target):
        fail(f"there is no cast from {type_name(source)} to {type_name(target)}", "compare")
    if element_bits(source) < element_bits(target):
        return insert(arith.ExtSIOp(value, target))
    return insert(arith.TruncIOp(value, target))


def _float_to_float(value: SSAValue, target: Any, insert: Insert) -> SSAValue:
    before, after = element_bits(value.type), element_bits(target)
    if before < after:
        return insert(arith.ExtFOp(value, target))
    if before > after:
        return insert(arith.TruncFOp(value, target))
    if before == 32:
        fail("a scalar has no cast between f32 and tf32", "cast the tile")
    return _float_to_float(insert(arith.ExtFOp(value, f32)), target, insert)
