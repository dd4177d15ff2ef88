"""Definitions of operations whose assembly format is read when it is first used.

`irdl_op_definition` compiles the string `assembly_format` of an operation when its module is
imported. That takes 0.4 ms an operation, and a process that compiles one program parses and prints
few of them: one that ends at PTX prints none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i32
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, irdl_op_definition
from xdsl.traits import HasCanonicalizationPatternsTrait
from xdsl.utils.exceptions import PyRDLOpDefinitionError

from fragir.late_dialect import ROWS, import_named

if TYPE_CHECKING:
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser
    from xdsl.pattern_rewriter import RewritePattern
    from xdsl.printer import Printer

OpT = TypeVar("OpT", bound=IRDLOperation)
SEGMENTS = AttrSizedOperandSegments.attribute_name
Operands: TypeAlias = Sequence[SSAValue | Sequence[SSAValue] | None]


@lru_cache(maxsize=256)
def operand_segments(*sizes: int) -> DenseArrayBase[IntegerType]:
    """The property of an operation with optional operands that says how many it has of each."""
    return DenseArrayBase.from_list(i32, sizes)


class QuickOperation(IRDLOperation):
    """An operation that is made many times in every kernel.

    IRDL's constructor takes most of an operation's time. This one, too, takes operands as values,
    lists of values or None, and leaves out properties that are None; it does not look whether they
    are as many as the definition has. Segments of operands, where it has some, are a property.
    """

    def __init__(
        self,
        *,
        operands: Operands = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        flat: list[SSAValue] = []
        sizes: list[int] = []
        for operand in operands:
            if isinstance(operand, OpResult | BlockArgument):
                flat.append(operand)
                sizes.append(1)
            else:
                several = () if operand is None else cast("Sequence[SSAValue]", operand)
                flat += several
                sizes.append(len(several))
        given: dict[str, Attribute] = {}
        for name, value in (properties or {}).items():
            if value is not None:
                given[name] = value
        if self.get_irdl_definition().options:
            given[SEGMENTS] = operand_segments(*sizes)
        Operation.__init__(self, operands=flat, result_types=result_types, properties=given)


Simpler: TypeAlias = list[SSAValue | Operation]
"""For each result of an operation what is to stand in its place: a value, or an operation to be
added, with a result of the same type."""


class Canonical(HasCanonicalizationPatternsTrait):
    """Of an operation that stock `canonicalize` replaces by what a function finds, or leaves where
    that gives None: column `patterns` of its row, counted from the package of its class."""

    def get_patterns(self, op: type[Operation]) -> tuple[RewritePattern, ...]:
        place = ROWS[op.name].place("patterns", op.__module__.rpartition(".")[0])
        assert place is not None
        return (_pattern(import_named(":".join(place))),)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return ()


@cache
def _pattern(simpler: Callable[[Operation], Simpler | None]) -> RewritePattern:
    from xdsl.pattern_rewriter import PatternRewriter, RewritePattern  # few processes need it

    class Simplified(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
            found = simpler(op)
            if found is not None:
                new = [each for each in found if isinstance(each, Operation)]
                values = [SSAValue.get(each) for each in found]
                assert [value.type for value in values] == list(op.result_types), op.name
                rewriter.replace(op, new, values)

    return Simplified()


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
