"""The type of registers that few programs have."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class BitsType(ParametrizedAttribute, TypeAttribute):
    """A register of 8 or 128 bits, which no other type has: `!ptx.bits<128>`.

    An i8 stands in a register of 32 bits, which few instructions refuse.
    """

    name = "ptx.bits"
    width: IntAttr

    def __init__(self, width: int | IntAttr):
        super().__init__(IntAttr(width) if isinstance(width, int) else width)

    def verify(self) -> None:
        if self.width.data not in (8, 128):
            raise VerifyException("!ptx.bits has 8 or 128 bits; others are i16, i32 and i64")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.width.data))
