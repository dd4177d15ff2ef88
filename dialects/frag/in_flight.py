"""Tiles that products still write, and the tile of which nothing is known."""

from __future__ import annotations

from xdsl.ir import ParametrizedAttribute, TypeAttribute
from xdsl.irdl import IRDLOperation, irdl_attr_definition, result_def, traits_def
from xdsl.traits import NoMemoryEffect

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.awaiting import AwaitableType
from fragir.dialects.frag.types import TileType, WillBeTile
from fragir.dialects.interfaces import LayoutInterface


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


@op_definition
class UndefinedOp(IRDLOperation, LayoutInterface):
    """A tile with any contents: no register is set.

    As c of a product whose `if` does not hold it counts for nothing.
    """

    name = "frag.undefined"
    tile = result_def(TileType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "attr-dict `:` type($tile)"

    def __init__(self, tile: TileType):
        super().__init__(result_types=[tile])

    def repeats(self) -> bool:
        """What is undefined is so in every layout."""
        return True
