"""`tensor.pack` and `tensor.unpack`, which later versions of MLIR call `linalg.pack` and `unpack`:
a tensor as tiles of the same size behind each other, and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.narrow import integers

Tensor = TensorType[Attribute]


class Packing(IRDLOperation):
    """What both have: `tiles[j]` elements of dimension `positions[j]` are a tile's dimension j; the
    outer dimensions count tiles, in the order that `outer_dims_perm` says.
    """

    outer_dims_perm = prop_def(DenseArrayBase)
    inner_dims_pos = prop_def(DenseArrayBase)
    static_inner_tiles = prop_def(DenseArrayBase)
    result = result_def(TensorType)

    @property
    def positions(self) -> list[int]:
        """The dimension that each dimension of a tile divides."""
        return integers(self.inner_dims_pos)

    @property
    def tiles(self) -> list[int]:
        """How large a tile is along its dimensions."""
        return integers(self.static_inner_tiles)

    @property
    def order(self) -> list[int]:
        """The dimension of the unpacked tensor that each outer one counts along."""
        given = integers(self.outer_dims_perm)
        return given or list(range(len(self.unpacked.get_shape())))

    @property
    def unpacked(self) -> Tensor:
        """The type without tiles."""
        raise NotImplementedError

    @property
    def packed(self) -> Tensor:
        """The type with tiles."""
        raise NotImplementedError

    def tile_of(self, dim: int) -> int | None:
        """How many elements of a dimension a tile has; None where tiles do not divide it."""
        return dict(zip(self.positions, self.tiles, strict=True)).get(dim)

    def verify_(self) -> None:
        rank, positions = len(self.unpacked.get_shape()), self.positions
        if sorted(self.order) != list(range(rank)):
            raise VerifyException(f"{self.name}: outer_dims_perm orders {rank} dimensions")
        if len({*positions}) < len(positions) or not all(0 <= p < rank for p in positions):
            raise VerifyException(f"{self.name}: inner_dims_pos are dimensions of {rank}")
        if len(positions) != len(self.tiles) or any(size < 1 for size in self.tiles):
            raise VerifyException(f"{self.name}: inner_tiles has a size for each of inner_dims_pos")
        if self.into.type != self.result.type:
            raise VerifyException(f"{self.name} gives the type that it writes into")
        shape = self.packed.get_shape()
        if len(shape) != rank + len(positions) or list(shape[rank:]) != self.tiles:
            raise VerifyException(f"{self.name}: {self.packed} does not end in its tiles")
        for at, dim in enumerate(self.order):
            count, size, tile = shape[at], self.unpacked.get_shape()[dim], self.tile_of(dim) or 1
            if count >= 0 and size >= 0 and count != -(-size // tile):
                raise VerifyException(f"{self.name}: {size} by {tile} is not {count} tiles")

    @property
    def operand_of(self) -> SSAValue:
        """The tensor that is packed or unpacked."""
        return self.operands[0]

    @property
    def into(self) -> SSAValue:
        """The tensor whose place the result takes."""
        return self.operands[1]

    # --- text ---------------------------------------------------------------------------------

    @classmethod
    def parse_lists(cls, parser: Parser) -> list[list[int]]:
        lists: list[list[int]] = [[]]
        if parser.parse_optional_keyword("outer_dims_perm"):
            lists = [_list(parser)]
        for word in ("inner_dims_pos", "inner_tiles"):
            parser.parse_keyword(word)
            lists.append(_list(parser))
        return lists

    def print_lists(self, printer: Printer) -> None:
        names = ("outer_dims_perm", "inner_dims_pos", "inner_tiles")
        given = (self.outer_dims_perm, self.inner_dims_pos, self.static_inner_tiles)
        for name, numbers in zip(names, given, strict=True):
            if integers(numbers):
                printer.print_string(f" {name} = {integers(numbers)}")
        printer.print_string(" into ")
        printer.print_ssa_value(self.into)
        printer.print_string(" : ")
        printer.print_attribute(self.operand_of.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TensorPackOp(Packing):
    """Tiles of a tensor; where a last one is not full it has `padding_value`."""

    name = "tensor.pack"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    padding_value = opt_operand_def(Attribute)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def unpacked(self) -> Tensor:
        return cast("Tensor", self.source.type)

    @property
    def packed(self) -> Tensor:
        return self.result.type

    @classmethod
    def parse(cls, parser: Parser) -> TensorPackOp:
        source, padding = parser.parse_unresolved_operand(), list[SSAValue]()
        if parser.parse_optional_keyword("padding_value"):
            with parser.in_parens():
                value = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                padding = [parser.resolve_operand(value, parser.parse_type())]
        return _made(cls, parser, source, cls.parse_lists(parser), [padding])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        if self.padding_value is not None:
            printer.print_string(" padding_value(")
            printer.print_ssa_value(self.padding_value)
            printer.print_string(" : ")
            printer.print_attribute(self.padding_value.type)
            printer.print_string(")")
        self.print_lists(printer)


@irdl_op_definition
class TensorUnpackOp(Packing):
    """A tensor of its tiles; what the last ones have too much is left out."""

    name = "tensor.unpack"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)

    @property
    def unpacked(self) -> Tensor:
        return self.result.type

    @property
    def packed(self) -> Tensor:
        return cast("Tensor", self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> TensorUnpackOp:
        source = parser.parse_unresolved_operand()
        return _made(cls, parser, source, cls.parse_lists(parser), [])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        self.print_lists(printer)


PackingT = TypeVar("PackingT", bound=Packing)


def _made(
    kind: type[PackingT],
    parser: Parser,
    source: UnresolvedOperand,
    lists: Sequence[Sequence[int]],
    more: Sequence[Sequence[SSAValue]],
) -> PackingT:
    """What follows the lists, and the operation."""
    parser.parse_keyword("into")
    dest = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    source_type = parser.parse_type()
    parser.parse_punctuation("->")
    result = parser.parse_type()
    names = ("outer_dims_perm", "inner_dims_pos", "static_inner_tiles")
    return kind.build(
        operands=[
            parser.resolve_operand(source, source_type),
            parser.resolve_operand(dest, result),
            *more,
        ],
        properties={
            name: DenseArrayBase.from_list(i64, list(numbers))
            for name, numbers in zip(names, lists, strict=True)
        },
        result_types=[result],
    )


def _list(parser: Parser) -> list[int]:
    parser.parse_punctuation("=")
    at = parser.pos
    numbers = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parser.parse_optional_integer()
    )
    if any(number is None for number in numbers):
        parser.raise_error("sizes of tiles are numbers here, not values", at)
    return [DYNAMIC_INDEX if number is None else number for number in numbers]
