"""Rings of shared memory in Python: the method `ring` of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from fragir.builder.checks import items, whole, word
from fragir.builder.clusters import ClusterOperations
from fragir.builder.places import fail
from fragir.builder.shared_types import shared_type
from fragir.builder.slots import RingSlot
from fragir.builder.trace import Trace
from fragir.builder.values import Value
from fragir.dialects import frag
from fragir.layout import Layout


class Ring(Value):
    """Slots of shared memory that are filled and read in turn; see `Kernel.ring`."""

    trace: Trace

    def __init__(self, trace: Trace, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    def acquire(self) -> RingSlot:
        """Waits until the next slot is free: it is to be filled and published."""
        return RingSlot(self.trace, self.trace.insert(frag.AcquireOp(self.ssa)).slot)

    def wait(self) -> RingSlot:
        """Waits until the next slot is full: it is to be read and released."""
        return RingSlot(self.trace, self.trace.insert(frag.AwaitOp(self.ssa)).result)

    def no_slot(self) -> RingSlot:
        """No slot, where a loop carries that of the turn before: releasing it does nothing."""
        assert isinstance(self.ssa.type, frag.RingType)
        return RingSlot(self.trace, self.trace.insert(frag.NoSlotOp(self.ssa.type.slot)).slot)

    def __repr__(self) -> str:
        return f"<ring{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


class RingOperations(ClusterOperations):
    """Shared memory in slots, which some fill while others are read."""

    def part(
        self,
        shape: Sequence[int],
        element: Attribute,
        *,
        swizzle: int = 0,
        layout: Layout | str | None = None,
    ) -> MemRefType[Attribute]:
        """What a slot of a ring holds: memory as of `shared`, which `ring` makes."""
        return shared_type(shape, element, swizzle, layout)

    def ring(
        self, slots: int, parts: Sequence[MemRefType[Attribute]], *, turns: str | None = None
    ) -> Ring:
        """A ring of so many slots, each of these parts: `k.ring(3, [k.part((128, 64), f16)])`.

        `acquire` takes the next free slot to fill it and `publish` gives it on; `wait` takes the
        next full one, `release` gives it back. How long each waits is computed. Every role that
        waits gets all slots; with `turns="products"` roles wait in their turns of that name
        (`k.turn`), and share the slots out.
        """
        given = items(parts)
        if not given or any(not isinstance(part, MemRefType) for part in given):
            fail(f"a ring's parts are {parts!r}", "write [k.part((128, 64), fragir.f16), ...]")
        op = frag.RingOp(
            whole(slots, "slots", 1),
            frag.RingType(list(parts)),
            None if turns is None else word(turns, "turns"),
        )
        return Ring(self.trace, self.trace.insert(op).ring)
