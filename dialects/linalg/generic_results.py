"""Several results of `linalg.generic` as MLIR prints them: `-> (T, T)`; xDSL reads `-> T, T`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from xdsl.dialects.linalg import ops
from xdsl.parser import AttrParser, Parser

T = TypeVar("T")


class GenericReader(ops.GenericOp):
    """Stands for xDSL's class in fragir's contexts, and makes operations of that class."""

    @classmethod
    def parse(cls, parser: Parser) -> ops.GenericOp:
        return ops.GenericOp.parse(cast("Parser", _Results(parser)))

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        return ops.GenericOp.create(*args, **kwargs)


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
