"""`!frag.tile`: elements that the threads of a block hold together."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AnyInt,
    AttrConstraint,
    IntConstraint,
    ParamAttrConstraint,
    VerificationContext,
    irdl_attr_definition,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_bits, element_name, is_element, is_predicate
from fragir.dialects.frag.attributes import (
    OPERAND,
    SCALES,
    LayoutAttr,
    SharedAttr,
    TensorMemoryAttr,
)
from fragir.dialects.limits import tile_limit
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError
from fragir.layout import Layout

if TYPE_CHECKING:
    from typing_extensions import TypeVar

#: Dimensions of a tile.
MOST_DIMENSIONS = 4


def _numbers(extents: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    """The numbers of a list of sizes."""
    return tuple(size.data for size in extents)


@dataclass(frozen=True)
class ProductShape(AttrConstraint[ArrayAttr[IntAttr]]):
    """The extents of an operand of a product: rows, columns, and a number of products."""

    sizes: tuple[IntConstraint, IntConstraint, IntConstraint]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        extents = _numbers(cast("ArrayAttr[IntAttr]", attr))
        if len(extents) not in (2, 3):
            raise VerifyException(f"a product takes matrices, not {len(extents)} dimensions")
        for extent, size in zip((*extents, 1), self.sizes, strict=False):
            size.verify(extent, constraint_context)

    def variables(self) -> set[str]:
        return {name for size in self.sizes for name in size.variables()}

    def mapping_type_vars(
        self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]
    ) -> ProductShape:
        return self


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """Elements in one to four dimensions, in the registers of a block.

    `!frag.tile<128x64xf16>` has no layout yet; `!frag.tile<128x64xf16, #frag.mma<...>>` is placed.
    Two dimensions are rows and columns. In a product a third one counts independent matrices, which
    only m8n8k4.f16 knows: `8x4x4xf16` are the four A of its four products.
    """

    name = "frag.tile"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute
    layout: Attribute

    def __init__(
        self,
        shape: Sequence[int],
        element_type: Attribute,
        layout: LayoutAttr | NoneAttr | None = None,
    ):
        super().__init__(_extents(shape), element_type, layout or NoneAttr())

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of every dimension."""
        return _numbers(self.extents)

    @property
    def rows(self) -> int:
        """Of a matrix."""
        return self.shape[0]

    @property
    def cols(self) -> int:
        """Of a matrix."""
        return self.shape[1]

    @property
    def products(self) -> int:
        """How many matrices an operand of a product has."""
        return self.shape[2] if len(self.shape) > 2 else 1

    @property
    def placement(self) -> LayoutAttr | None:
        """The layout attribute, None for a tile that has no layout yet."""
        return self.layout if isinstance(self.layout, LayoutAttr) else None

    @property
    def element(self) -> str:
        """The PTX name of the element type."""
        return element_name(self.element_type)

    @property
    def chunk(self) -> int:
        """Elements of one fragment of a placed tile.

        Those of the layout's instruction; all that a lane holds where they have less than a byte
        and one instruction's do not fill registers, as with weights of four bits.
        """
        placement = self.placement
        assert placement is not None
        chunk = placement.chunk
        if is_predicate(self.element_type) or chunk * element_bits(self.element_type) % 32 == 0:
            return chunk
        if element_bits(self.element_type) >= 8:
            return chunk
        return self.resolve().size("element")

    def resolve(self) -> Layout:
        """The layout of a placed tile."""
        placement = self.placement
        if placement is None:
            raise FragirError(f"{self} has no layout yet", hint="run the pass frag-place first")
        return placement.layout(*self.shape)

    def goes_with(self, other: TileType) -> bool:
        """Whether the same threads may hold elements of both side by side.

        The shape is the same, and the layouts are the same function of fragments as large, or one
        tile has none yet.
        """
        mine, others = self.placement, other.placement
        if self.shape != other.shape:
            return False
        if mine is None or others is None or mine == others:
            return True
        return mine.chunk == others.chunk and (
            self.resolve().simplified() == other.resolve().simplified()
        )

    def with_layout(self, layout: LayoutAttr | None) -> TileType:
        """The same tile, placed otherwise."""
        return TileType(self.shape, self.element_type, layout)

    def with_element(self, element_type: Attribute) -> TileType:
        """The same tile of another element type."""
        return TileType(self.shape, element_type, self.placement)

    def verify(self) -> None:
        if not 1 <= len(self.shape) <= MOST_DIMENSIONS or min(self.shape) < 1:
            raise VerifyException("a tile has one to four dimensions, each of one element or more")
        if not (is_element(self.element_type) or is_predicate(self.element_type)):
            raise VerifyException(
                f"no tile holds {self.element_type}; write f16, bf16, tf32, f32, f64, f8E4M3FN, "
                "f8E5M2, f8E8M0FNU, f6E3M2FN, f6E2M3FN, f4E2M1FN, !frag.packed<f4E2M1FN>, si8, "
                "ui8, i8, si4, ui4, ui1, i1, i16, i32 or i64"
            )
        limit = tile_limit(prod(self.shape), self.element_type)
        if limit is not None:
            raise VerifyException(f"a tile of {'x'.join(map(str, self.shape))}: {limit}")
        if isinstance(self.layout, NoneAttr):
            return
        if not isinstance(self.layout, LayoutAttr):
            raise VerifyException(f"{self.layout} is no layout: write #frag.mma or #frag.layout")
        try:
            self.resolve()
        except FragirError as error:
            raise VerifyException(str(error)) from error

    @classmethod
    def constr(
        cls,
        rows: IntConstraint | None = None,
        cols: IntConstraint | None = None,
        products: IntConstraint | None = None,
        element_type: AttrConstraint | None = None,
        layout: AttrConstraint | None = None,
    ) -> AttrConstraint[TileType]:
        """A constraint that unifies the sizes of matrices, element type and layout of operands."""
        shape: AttrConstraint = AnyAttr()
        if (rows, cols, products) != (None, None, None):
            shape = ProductShape((rows or AnyInt(), cols or AnyInt(), products or AnyInt()))
        return ParamAttrConstraint(cls, (shape, element_type or AnyAttr(), layout or AnyAttr()))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            position = parser.pos
            shape, element_type = parser.parse_ranked_shape()
            if not 1 <= len(shape) <= MOST_DIMENSIONS or min(shape) < 1:
                parser.raise_error(
                    "a tile's shape is one to four sizes, all static, like 128x64", position
                )
            layout: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(","):
                layout = parser.parse_attribute()
        return _extents(shape), element_type, layout

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, self.shape)) + "x")
            printer.print_attribute(self.element_type)
            if not isinstance(self.layout, NoneAttr):
                printer.print_string(", ")
                printer.print_attribute(self.layout)


