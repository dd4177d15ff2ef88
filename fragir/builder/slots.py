"""What is given on once, in Python: slots of rings, and tiles in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from fragir.builder.places import fail
from fragir.builder.values import Memory, Tile, Value
from fragir.dialects import frag
from fragir.dialects.narrow import memref_type

if TYPE_CHECKING:
    from fragir.builder.trace import Trace


class Held(Value):
    """Something of which there is no copy: each is used up once on every path."""

    trace: Trace

    def __init__(self, trace: Trace, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    def used(self) -> SSAValue:
        """The value in the IR; an error at the user's line where it is out of sight."""
        if not self.trace.sees(self.ssa):
            fail(
                f"{self!r} was made in a block that is over",
                "carry it out: name it in k.loop(..., name=first)",
            )
        return self.ssa


class TileInFlight(Held):
    """The sums of products under way (`Kernel.wgmma_async`): c of another one, carried by a loop or
    branch under a name, or waited for."""

    def wait(self) -> Tile:
        """The tile, once the products are done."""
        return self.trace.wrap(self.trace.insert(frag.AwaitOp(self.used())).result)

    def __repr__(self) -> str:
        return f"<tile in flight{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


class RingSlot(Held):
    """A slot of a ring: shared memory that is held until `publish` or `release`.

    One that `Ring.acquire` gave is filled and published, one that `Ring.wait` gave is read and
    released; each once on every path. A loop carries it under a name.
    """

    @property
    def parts(self) -> list[Memory]:
        """Its memories, in the order in which the ring has them."""
        slot = self.used()
        assert isinstance(slot.type, frag.SlotType)
        found: list[Memory] = []
        for number in range(len(slot.type.parts)):
            memory = self.trace.insert(frag.PartOp(slot, number)).memory
            found.append(Memory(self.trace, memory, memref_type(memory.type).get_shape()))
        return found

    def publish(self) -> None:
        """Gives it to those who wait for it, with all that was written or is on the way."""
        self.trace.insert(frag.PublishOp(self.used()))

    def release(self) -> None:
        """Gives it back to be filled anew."""
        self.trace.insert(frag.ReleaseOp(self.used()))

    def __repr__(self) -> str:
        return f"<slot{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


def held_of(trace: Trace, value: Any) -> SSAValue | None:
    """The value in the IR of what is carried and of which there is no copy; None for others."""
    if not isinstance(value, Held):
        return None
    if value.trace is not trace:
        fail(f"{value!r} belongs to another kernel")
    return value.ssa


def held(trace: Trace, ssa: SSAValue) -> RingSlot | TileInFlight | None:
    """A value of the IR as one of those; None for others."""
    kinds = {"frag.slot": RingSlot, "frag.in_flight": TileInFlight}
    found = kinds.get(ssa.type.name)
    return None if found is None else found(trace, ssa)
