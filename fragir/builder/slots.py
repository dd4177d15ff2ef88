"""Slots of rings in Python: what is acquired or awaited, and given on once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from fragir.builder.places import fail
from fragir.builder.values import Memory, Value
from fragir.dialects import frag
from fragir.dialects.narrow import memref_type

if TYPE_CHECKING:
    from fragir.builder.trace import Trace

SLOT = "frag.slot"


class Slot(Value):
    """A slot of a ring: shared memory that is held until `publish` or `release`.

    One that `Ring.acquire` gave is filled and published, one that `Ring.wait` gave is read and
    released; each once on every path. A loop carries it under a name.
    """

    trace: Trace

    def __init__(self, trace: Trace, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    @property
    def parts(self) -> list[Memory]:
        """Its memories, in the order in which the ring has them."""
        slot = self._used()
        assert isinstance(slot.type, frag.SlotType)
        found: list[Memory] = []
        for number in range(len(slot.type.parts)):
            memory = self.trace.insert(frag.PartOp(slot, number)).memory
            found.append(Memory(self.trace, memory, memref_type(memory.type).get_shape()))
        return found

    def publish(self) -> None:
        """Gives it to those who wait for it, with all that was written or is on the way."""
        self.trace.insert(frag.PublishOp(self._used()))

    def release(self) -> None:
        """Gives it back to be filled anew."""
        self.trace.insert(frag.ReleaseOp(self._used()))

    def _used(self) -> SSAValue:
        if not self.trace.sees(self.ssa):
            fail(
                f"{self!r} was made in a block that is over",
                "carry it out: name it in k.loop(..., name=first)",
            )
        return self.ssa

    def __repr__(self) -> str:
        return f"<slot{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


def slot_of(trace: Trace, value: Any) -> SSAValue | None:
    """The value in the IR of what is carried as a slot; None for anything else."""
    if not isinstance(value, Slot):
        return None
    if value.trace is not trace:
        fail(f"{value!r} belongs to another kernel")
    return value.ssa
