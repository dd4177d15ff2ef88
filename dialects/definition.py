"""Definitions of operations whose assembly format is read when it is first used.

`irdl_op_definition` compiles the string `assembly_format` of an operation when its module is
imported. That takes 0.4 ms an operation, and a process that compiles one program parses and prints
few of them: one that ends at PTX prints none.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.utils.exceptions import PyRDLOpDefinitionError

if TYPE_CHECKING:
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser
    from xdsl.printer import Printer

OpT = TypeVar("OpT", bound=IRDLOperation)


def op_definition(cls: type[OpT]) -> type[OpT]:
    """`irdl_op_definition`, but a mistake in the assembly format shows at its first use.

    The operation is like any other afterwards: its definition has the format, and `parse` and
    `print` are methods of the class.
    """
    text = cls.assembly_format
    if text is None:
        return irdl_op_definition(cls)
    if "parse" in vars(cls) or "print" in vars(cls):
        raise PyRDLOpDefinitionError(
            f"{cls.__name__} has an assembly format and a parse or print method: keep one"
        )
    cls.assembly_format = None
    irdl_op_definition(cls)
    definition = cls.get_irdl_definition()
    cls.assembly_format = definition.assembly_format = text

    @cache
    def program() -> FormatProgram:
        from xdsl.irdl.declarative_assembly_format import FormatProgram

        return FormatProgram.from_str(text, definition)

    def parse(cls: type[OpT], parser: Parser) -> OpT:
        return program().parse(parser, cls)

    def print(self: IRDLOperation, printer: Printer) -> None:
        program().print(printer, self)

    setattr(cls, "parse", classmethod(parse))
    setattr(cls, "print", print)
    return cls
