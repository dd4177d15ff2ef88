"""arith on whole tensors, where xDSL's classes take scalars alone: comparisons, choices, casts.

    %c = arith.cmpf ogt, %x, %y : tensor<4x8xf32>
    %s = arith.select %c, %x, %y : tensor<4x8xi1>, tensor<4x8xf32>
    %i = arith.fptosi %s : tensor<4x8xf32> to tensor<4x8xi32>

Each computes an element of its result from the elements at the same place. They are printed in the
generic form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


class OnTensors(IRDLOperation):
    """An operation of arith on tensors of one shape; what is no tensor is the same for all."""

    inputs = var_operand_def()
    predicate = opt_prop_def(IntegerAttr)
    fastmath = opt_prop_def(arith.FastMathFlagsAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @property
    def scalar(self) -> type[Operation]:
        """The class of the same on elements."""
        return next(one for one in _READ if one.name == self.name)

    def verify_(self) -> None:
        """The tensors have one shape, and the operation on their elements is one."""
        every: list[Any] = [*self.inputs.types, self.result.type]
        shapes = {one.get_shape() for one in every if isinstance(one, TensorType)}
        if len(shapes) != 1:
            raise VerifyException(f"{self.name} takes tensors of one shape")
        block = Block(arg_types=[element_of(value.type) for value in self.inputs])
        one = self.scalar.create(
            operands=block.args,
            result_types=[element_of(self.result.type)],
            properties=self.properties,
        )
        one.verify()


def element_of(type_: Attribute) -> Attribute:
    """The type of a tensor's elements, or that of a scalar."""
    return cast("Any", type_).element_type if isinstance(type_, TensorType) else type_


def _comparison(parser: Parser, scalar: Any) -> Read:
    at = parser.pos
    predicates = (arith.CMPI_COMPARISON_OPERATIONS, arith.CMPF_COMPARISON_OPERATIONS)
    known = predicates[scalar is arith.CmpfOp]
    word = parser.parse_identifier()
    if word not in known:
        parser.raise_error(f"{word} is no predicate of {scalar.name}", at, parser.pos)
    parser.parse_punctuation(",")
    operands = _operands(parser)
    type_ = parser.parse_type()
    shape = type_.get_shape() if isinstance(type_, TensorType) else ()
    result = TensorType(i1, shape)
    return operands, [type_, type_], result, {"predicate": IntegerAttr(known.index(word), i64)}


def _choice(parser: Parser, scalar: Any) -> Read:
    operands = _operands(parser)
    first = parser.parse_type()
    if parser.parse_optional_punctuation(",") is None:
        return operands, [i1, first, first], first, {}
    second = parser.parse_type()
    return operands, [first, second, second], second, {}


def _cast(parser: Parser, scalar: Any) -> Read:
    operands = _operands(parser)
    source = parser.parse_type()
    parser.parse_keyword("to")
    return operands, [source], parser.parse_type(), {}


def _operands(parser: Parser) -> list[Any]:
    found = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(",") is not None:
        found.append(parser.parse_unresolved_operand())
    if parser.parse_optional_keyword("fastmath") is not None:
        arith.FastMathFlagsAttr.parse_parameter(parser)
    parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return found


Read = tuple[list[Any], list[Attribute], Any, dict[str, Attribute]]
"""Operands, their types, the type of the result, properties."""
_READ: dict[type[Operation], Callable[[Parser, Any], Read]] = {
    **dict.fromkeys((arith.CmpiOp, arith.CmpfOp), _comparison),
    arith.SelectOp: _choice,
    **dict.fromkeys((arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp), _cast),
    **dict.fromkeys((arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp, arith.FPToUIOp), _cast),
}
"""How each is read on tensors, by the class of the same on scalars."""


@cache
def on_tensors(scalar: type[Operation]) -> type[OnTensors]:
    """The class of an operation on tensors, by that of the same on scalars."""
    name = f"{scalar.__name__}OnTensors"
    body = {"name": scalar.name, "__doc__": OnTensors.__doc__}
    return irdl_op_definition(type(name, (OnTensors,), body))


def reader_of(scalar: type[Operation]) -> type[Operation]:
    """What reads an operation: of scalars as one of xDSL's, of tensors as one of these."""
    read = _READ[scalar]

    def parse(parser: Parser) -> Operation:
        start, text = parser.pos, parser.lexer.input.content
        end = text.find("\n", start)
        if "tensor<" not in text[start : end if end >= 0 else len(text)]:
            return scalar.parse(parser)
        operands, types, result, properties = read(parser, scalar)
        if not isinstance(result, TensorType):  # a comment spoke of one
            parser._resume_from(start)  # pyright: ignore[reportPrivateUsage]
            return scalar.parse(parser)
        if len(operands) != len(types):
            parser.raise_error(f"{scalar.name} takes {len(types)} operands", start, parser.pos)
        pairs = zip(operands, types, strict=True)
        given: list[SSAValue] = [parser.resolve_operand(x, type_) for x, type_ in pairs]
        wide = on_tensors(scalar)
        types = [cast("Attribute", result)]
        return wide.create(operands=given, result_types=types, properties=properties)

    def create(*args: Any, **kwargs: Any) -> Operation:
        types: Sequence[Attribute] = kwargs.get("result_types", ())
        tensors = any(isinstance(type_, TensorType) for type_ in types)
        return (on_tensors(scalar) if tensors else scalar).create(*args, **kwargs)

    body = {"name": scalar.name, "parse": staticmethod(parse), "create": staticmethod(create)}
    return type(f"{scalar.__name__}Reader", (scalar,), body)


READERS = {one.name: reader_of(one) for one in _READ}
