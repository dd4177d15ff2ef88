"""How the types behind a product's operands stand in its text."""

from __future__ import annotations

from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer


@irdl_custom_directive
class Accumulators(CustomDirective):
    """The types of c and metadata, and behind `->` that of d unless it is c's."""

    c: TypeDirective
    metadata: TypeDirective
    d: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        type_ = parser.parse_type()
        self.c.set(state, (type_,))
        self.metadata.set_empty(state)
        if parser.parse_optional_punctuation(","):
            self.metadata.parse(parser, state)
        self.d.set(state, (type_,))
        if parser.parse_optional_punctuation("->"):
            self.d.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.c.print(printer, state, op)
        if self.metadata.is_present(op):
            printer.print_string(", ")
            printer.print_list(self.metadata.get(op), printer.print_attribute)
        if self.d.get(op) != self.c.get(op):
            printer.print_string(" -> ")
            printer.print_list(self.d.get(op), printer.print_attribute)
