"""`!frag.tile`: a matrix that the threads of a block hold together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, IntAttrConstraint, NoneAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    AnyInt,
    AttrConstraint,
    IntConstraint,
    ParamAttrConstraint,
    irdl_attr_definition,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_name, is_element
from fragir.dialects.frag.attributes import LayoutAttr, SharedAttr
from fragir.dialects.limits import tile_limit
from fragir.dialects.narrow import is_memref
from fragir.errors import FragirError
from fragir.layout import Layout


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """A matrix of rows x cols elements in the registers of a block.

    `!frag.tile<128x64xf16>` has no layout yet; `!frag.tile<128x64xf16, #frag.mma<...>>` is placed.
    A third number counts independent matrices, which only m8n8k4.f16 knows: `8x4x4xf16` are the
    four A of its four products.
    """

    name = "frag.tile"
    rows: IntAttr
    cols: IntAttr
    products: IntAttr
    element_type: Attribute
    layout: Attribute

    def __init__(
        self,
        shape: Sequence[int],
        element_type: Attribute,
        layout: LayoutAttr | NoneAttr | None = None,
    ):
        rows, cols, products = (*shape, 1)[:3]
        super().__init__(
            IntAttr(rows), IntAttr(cols), IntAttr(products), element_type, layout or NoneAttr()
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, cols), or (rows, cols, products) where there are several."""
        shape = (self.rows.data, self.cols.data, self.products.data)
        return shape[:2] if shape[2] == 1 else shape

    @property
    def placement(self) -> LayoutAttr | None:
        """The layout attribute, None for a tile that has no layout yet."""
        return self.layout if isinstance(self.layout, LayoutAttr) else None

    @property
    def element(self) -> str:
        """The PTX name of the element type."""
        return element_name(self.element_type)

    def resolve(self) -> Layout:
        """The layout of a placed tile."""
        placement = self.placement
        if placement is None:
            raise FragirError(f"{self} has no layout yet", hint="run the pass frag-place first")
        return placement.layout(self.rows.data, self.cols.data, self.products.data)

    def with_layout(self, layout: LayoutAttr | None) -> TileType:
        """The same tile, placed otherwise."""
        return TileType(self.shape, self.element_type, layout)

    def with_element(self, element_type: Attribute) -> TileType:
        """The same tile of another element type."""
        return TileType(self.shape, element_type, self.placement)

    def verify(self) -> None:
        if min(self.rows.data, self.cols.data, self.products.data) < 1:
            raise VerifyException("a tile has at least one row and one column")
        if not is_element(self.element_type):
            raise VerifyException(
                f"no tile holds {self.element_type}; write f16, bf16, tf32, f32, f64, f8E4M3FN, "
                "f8E5M2, f8E8M0FNU, f6E3M2FN, f6E2M3FN, f4E2M1FN, !frag.packed<f4E2M1FN>, si8, "
                "ui8, i8, si4, ui4, ui1 or i32"
            )
        limit = tile_limit(self.rows.data * self.cols.data * self.products.data, self.element_type)
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
        """A constraint that unifies shape, element type and layout between operands."""
        return ParamAttrConstraint(
            cls,
            (
                IntAttrConstraint(rows or AnyInt()),
                IntAttrConstraint(cols or AnyInt()),
                IntAttrConstraint(products or AnyInt()),
                element_type or AnyAttr(),
                layout or AnyAttr(),
            ),
        )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            position = parser.pos
            shape, element_type = parser.parse_ranked_shape()
            if len(shape) not in (2, 3) or min(shape) < 1:
                parser.raise_error(
                    "a tile's shape is ROWSxCOLS or ROWSxCOLSxPRODUCTS, all static", position
                )
            layout: Attribute = NoneAttr()
            if parser.parse_optional_punctuation(","):
                layout = parser.parse_attribute()
        rows, cols, products = (*shape, 1)[:3]
        return IntAttr(rows), IntAttr(cols), IntAttr(products), element_type, layout

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("x".join(map(str, self.shape)) + "x")
            printer.print_attribute(self.element_type)
            if not isinstance(self.layout, NoneAttr):
                printer.print_string(", ")
                printer.print_attribute(self.layout)


def is_shared(type_: Attribute) -> bool:
    """Whether a memref lies in shared memory."""
    return is_memref(type_) and isinstance(type_.memory_space, SharedAttr)
