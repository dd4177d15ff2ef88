"""Tiles that products still write, and the tile of which nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.awaiting import AwaitableType
from fragir.dialects.frag.linear import LinearUse, carried, named
from fragir.dialects.frag.types import TileType, WillBeTile, held_tile, tile_of
from fragir.dialects.interfaces import LayoutInterface, OperandAt, Tile


@irdl_attr_definition
class InFlightType(ParametrizedAttribute, TypeAttribute, WillBeTile, AwaitableType):
    """The accumulator of products under way: `!frag.in_flight<!frag.tile<64x64xf32>>`.

    Its registers may not be touched before `frag.await`. It goes as c to another product, which is
    then added to the same registers, or is carried by scf.for, scf.while and scf.if.
    """

    name = "frag.in_flight"
    tile: TileType

    def awaited(self) -> TileType:
        """The tile."""
        return self.tile


def check_in_flight(tile: SSAValue) -> None:
    """VerifyException unless a tile in flight, wherever it is carried, goes to one operation.

    What is not awaited is never there; and as a product adds to its registers where they are, there
    is no copy of it for a second one. Of an operation that is not part of a program yet nothing is
    known.
    """
    if isinstance(tile.owner, Operation) and tile.owner.parent is None:
        return
    for value in carried(tile):
        LinearUse(value, named(value, tile, _WHAT), "frag.await", _WHAT).check()


_WHAT = "tile in flight"


@op_definition
class UndefinedOp(IRDLOperation, LayoutInterface):
    """A tile, or a tile in flight, with any contents: no register is set.

    As c of a product whose `if` does not hold it counts for nothing.
    """

    name = "frag.undefined"
    tile = result_def()
    traits = traits_def(NoMemoryEffect())
    assembly_format = "attr-dict `:` type($tile)"

    def __init__(self, tile: TileType | InFlightType):
        super().__init__(result_types=[tile])

    def verify_(self) -> None:
        if held_tile(self.tile.type) is None:
            raise VerifyException(
                f"frag.undefined is a tile or a tile in flight, not {self.tile.type}"
            )
        if isinstance(self.tile.type, InFlightType):
            check_in_flight(self.tile)

    def repeats(self) -> bool:
        """What is undefined is so in every layout."""
        return True


@op_definition
class InFlightOp(IRDLOperation, LayoutInterface):
    """A tile as one in flight, to which no product adds yet: what a loop's sum begins with."""

    name = "frag.in_flight"
    tile = operand_def(TileType)
    result = result_def(InFlightType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation):
        tile = SSAValue.get(tile, type=TileType)
        super().__init__(operands=[tile], result_types=[InFlightType(tile.type)])

    def same_layout(self) -> Iterator[Sequence[Tile]]:
        """Both are the same registers."""
        yield OperandAt(self, 0), self.result

    def verify_(self) -> None:
        if self.result.type != InFlightType(tile_of(self.tile)):
            raise VerifyException(f"frag.in_flight of {self.tile.type} is not {self.result.type}")
        check_in_flight(self.result)
