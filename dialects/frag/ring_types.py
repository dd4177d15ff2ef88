"""`!frag.ring` and `!frag.slot`: shared memory that is filled and read in turn.

Slots are linear: on every path each is used up by one operation, and its parts before that.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute, Use
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.in_flight import (
    AwaitableType,
    AwaitOp,
    LinearUse,
    at,
    carried,
    named,
    passed_on,
)
from fragir.dialects.frag.memory_layout import check_memory
from fragir.dialects.frag.types import is_shared
from fragir.dialects.narrow import is_memref, memref_type

# --- slots ----------------------------------------------------------------------------------------


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


# --- slots are used up once -----------------------------------------------------------------------

ENDS = ("frag.publish", "frag.release")
PART = "frag.part"


def check_slot(slot: SSAValue, end: str) -> None:
    """VerifyException unless a new slot, wherever it is carried, is used up once by `end`.

    Of an operation that is not part of a program yet nothing is known.
    """
    if isinstance(slot.owner, Operation) and slot.owner.parent is None:
        return
    for value in carried(slot):
        _SlotUse(value, named(value, slot, "slot"), end, "slot").check()


class _SlotUse(LinearUse):
    """The uses of one value that is a slot."""

    def looks(self, op: Operation) -> set[Operation]:
        """What takes a part of it, and what makes or uses its memory."""
        return _users(op) if op.name == PART else set()

    def check_taker(self, use: Use) -> None:
        op = use.operation
        if op.name in ENDS:
            if op.name != self.end:
                what = "acquired" if self.end == ENDS[0] else "awaited"
                raise VerifyException(
                    f"{self.name} is {what}, so {self.end} takes it and not {op.name}{at(op)}"
                )
        elif not any(isinstance(to.type, SlotType) for to in passed_on(use)):
            raise VerifyException(
                f"{self.name} goes to {op.name}{at(op)}; a slot goes to {self.end}, or a loop or "
                "branch passes it on"
            )

    def behind(self, op: Operation, taken: Operation) -> str:
        return (
            f"{self.name}: its memory is used by {op.name}{at(op)} behind "
            f"{taken.name}{at(taken)}, when it is not held any more"
        )


def _users(part: Operation) -> set[Operation]:
    """What makes or uses a part of a slot, or what is a view of it."""
    found = {part}
    for result in part.results:
        if is_memref(result.type):
            for use in result.uses:
                if use.operation.name.startswith("scf."):
                    raise VerifyException(
                        f"memory of a slot goes to {use.operation.name}{at(use.operation)}; carry "
                        "the slot, and take its part (frag.part) where it is used"
                    )
                if use.operation not in found:
                    found |= _users(use.operation)
    return found


# --- rings ----------------------------------------------------------------------------------------


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
