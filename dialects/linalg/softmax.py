"""`linalg.softmax`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.linalg.structured import operands_in, print_operands, rank_of, tensors_of


@irdl_op_definition
class SoftmaxOp(IRDLOperation, MemoryInterface):
    """exp(x - max(x)) along a dimension, divided by its sum."""

    name = "linalg.softmax"
    input = operand_def(Attribute)
    output = operand_def(Attribute)
    dimension = prop_def(IntegerAttr.constr(i64))
    result = var_result_def(TensorType)

    def __init__(self, source: SSAValue, output: SSAValue, dimension: int):
        super().__init__(
            operands=[source, output],
            properties={"dimension": IntegerAttr(dimension, i64)},
            result_types=[tensors_of([output])],
        )

    def reads(self) -> Sequence[SSAValue]:
        """The input."""
        return (self.input,)

    def writes(self) -> Sequence[SSAValue]:
        """The output, where it is memory."""
        return () if self.result else (self.output,)

    def view_of(self) -> SSAValue | None:
        """A result takes the place of the output that it is made from."""
        return self.output if self.result else None

    def verify_(self) -> None:
        rank, dimension = rank_of(self.input), self.dimension.value.data
        if not 0 <= dimension < rank:
            raise VerifyException(f"{self.name}: {dimension} is no dimension of {self.input.type}")
        if self.input.type != self.output.type:
            raise VerifyException(
                f"{self.name} of {self.input.type} gives the same type, not {self.output.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        at = parser.pos
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        if len(inputs) != 1 or len(outputs) != 1:
            parser.raise_error("linalg.softmax takes one input and one output", at)
        if parser.parse_optional_punctuation("->") is not None:
            parser.parse_type()
        made = cls(inputs[0], outputs[0], dimension)
        made.attributes |= attributes
        return made

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operands(printer, "ins", [self.input])
        print_operands(printer, "outs", [self.output])
        if self.result:
            printer.print_string(" -> ")
            printer.print_attribute(self.result[0].type)
