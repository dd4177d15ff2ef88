"""Tiles of places: where an element stands in its tile."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, eq, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.pointwise import elementwise_cost
from fragir.dialects.frag.types import TileType
from fragir.dialects.interfaces import LayoutInterface, Threads


@op_definition
class IotaOp(IRDLOperation, LayoutInterface):
    """Every element's place along a dimension of the tile, i32 from 0 on."""

    name = "frag.iota"
    dim = prop_def(IntegerAttr.constr(i64))
    tile = result_def(TileType.constr(element_type=eq(i32)))
    traits = traits_def(Pure())
    assembly_format = "`dim` $dim attr-dict `:` type($tile)"

    def __init__(self, dim: int, tile: TileType):
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[tile])

    @property
    def along(self) -> int:
        """The number of the dimension."""
        return self.dim.value.data

    def verify_(self) -> None:
        if not 0 <= self.along < len(self.tile.type.shape):
            raise VerifyException(f"frag.iota: {self.tile.type} has no dimension {self.along}")

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """An instruction for each place."""
        return elementwise_cost(self.tile, layouts[self.tile], 1)

    def repeats(self) -> bool:
        """Always."""
        return True
