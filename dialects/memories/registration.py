"""The dialect `memref` of fragir's own contexts. Stock tools of xDSL do not see it."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import MemRefType, UnrankedMemRefType
from xdsl.dialects.memref import CastOp, CopyOp, MemRef
from xdsl.ir import Attribute
from xdsl.parser import Parser

from fragir.dialects.catalogue import of_dialect
from fragir.late_dialect import LateDialect

MEMREF = LateDialect(
    "memref",
    of_dialect("memref"),
    early=[op for op in MemRef.operations if op not in (CastOp, CopyOp)],
    early_attributes=MemRef.attributes,
)


# -- readers ---------------------------------------------------------------------------------------
# `memref.cast` and `memref.copy` as MLIR prints them. They are printed in the generic form.


class CastReader(CastOp):
    """`memref.cast %a : memref<4xf32> to memref<?xf32>`."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """A `memref.cast` of xDSL."""
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        before, after = _memory(parser), _after(parser)
        made = CastOp.get(parser.resolve_operand(source, before), after)
        made.attributes |= attributes
        return made

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        """A `memref.cast` of xDSL."""
        return CastOp.create(*args, **kwargs)


class CopyReader(CopyOp):
    """`memref.copy %a, %b : memref<4xf32> to memref<4xf32>`."""

    @classmethod
    def parse(cls, parser: Parser) -> Any:
        """A `memref.copy` of xDSL."""
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        destination = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        before, after = _memory(parser), _after(parser)
        made = CopyOp(
            parser.resolve_operand(source, before), parser.resolve_operand(destination, after)
        )
        made.attributes |= attributes
        return made

    @classmethod
    def create(cls, *args: Any, **kwargs: Any) -> Any:
        """A `memref.copy` of xDSL."""
        return CopyOp.create(*args, **kwargs)


def _after(parser: Parser) -> Any:
    parser.parse_keyword("to")
    return _memory(parser)


def _memory(parser: Parser) -> Any:
    at = parser.pos
    type_: Attribute = parser.parse_type()
    if isinstance(type_, MemRefType | UnrankedMemRefType):
        return cast("Any", type_)
    parser.raise_error("a memref expected here", at)
