"""`tensor.generate`: a tensor of what a region gives at each place."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """Its operands are the sizes that the type leaves open."""

    name = "tensor.generate"
    sizes = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        if shape.count(DYNAMIC_INDEX) != len(self.sizes):
            raise VerifyException(f"{self.name} takes a size for each that {shape} leaves open")
        if [argument.type for argument in self.body.block.args] != [IndexType()] * len(shape):
            raise VerifyException(f"{self.name}: its region takes an index a dimension")

    @classmethod
    def parse(cls, parser: Parser) -> GenerateOp:
        given = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        sizes = [parser.resolve_operand(value, IndexType()) for value in given or ()]
        body = parser.parse_region()
        parser.parse_punctuation(":")
        return cls.build(operands=[sizes], regions=[body], result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        if self.sizes:
            printer.print_string(" ")
            printer.print_list(self.sizes, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)
