"""How lists of numbers stand in the text of operations: `[0, 32]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from fragir.dialects.narrow import integers


@irdl_custom_directive
class Numbers(CustomDirective):
    """A property that is a list of whole numbers, in brackets; one that is optional may be away."""

    numbers: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        self.numbers.set(state, numbers(found))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        attribute = self.numbers.get(op)
        assert isinstance(attribute, DenseArrayBase)
        printer.print_string(brackets(integers(cast("DenseArrayBase[Any]", attribute))))

    def is_present(self, op: IRDLOperation) -> bool:
        return self.numbers.get(op) is not None

    def is_anchorable(self) -> bool:
        return True


def numbers(given: Sequence[int]) -> DenseArrayBase[Any]:
    """A list of numbers as a property."""
    return DenseArrayBase.from_list(i64, list(given))


def brackets(given: Sequence[int]) -> str:
    """The text of a list of numbers."""
    return f"[{', '.join(map(str, given))}]"
