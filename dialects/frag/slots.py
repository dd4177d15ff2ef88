"""Slots are linear: on every path each is used up by one operation, and its parts before that."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue, Use
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.frag.linear import LinearUse, at, carried, named, passed_on
from fragir.dialects.frag.slot_type import SlotType
from fragir.dialects.narrow import is_memref

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
