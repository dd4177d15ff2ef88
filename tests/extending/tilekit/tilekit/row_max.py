"""An operation on tiles, with its layouts and its lowering to lanes; its meaning has a row."""

from collections.abc import Iterator
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

import fragir.dialects.interfaces as interfaces
from fragir.dialects import frag
from fragir.errors import FragirError


@irdl_op_definition
class RowMaxOp(IRDLOperation, interfaces.LayoutInterface, interfaces.LaneInterface):
    """Every element of a tile of floats becomes the largest of its row."""

    name = "kit.row_max"
    source = operand_def(frag.TileType)
    result = result_def(frag.TileType)
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def same_layout(self) -> Iterator[tuple[SSAValue, ...]]:
        yield self.source, self.result

    def lower_to_lanes(self, lanes: Any) -> None:
        def larger(x: SSAValue, y: SSAValue) -> SSAValue:
            return lanes.insert(arith.MaximumfOp(x, y)).result

        rows = [point[0] for point in lanes.points(self.source)]
        largest: dict[int, SSAValue] = {}  # of what this lane holds of each row
        for row, x in zip(rows, lanes.elements(self.source), strict=True):
            largest[row] = larger(largest[row], x) if row in largest else x
        for mask in self.lanes_of_a_row():
            for row, x in largest.items():
                largest[row] = larger(x, lanes.shuffle_xor(x, mask))
        lanes.bind(self.result, [largest[row] for row in rows])

    def lanes_of_a_row(self) -> list[int]:
        """The bits of a lane's number in which those that share a row differ."""
        source = self.source.type
        assert isinstance(source, frag.TileType)
        layout = source.resolve()

        def row(lane: int = 0, warp: int = 0) -> int:
            point = layout(lane=lane, warp=warp, element=0)
            assert point is not None
            return point[0]

        if any(row(warp=warp) == row() for warp in range(1, layout.size("warp"))):
            raise FragirError("warps share a row", hint="give a row to one warp: frag.warps")
        return [bit for bit in (1, 2, 4, 8, 16) if row(lane=bit) == row()]
