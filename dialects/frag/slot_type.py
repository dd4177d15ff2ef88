"""`!frag.slot`: the memory of one slot of a ring, part by part."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.memory_layout import check_memory
from fragir.dialects.frag.types import is_shared
from fragir.dialects.narrow import is_memref, memref_type


class SlotParts(ParametrizedAttribute, TypeAttribute):
    """What a ring and its slots have in common: the memory of a slot, part by part."""

    parts: ArrayAttr[Attribute]

    def verify(self) -> None:
        if not self.parts.data:
            raise VerifyException(f"!{self.name} has one part or more, each a memref")
        for part in self.parts:
            if not is_memref(part) or not is_shared(part):
                raise VerifyException(
                    f"!{self.name} has parts of shared memory, memref<..., #frag.shared>, "
                    f"not {part}"
                )
            shape = memref_type(part).get_shape()
            if len(shape) < 2 or DYNAMIC_INDEX in shape:
                raise VerifyException(
                    f"!{self.name}: {part} has no static shape of two dimensions or more"
                )
            check_memory(f"!{self.name}", part)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        parts = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type)
        return (ArrayAttr(parts),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.parts, printer.print_attribute)


@irdl_attr_definition
class SlotType(SlotParts):
    """One slot of a ring, held by whoever has acquired or awaited it.

    A slot is used up by one operation on every path: `frag.publish`, `frag.release`, or what
    carries it on (scf.for, scf.while, scf.yield).
    """

    name = "frag.slot"

    def __init__(self, parts: Sequence[Attribute]):
        super().__init__(ArrayAttr(parts))
