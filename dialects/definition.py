"""Definitions of operations whose assembly format is read when it is first used.

`irdl_op_definition` compiles the string `assembly_format` of an operation when its module is
imported. That takes 0.4 ms an operation, and a process that compiles one program parses and prints
few of them: one that ends at PTX prints none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.utils.exceptions import PyRDLOpDefinitionError

if TYPE_CHECKING:
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser
    from xdsl.printer import Printer

OpT = TypeVar("OpT", bound=IRDLOperation)
Operands: TypeAlias = Sequence[SSAValue | Sequence[SSAValue] | None]


class QuickOperation(IRDLOperation):
    """An operation that is made many times in every kernel.

    IRDL's constructor, which finds out which operand is a list and which is left out, takes most of
    an operation's time. Here at most one operand may be a list or be left out; without one,
    and without a property that is None, an operation is as if `create` had made it.
    """

    def __init__(
        self,
        *,
        operands: Operands = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        flat: list[SSAValue] = []
        for operand in operands:
            if isinstance(operand, OpResult | BlockArgument):
                flat.append(operand)
            elif operand is not None:
                flat += cast("Sequence[SSAValue]", operand)
        given: dict[str, Attribute] = {}
        for name, value in (properties or {}).items():
            if value is not None:
                given[name] = value
        Operation.__init__(self, operands=flat, result_types=result_types, properties=given)


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
