"""Texts of MLIR in time and memory that grow with the text alone: xDSL's lexer, `dense<...>`.

xDSL's own expressions for strings and comments go back over what they have read: a quote that is
missing takes time exponential in the length of the line, and 50 MB of comments 6 GB. The
expressions here give nothing back that they have taken (possessive quantifiers).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, TensorType
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Position, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRToken

from fragir.mlir.resources import Resources

if TYPE_CHECKING:
    from xdsl.parser.attribute_parser import AttrParser


# -- mlir lexer ------------------------------------------------------------------------------------

_ESCAPE = r'\\(?:["nt\\]|[0-9A-Fa-f]{2})'
_INSIDE = rf'(?:[^"\\\n\v\f]++|{_ESCAPE})*+'

_INTEGER_TYPE = re.compile(r"[su]?i([0-9]+)")
MOST_BITS = 4096
"""The widest integer type that is read; no instruction knows more than 128 bits."""

_WIDE_FLOATS = ("f80", "f128")


class Lexer(MLIRLexer):
    """As MLIRLexer; a string or name that cannot be read is told at its place."""

    _whitespace_regex = re.compile(r"(?:\s++|//[^\n]*+)*+", re.ASCII)
    _unescaped_characters_regex = re.compile(f'"{_INSIDE}"')
    _opened = re.compile(f'"{_INSIDE}')

    def _lex_bare_identifier(self, start_pos: Position) -> MLIRToken:
        token = super()._lex_bare_identifier(start_pos)
        found = _INTEGER_TYPE.fullmatch(token.span.text) if len(token.span) > 4 else None
        if found is not None and (len(found[1]) > 6 or int(found[1]) > MOST_BITS):
            # xDSL computes with 2 to the power of the width
            words = f"an integer of {found[1]} bits; the limit is {MOST_BITS}"
            raise ParseError(token.span, words)
        if len(token.span) in (3, 4) and token.span.text in _WIDE_FLOATS:
            # xDSL reads them, and can neither compute with nor print numbers of these types
            words = f"{token.span.text} is no type of a GPU; the widest float is f64"
            raise ParseError(token.span, words)
        return token

    def _lex_string_literal(self, start_pos: Position) -> MLIRToken:
        text = self.input.content
        found = self._opened.match(text, start_pos)
        assert found is not None  # a quote stands there
        end = found.end()
        if text[end : end + 1] == "\\":
            escape = Span(end, end + 2, self.input)
            raise ParseError(escape, r"no escape in a string: there are \" \\ \n \t and \41")
        if text[end : end + 1] != '"':
            raise ParseError(
                Span(start_pos, end, self.input), "this string is not closed on its line"
            )
        return super()._lex_string_literal(start_pos)

    def _lex_prefixed_ident(self, start_pos: Position) -> MLIRToken:
        if self._suffix_id.match(self.input.content, self.pos) is None:
            sign = self.input.content[start_pos]
            place = Span(start_pos, start_pos + 1, self.input)
            raise ParseError(place, f"a name or number is missing behind {sign}")
        return super()._lex_prefixed_ident(start_pos)


# -- dense literals --------------------------------------------------------------------------------
# `dense<...>` as MLIR reads it: bits of floats in hexadecimal, one number for all elements.
#
# xDSL takes `0x7FC00000` of an f32 for the number 2143289344, and writes all elements of a splat
# out.

MOST_ELEMENTS = 1 << 16
"""Elements of a `dense<...>` that are written out one by one; those in hexadecimal, and the splat
of a tensor, may have any number."""


@dataclass
class _Bits(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """A number that was written in hexadecimal: of a float its bits."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        """As xDSL's, but for floats."""
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        size, bits = type.compile_time_size, self.value
        assert isinstance(bits, int)
        if self.is_negative or bits >= 1 << 8 * size:
            parser.raise_error(f"{type} has {8 * size} bits, written without a sign", self.span)
        return type.unpack(bits.to_bytes(size, "little"), 1)[0]


class DenseLiterals(Resources):
    """Reads the elements of constants."""

    _is_splat = False
    _splat_type: Any = None

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        found = super()._parse_tensor_literal_element()
        if "0x" not in found.span.text:
            return found
        return _Bits(found.is_negative, found.value, found.span)

    def _parse_tensor_literal(self):
        found = super()._parse_tensor_literal()
        self._is_splat = not found[1]
        return found

    def _parse_dense_literal_type(self):
        start = self.pos
        type_ = super()._parse_dense_literal_type()
        count = prod(type_.get_shape())
        if count <= MOST_ELEMENTS:
            return type_
        if self._is_splat and isinstance(type_, TensorType):
            self._splat_type = type_
            return TensorType(type_.element_type, [1])
        words = f"a constant of {count} elements; at most {MOST_ELEMENTS} are written out"
        self.raise_error(f'{words}, dense<"0x..."> may have any number', start, self.pos)

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """As xDSL's; a large splat keeps its one number."""
        self._is_splat, self._splat_type = False, None
        found = super().parse_dense_int_or_fp_elements_attr(type)
        if self._splat_type is None:
            return found
        return DenseIntOrFPElementsAttr(self._splat_type, found.data)
