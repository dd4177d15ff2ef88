"""The first rows of a memory."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.types import is_shared
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.narrow import is_memref, memref_type


@op_definition
class HeadOp(IRDLOperation, MemoryInterface):
    """A memory up to some row: what follows lies outside, where masked accesses do nothing.

        %rows = frag.head %c to %end : memref<?x64xf32>

    The result has %end in place of the first size, at most as many as there are, and all else of
    the memory in global memory.
    """

    name = "frag.head"
    memory = operand_def(MemRefType)
    end = operand_def(IndexType)
    result = result_def(MemRefType)
    traits = traits_def(NoMemoryEffect())

    def __init__(self, memory: SSAValue | Operation, end: SSAValue | Operation):
        memory = SSAValue.get(memory)
        super().__init__(
            operands=[memory, end], result_types=[open_ended(memref_type(memory.type))]
        )

    def view_of(self) -> SSAValue:
        """The memory."""
        return self.memory

    @classmethod
    def parse(cls, parser: Parser) -> HeadOp:
        memory = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        end = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        if not is_memref(type_):
            parser.raise_error(f"frag.head takes memory, not {type_}", position)
        op = cls(
            parser.resolve_operand(memory, type_),
            parser.resolve_operand(end, IndexType()),
        )
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memory)
        printer.print_string(" to ")
        printer.print_ssa_value(self.end)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memory.type)

    def verify_(self) -> None:
        memory = memref_type(self.memory.type)
        if is_shared(memory) or not memory.get_shape():
            raise VerifyException(
                f"{self.name}: global memory of one dimension or more has first rows, not {memory}"
            )
        if self.result.type != open_ended(memory):
            raise VerifyException(
                f"{self.name}: the result is {open_ended(memory)}, not {self.result.type}"
            )


def open_ended(memory: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The type of memory whose first size is known at run time only."""
    shape = (DYNAMIC_INDEX, *memory.get_shape()[1:])
    return MemRefType(memory.element_type, shape, memory.layout, memory.memory_space)
