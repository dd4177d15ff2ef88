"""`linalg.pack`, `linalg.unpack`, `tensor.generate`, `tensor.reshape`.

Tensors in tiles, of what a region gives, and in the shape that another tensor says.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    MemRefType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.shorthands import integers

Shaped = TensorType[Attribute] | MemRefType


class Packing(IRDLOperation, MemoryInterface):
    """What both have: `tiles[j]` elements of dimension `positions[j]` are a tile's dimension j; the
    outer dimensions count tiles, in the order that `outer_dims_perm` says.

    A result takes the place of the tensor `dest`; memory has none.
    """

    outer_dims_perm = prop_def(DenseArrayBase)
    inner_dims_pos = prop_def(DenseArrayBase)
    static_inner_tiles = prop_def(DenseArrayBase)
    result = var_result_def(TensorType)

    @property
    def operand_of(self) -> SSAValue:
        """The tensor or memory that is packed or unpacked."""
        return self.operands[0]

    @property
    def into(self) -> SSAValue:
        """The tensor whose place the result takes, or the memory that is written."""
        return self.operands[1]

    def reads(self) -> Sequence[SSAValue]:
        """The source."""
        return (self.operand_of,)

    def writes(self) -> Sequence[SSAValue]:
        """The destination, where it is memory."""
        return () if self.result else (self.into,)

    def view_of(self) -> SSAValue | None:
        """A result takes the place of the destination."""
        return self.into if self.result else None

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
    def unpacked(self) -> Shaped:
        """The type without tiles."""
        raise NotImplementedError

    @property
    def packed(self) -> Shaped:
        """The type with tiles."""
        raise NotImplementedError

    def tile_of(self, dim: int) -> int | None:
        """How many elements of a dimension a tile has; None where tiles do not divide it."""
        return dict(zip(self.positions, self.tiles, strict=True)).get(dim)

    def verify_(self) -> None:
        kinds = [type(value.type) for value in (self.operand_of, self.into)]
        known, words = [TensorType], "two tensors"
        if self.name.startswith("linalg."):
            known, words = [TensorType, MemRefType], "two tensors, or two memrefs,"
        if kinds[0] is not kinds[1] or kinds[0] not in known:
            raise VerifyException(
                f"{self.name} takes {words} of known rank, "
                f"not {self.operand_of.type} and {self.into.type}"
            )
        if [value.type for value in self.result] != [self.into.type][: kinds[0] is TensorType]:
            raise VerifyException(f"{self.name} gives the type that it writes into")
        rank, positions = len(self.unpacked.get_shape()), self.positions
        if sorted(self.order) != list(range(rank)):
            raise VerifyException(f"{self.name}: outer_dims_perm orders {rank} dimensions")
        if len({*positions}) < len(positions) or not all(0 <= p < rank for p in positions):
            raise VerifyException(f"{self.name}: inner_dims_pos are dimensions of {rank}")
        if len(positions) != len(self.tiles) or any(size < 1 for size in self.tiles):
            raise VerifyException(f"{self.name}: inner_tiles has a size for each of inner_dims_pos")
        shape = self.packed.get_shape()
        if len(shape) != rank + len(positions) or list(shape[rank:]) != self.tiles:
            raise VerifyException(f"{self.name}: {self.packed} does not end in its tiles")
        for at, dim in enumerate(self.order):
            count, size, tile = shape[at], self.unpacked.get_shape()[dim], self.tile_of(dim) or 1
            if count >= 0 and size >= 0 and count != -(-size // tile):
                raise VerifyException(f"{self.name}: {size} by {tile} is not {count} tiles")

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
        printer.print_attribute(self.into.type)


class PacksInTiles(Packing):
    """Tiles of a tensor; where a last one is not full it has `padding_value`."""

    source = operand_def(Attribute)
    dest = operand_def(Attribute)
    padding_value = opt_operand_def(Attribute)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def unpacked(self) -> Shaped:
        return cast("Shaped", self.source.type)

    @property
    def packed(self) -> Shaped:
        return cast("Shaped", self.dest.type)

    @classmethod
    def parse(cls, parser: Parser) -> PacksInTiles:
        source, padding = parser.parse_unresolved_operand(), list[SSAValue]()
        if parser.parse_optional_keyword("padding_value"):
            with parser.in_parens():
                value = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                padding = [parser.resolve_operand(value, parser.parse_type())]
        return _finish_packing(cls, parser, source, cls.parse_lists(parser), [padding])

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


class UnpacksTiles(Packing):
    """A tensor of its tiles; what the last ones have too much is left out."""

    source = operand_def(Attribute)
    dest = operand_def(Attribute)

    @property
    def unpacked(self) -> Shaped:
        return cast("Shaped", self.dest.type)

    @property
    def packed(self) -> Shaped:
        return cast("Shaped", self.source.type)

    @classmethod
    def parse(cls, parser: Parser) -> UnpacksTiles:
        source = parser.parse_unresolved_operand()
        return _finish_packing(cls, parser, source, cls.parse_lists(parser), [])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        self.print_lists(printer)


@irdl_op_definition
class LinalgPackOp(PacksInTiles):
    """Tiles of a tensor or of memory."""

    name = "linalg.pack"


@irdl_op_definition
class LinalgUnpackOp(UnpacksTiles):
    """A tensor or memory of its tiles."""

    name = "linalg.unpack"


@irdl_op_definition
class TensorPackOp(PacksInTiles):
    """Tiles of a tensor."""

    name = "tensor.pack"


@irdl_op_definition
class TensorUnpackOp(UnpacksTiles):
    """A tensor of its tiles."""

    name = "tensor.unpack"


PackingT = TypeVar("PackingT", bound=Packing)


def _finish_packing(
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
        result_types=[[] if isinstance(result, MemRefType) else [result]],
    )


def _list(parser: Parser) -> list[int]:
    def number() -> int:
        found = parser.parse_optional_integer()
        if found is None:
            parser.raise_error(
                "a number expected here: sizes of tiles that are values are not read"
            )
        return found

    parser.parse_punctuation("=")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, number)


# -- generating ------------------------------------------------------------------------------------
# `tensor.generate`: a tensor of what a region gives at each place.


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """Its operands are the sizes that the type leaves open."""

    name = "tensor.generate"
    sizes = var_operand_def(IndexType)
    body = region_def("single_block")
    result = result_def(TensorType)

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        if shape.count(DYNAMIC_INDEX) != len(self.sizes):
            raise VerifyException(f"{self.name} takes a size for each that {shape} leaves open")
        if [argument.type for argument in self.body.block.args] != [IndexType()] * len(shape):
            raise VerifyException(f"{self.name}: its region takes an index a dimension")

    @classmethod
    def parse(cls, parser: Parser) -> GenerateOp:
        given = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        sizes = [parser.resolve_operand(value, IndexType()) for value in given or ()]
        body = parser.parse_region()
        parser.parse_punctuation(":")
        return cls.build(operands=[sizes], regions=[body], result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        if self.sizes:
            printer.print_string(" ")
            printer.print_list(self.sizes, printer.print_ssa_value)
        printer.print_string(" ")
        printer.print_region(self.body)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class TensorReshapeOp(IRDLOperation):
    """The elements of a tensor in the shape that a tensor of integers says.

    `tensor.reshape %x(%shape) : (tensor<?x6xf32>, tensor<2xi64>) -> tensor<2x?xf32>`
    """

    name = "tensor.reshape"
    source = operand_def(TensorType)
    shape = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `(` $shape `)` attr-dict `:` `(` type($source) `,` type($shape) `)` `->` "
        "type($result)"
    )

    def verify_(self) -> None:
        """Elements are as many as before, as far as their number is known."""
        source, result = (cast("Any", x.type) for x in (self.source, self.result))
        rank = cast("Any", self.shape.type).get_shape()
        if source.element_type != result.element_type:
            raise VerifyException("the elements of source and result have one type")
        if rank not in ((len(result.get_shape()),), (DYNAMIC_INDEX,)):
            raise VerifyException("the shape has a number for each dimension of the result")
        shapes = source.get_shape(), result.get_shape()
        if DYNAMIC_INDEX not in (*shapes[0], *shapes[1]) and prod(shapes[0]) != prod(shapes[1]):
            raise VerifyException("source and result have the same number of elements")