def _extents(shape: Sequence[int]) -> ArrayAttr[IntAttr]:
    return ArrayAttr(IntAttr(size) for size in shape)


def is_shared(type_: Attribute) -> bool:
    """Whether a memref lies in shared memory."""
    return is_memref(type_) and isinstance(type_.memory_space, SharedAttr)


def is_tensor_memory(type_: Attribute) -> bool:
    """Whether a memref lies in tensor memory."""
    return is_memref(type_) and isinstance(type_.memory_space, TensorMemoryAttr)


def holds_scales(type_: Attribute) -> bool:
    """Whether a memref lies in tensor memory and holds scales of blocks."""
    return is_tensor_memory(type_) and memref_type(type_).memory_space == TensorMemoryAttr(SCALES)


def holds_operand(type_: Attribute) -> bool:
    """Whether a memref lies in tensor memory and holds an operand of products."""
    return is_tensor_memory(type_) and memref_type(type_).memory_space == TensorMemoryAttr(OPERAND)


class WillBeTile(abc.ABC):
    """A type of values that will be a tile, and are carried as its registers."""

    tile: TileType


def held_tile(type_: Attribute) -> TileType | None:
    """The tile that values of a type are, or will be when products in flight are done."""
    if isinstance(type_, TileType):
        return type_
    return type_.tile if isinstance(type_, WillBeTile) else None


def tile_of(value: SSAValue) -> TileType:
    """The tile that a value is, or will be, as an operand's constraint has checked."""
    tile = held_tile(value.type)
    assert tile is not None
    return tile
