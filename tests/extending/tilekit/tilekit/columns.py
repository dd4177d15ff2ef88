"""A layout: a lane holds whole columns."""

from xdsl.ir import ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout


@irdl_attr_definition
class ColumnsAttr(ParametrizedAttribute, frag.LayoutAttr):
    """Lane l of one warp holds the columns l, l + 32, and so on: whole rows load coalesced."""

    name = "kit.columns"

    def layout(self, *shape: int) -> Layout:
        if len(shape) != 2 or shape[1] % 32:
            raise FragirError("#kit.columns takes a matrix, and a multiple of 32 columns")
        rows, cols = shape
        return Layout.parse(
            f"warp [1:(0,0)] lane [32:(0,1)] element [{rows}:(1,0) {cols // 32}:(0,32)]"
        )

    @property
    def chunk(self) -> int:
        return 1
