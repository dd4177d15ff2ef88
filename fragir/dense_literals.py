"""`dense<...>` as MLIR reads it: bits of floats in hexadecimal, one number for all elements.

xDSL takes `0x7FC00000` of an f32 for the number 2143289344, and writes all elements of a splat out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    TensorType,
)
from xdsl.parser import Parser

if TYPE_CHECKING:
    from xdsl.parser.attribute_parser import AttrParser

MOST_ELEMENTS = 1 << 16
"""Elements of a `dense<...>` that are written out; the splat of a tensor may have any number."""


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


class DenseLiterals(Parser):
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
        self.raise_error(
            f"a constant of {count} elements; the limit is {MOST_ELEMENTS}", start, self.pos
        )

    def parse_dense_int_or_fp_elements_attr(self, type: Any) -> DenseIntOrFPElementsAttr:
        """As xDSL's; a large splat keeps its one number."""
        self._is_splat, self._splat_type = False, None
        found = super().parse_dense_int_or_fp_elements_attr(type)
        if self._splat_type is None:
            return found
        return DenseIntOrFPElementsAttr(self._splat_type, found.data)
