"""`!frag.ring`: slots of shared memory that are filled and read in turn."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition

from fragir.dialects.frag.awaiting import AwaitableType, AwaitOp
from fragir.dialects.frag.slot_type import SlotParts, SlotType
from fragir.dialects.frag.slots import check_slot


@irdl_attr_definition
class RingType(SlotParts, AwaitableType):
    """A queue of slots of shared memory: each is filled, published, awaited, read and released.

    `!frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>, ...>`: the parts of each slot.
    """

    name = "frag.ring"

    def __init__(self, parts: Sequence[Attribute]):
        super().__init__(ArrayAttr(parts))

    @property
    def slot(self) -> SlotType:
        """The type of its slots."""
        return SlotType(self.parts.data)

    def awaited(self) -> SlotType:
        """The oldest slot that is full."""
        return self.slot

    def check_awaited(self, op: AwaitOp) -> None:
        """The slot is linear."""
        check_slot(op.result, "frag.release")
