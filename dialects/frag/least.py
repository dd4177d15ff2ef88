"""How large memory must at least be that a launch brings with it: `#frag.least`."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.grid import Extent, parse_extent


@irdl_attr_definition
class LeastAttr(Data[tuple[Extent, ...]]):
    """Of an argument of a function: `{frag.least = #frag.least<m by 64, n by 64>}`.

    One extent a dimension, as of `#frag.grid`: a number, or a named size divided and rounded up. A
    launch with a smaller array is refused. `frag-tile` writes it for memory whose size depends on
    how a product is cut.
    """

    name = "frag.least"

    def verify(self) -> None:
        if any(extent.divisor < 1 for extent in self.data):
            raise VerifyException("what a size is divided by is positive")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Extent, ...]:
        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_extent(parser))
        )

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))
