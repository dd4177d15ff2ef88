"""What a kernel says of its tiles while it runs: print and assert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, eq, operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import NoElementError, element_name
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import LayoutInterface

#: How a printed element is written, by its PTX type: C's format.
FORMATS = {
    **dict.fromkeys(("f16", "bf16", "tf32"), "%.5g"),
    "f32": "%.8g",
    "f64": "%.16g",
    **dict.fromkeys(("s8", "u8", "s32", "pred"), "%d"),
    "u32": "%u",
    "s64": "%lld",
}
_NUMBERS: dict[Attribute, str] = {IndexType(): "s32", i64: "s64"}  # of no tile
BLOCK = 3  # numbers that say which block prints
MOST = 32  # arguments of one printf (CUDA C++ Programming Guide, "Formatted Output")


class Reporting(LayoutInterface):
    """An operation that prints values: for each element of its tiles, or once a block."""

    def reported(self) -> Sequence[SSAValue]:
        """What is printed."""
        raise NotImplementedError

    def tiles(self) -> list[SSAValue]:
        """Its tiles, of one shape, which walk together."""
        return [value for value in self.operands if isinstance(value.type, TileType)]

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """All tiles."""
        return (self.tiles(),)

    def check_reported(self, text: str) -> None:
        """VerifyException for tiles of several shapes, and for what printf cannot print."""
        tiles = [tile_of(tile) for tile in self.tiles()]
        for tile in tiles[1:]:
            if not tile.goes_with(tiles[0]):
                raise VerifyException(
                    f"{self.name}: {tiles[0]} and {tile} differ in shape or layout"
                )
        for value in self.reported():
            _check_printable(self.name, value.type)
        dims = len(tiles[0].shape) if tiles else 0
        if len(self.reported()) + dims + BLOCK > MOST:
            raise VerifyException(
                f"{self.name}: {len(self.reported())} values are more than one line takes, "
                f"{MOST - BLOCK - dims}"
            )
        if "\0" in text:
            raise VerifyException(f"{self.name}: a text has no zero byte")


def kind_of(type_: Attribute) -> str:
    """The PTX type of what is printed; "" where it has none that printf knows."""
    element = type_.element_type if isinstance(type_, TileType) else type_
    if element in _NUMBERS:
        return _NUMBERS[element]
    try:
        name = element_name(element)
    except NoElementError:
        return ""
    return name if name in FORMATS else ""


def _check_printable(name: str, type_: Attribute) -> None:
    if isinstance(type_, MemRefType):
        raise VerifyException(f"{name}: values are tiles and numbers; load a tile of {type_}")
    if not kind_of(type_):
        raise VerifyException(f"{name}: {type_} is not printed; cast it to f32 or i32 before")


@op_definition
class PrintOp(IRDLOperation, Reporting):
    """Prints a line for each element of its tiles, with the element's place and the block.

    `x[3, 5] = 1.5, 2 (block 0, 0, 0)`: the text, where the element stands, the element of each tile
    and the scalars, and the block. Tiles have one shape; without a tile there is one line a block.
    An element that several threads hold is printed by one. Lines come in no order.
    """

    name = "frag.print"
    text = prop_def(StringAttr)
    values = var_operand_def(AnyAttr())
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$text (`,` $values^)? attr-dict (`:` type($values)^)?"

    def __init__(self, text: str, values: Sequence[SSAValue | Operation] = ()):
        super().__init__(operands=[values], properties={"text": StringAttr(text)})

    def reported(self) -> Sequence[SSAValue]:
        """All operands."""
        return self.values

    def verify_(self) -> None:
        self.check_reported(self.text.data)


@op_definition
class AssertOp(IRDLOperation, Reporting):
    """Ends the launch with an error unless a condition holds, of a tile for every element.

    What does not hold is printed first as by `frag.print`, with the place in the program, and with
    `values`, tiles of the condition's shape and scalars.
    """

    name = "frag.assert"
    condition = operand_def(TileType.constr(element_type=eq(i1)) | eq(i1))
    values = var_operand_def(AnyAttr())
    text = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$condition `,` $text (`,` $values^)? attr-dict `:` type($condition) (`,` type($values)^)?"
    )

    def __init__(
        self,
        condition: SSAValue | Operation,
        text: str,
        values: Sequence[SSAValue | Operation] = (),
    ):
        super().__init__(operands=[condition, values], properties={"text": StringAttr(text)})

    def reported(self) -> Sequence[SSAValue]:
        """What is printed where the condition does not hold."""
        return self.values

    def verify_(self) -> None:
        self.check_reported(self.text.data)
        if self.tiles() and not isinstance(self.condition.type, TileType):
            raise VerifyException(
                "frag.assert: the condition is one for the block, the values are a tile; "
                "frag.fill makes a tile of it"
            )
