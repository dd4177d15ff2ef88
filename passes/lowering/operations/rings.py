"""Rings of memory: which lowering each has, and what it makes of each operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation, Region, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.in_flight import carried_values
from fragir.dialects.frag.kernels import role_of
from fragir.passes.lowering import ring_copies
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.ring_copies import WaitPlan
from fragir.passes.lowering.ring_use import needs_barriers, use_of
from fragir.passes.lowering.rings import FILL, NO_SLOT, READ, LaneRing, make_ring, take, unread

if TYPE_CHECKING:
    from fragir.passes.lowering.ring_barriers import RingBarriers
    from fragir.passes.lowering.tensor_memory import TensorColumns


class Rings:
    """The rings of a function, and the slots of them."""

    def __init__(self, lanes: Lanes):
        self.lanes = lanes
        self.made: dict[SSAValue, LaneRing] = {}
        self.barriers: dict[SSAValue, RingBarriers] = {}
        self.of_slot: dict[SSAValue, SSAValue] = {}
        self.perhaps_none: set[SSAValue] = set()
        slots: list[SSAValue] = []
        operations = lanes.state.operations
        for op in operations:
            if op.name in ("frag.acquire", "frag.await", "frag.no_slot"):
                if isinstance(op.results[0].type, frag.SlotType):
                    slots.append(op.results[0])
                    values = carried_values(slots[-1])
                    if op.operands:
                        self.of_slot.update(dict.fromkeys(values, op.operands[0]))
                    else:
                        self.perhaps_none |= set(values)
        found = [op.results[0] for op in operations if op.name == "frag.ring"]
        self._of_tensor_memory = any(use_of(ring).in_tensor_memory for ring in found)
        self.waited = [ring for ring in found if needs_barriers(ring)]
        counted = [ring for ring in found if ring not in self.waited]
        if counted:
            ring_copies.check(operations)
        self.plan = WaitPlan(operations, found, counted, lanes.target)
        needed = [slot for slot in slots if self.of_slot.get(slot) in self.waited]
        lanes.state.without_registers |= unread(slots, needed)
        lanes.state.at_end.append(self.end)

    def tensor_memory(self) -> TensorColumns | None:
        """The kernel's, where a ring is of it."""
        if not self._of_tensor_memory:
            return None
        from fragir.passes.lowering.tensor_memory import tensor_memory  # few programs need it

        return tensor_memory(self.lanes)

    def end(self, op: Operation) -> None:
        """Copies that nobody has awaited are complete before a thread ends."""
        ring_copies.end(self.lanes, self.plan, op)
        for ring, barriers in self.barriers.items():
            known = self.plan.before(op, ring)
            barriers.drain(len(known.ages) if known.all_known else None)

    def end_of_role(self, region: Region) -> None:
        """What a role waits for at its end that has filled slots."""
        for ring, barriers in self.barriers.items():
            makers = (u.operation for u in ring.uses if u.operation.name == "frag.acquire")
            if any(role_of(maker) is region for maker in makers):
                barriers.tail()


def rings(lanes: Lanes) -> Rings:
    """Those of the function that is lowered."""
    found = lanes.state.of_subject.get("rings")
    if found is None:
        found = lanes.state.of_subject["rings"] = Rings(lanes)
    assert isinstance(found, Rings)
    return found


def ring(lanes: Lanes, op: frag.RingOp) -> None:
    known = rings(lanes)
    # wgmma's descriptors hold other bits of a place than its bytes
    numbered = op.ring in known.waited or lanes.state.async_proxy
    tensor = known.tensor_memory()
    made = known.made[op.ring] = make_ring(lanes.state, op, numbered=numbered)
    if op.ring in known.waited:
        from fragir.passes.lowering.ring_barriers import RingBarriers  # few programs need it

        known.barriers[op.ring] = RingBarriers(lanes, made)
    if tensor is not None:
        tensor.allocate()
    lanes.state.without_registers.add(op.ring)


def acquire(lanes: Lanes, op: frag.AcquireOp) -> None:
    known = rings(lanes)
    barriers = known.barriers.get(op.ring)
    if barriers is None:
        ring_copies.acquire(lanes, known.plan, op)
    else:
        barriers.acquire(op)
    lanes.state.values[op.slot] = take(lanes.state, known.made[op.ring], FILL)


def await_slot(lanes: Lanes, op: frag.AwaitOp) -> None:
    """`frag.await` of a ring."""
    known = rings(lanes)
    barriers = known.barriers.get(op.source)
    if barriers is None:
        ring_copies.await_(lanes, known.plan, op)
    else:
        barriers.await_()
    lanes.state.values[op.result] = take(lanes.state, known.made[op.source], READ)


def publish(lanes: Lanes, op: frag.PublishOp) -> None:
    known = rings(lanes)
    barriers = known.barriers.get(known.of_slot[op.slot])
    if barriers is None:
        ring_copies.publish(lanes, known.plan, op)
    else:
        barriers.publish(lanes.state.values[op.slot])


def release(lanes: Lanes, op: frag.ReleaseOp) -> None:
    """Products in flight that read it are waited for; who acquires the slot waits for readers."""
    if lanes.state.async_proxy:
        from fragir.passes.lowering.multiply import wait_for_products  # few programs need it

        wait_for_products(lanes, op)
    known = rings(lanes)
    barriers = known.barriers.get(known.of_slot.get(op.slot, op.slot))
    if barriers is not None:
        barriers.release(lanes.state.values[op.slot], op.slot in known.perhaps_none)


def no_slot(lanes: Lanes, op: frag.NoSlotOp) -> None:
    rings(lanes)
    lanes.state.values[op.slot] = NO_SLOT


def part_of(lanes: Lanes, op: frag.PartOp) -> None:
    state, known = lanes.state, rings(lanes)
    value = known.of_slot[op.slot]
    slot, number = state.values[op.slot], op.number.value.data
    tensor = known.tensor_memory()
    if tensor is not None and not known.made[value].parts:
        tensor.part(value, slot, number, op.memory)
        return
    state.memories[op.memory] = known.made[value].parts[number].of_slot(state.ar, slot)
    if value in known.barriers:
        state.full[op.memory] = known.barriers[value].counts_at(slot)
        if known.barriers[value].use.pair:
            state.of_pair.add(op.memory)
