"""The dialect `linalg` of fragir's own contexts: xDSL's, and ours in the place of what it lacks.

Stock tools of xDSL do not see it: a second dialect of a name would break them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import AffineMapAttr, IndexType, TensorType
from xdsl.dialects.linalg import Linalg, attrs, ops
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.parser import AttrParser, Parser

from fragir.dialects.catalogue import of_dialect
from fragir.late_dialect import LateDialect

# -- generic results -------------------------------------------------------------------------------
# Several results of `linalg.generic` as MLIR prints them: `-> (T, T)`; xDSL reads `-> T, T`.

T = TypeVar("T")


class GenericReader(ops.GenericOp):
    """Stands for xDSL's class in fragir's contexts, and makes operations of that class."""

    @classmethod
    def parse(cls, parser: Parser) -> ops.GenericOp:
        return ops.GenericOp.parse(cast("Parser", _Results(parser)))

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        return ops.GenericOp.create(*args, **kwargs)


class FillReader(ops.FillOp):
    """The same of `linalg.fill`, which xDSL has of integers and floats: of index, a generic."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        text, start = parser.lexer.input.content, parser.pos
        if _OF_INDEX.match(text, start) is None:
            return ops.FillOp.parse(parser)
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        given = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation(")")
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        name = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        into = parser.resolve_operand(name, parser.parse_type())
        parser.parse_punctuation(")")
        if parser.parse_optional_punctuation("->") is not None:
            parser.parse_type()
        return cls._filled(given, into)

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        operands: Sequence[SSAValue] = kwargs.get("operands", ())
        if len(operands) == 2 and isinstance(operands[0].type, IndexType):
            return cls._filled(*operands)
        return ops.FillOp.create(*args, **kwargs)

    @staticmethod
    def _filled(value: SSAValue, into: SSAValue) -> ops.GenericOp:
        shaped: Any = into.type
        block = Block(arg_types=[shaped.element_type])
        block.add_op(ops.YieldOp(value))
        rank = len(shaped.get_shape())
        results: list[Attribute] = [shaped] if isinstance(shaped, TensorType) else []
        return ops.GenericOp(
            [],
            [into],
            Region(block),
            [AffineMapAttr(AffineMap.identity(rank))],
            [attrs.IteratorTypeAttr.parallel()] * rank,
            results,
        )


_OF_INDEX = re.compile(r"\s*ins\s*\(\s*%[\w.$-]+\s*:\s*index\s*\)")


class _Results:
    """A parser that takes a list of types in parentheses where one without is asked for."""

    def __init__(self, parser: Parser):
        self._parser = parser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def parse_comma_separated_list(
        self, delimiter: AttrParser.Delimiter, parse: Callable[[], T], context: str = ""
    ) -> list[T]:
        parser = self._parser
        if delimiter is parser.Delimiter.NONE and parse == parser.parse_attribute:
            in_parentheses = parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parse, context
            )
            if in_parentheses is not None:
                return in_parentheses
        return parser.parse_comma_separated_list(delimiter, parse, context)


KEPT = frozenset(f"linalg.{name}" for name in ("generic", "yield", "index", "fill", "transpose"))
"""What xDSL reads as MLIR prints it."""
_ROOM = "fragir.dialects.linalg"


class LinalgDialect(LateDialect):
    """Operations by the table of `named_table`, which is imported when one of them is asked for."""

    def find(self, name: str) -> type[Operation] | None:
        self.late = names()
        return super().find(name)


@cache
def names() -> dict[str, str]:
    """Where the class of each operation is that is not early."""
    from fragir.dialects.linalg.named_table import class_name, meanings

    table = f"{_ROOM}.named_table"
    named = {f"linalg.{name}": f"{table}:{class_name(name)}" for name in meanings()}
    return {**named, **LINALG.late}


_READERS = {"linalg.generic": GenericReader, "linalg.fill": FillReader}
LINALG = LinalgDialect(
    "linalg",
    of_dialect("linalg"),
    {
        "linalg.type_fn": f"{_ROOM}.scalar_bodies:TypeFnAttr",
        "linalg.elementwise_kind": f"{_ROOM}.scalar_bodies:ElementwiseKindAttr",
    },
    early=[_READERS.get(op.name, op) for op in Linalg.operations if op.name in KEPT],
    early_attributes=[attrs.IteratorTypeAttr],
)
