"""Rings of shared memory: which lowering each has, and what it makes of each operation."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.linear import carried
from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering import ring_copies
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.ring_copies import WaitPlan
from fragir.passes.lowering.rings import FILL, NO_SLOT, READ, LaneRing, make_ring, take, unread


class Rings:
    """The rings of a function, and the slots of them."""

    def __init__(self, lanes: Lanes, function: Operation):
        self.made: dict[SSAValue, LaneRing] = {}
        self.of_slot: dict[SSAValue, SSAValue] = {}
        ring_copies.check(function)
        found = [op.results[0] for op in function.walk() if op.name == "frag.ring"]
        self.plan = WaitPlan(function, found, lanes.target)
        slots: list[SSAValue] = []
        for op in function.walk():
            if op.name in ("frag.acquire", "frag.await", "frag.no_slot"):
                if isinstance(op.results[0].type, frag.SlotType):
                    slots.append(op.results[0])
                    if op.operands:
                        self.of_slot.update(dict.fromkeys(carried(slots[-1]), op.operands[0]))
        lanes.state.without_registers |= unread(slots)
        lanes.state.at_end.append(lambda end: ring_copies.end(lanes, self.plan, end))


def rings(lanes: Lanes, op: Operation) -> Rings:
    """Those of the function that an operation stands in."""
    found = lanes.state.of_subject.get("rings")
    if found is None:
        function = op
        while function.name != "func.func":
            above = function.parent_op()
            assert above is not None
            function = above
        found = lanes.state.of_subject["rings"] = Rings(lanes, function)
    assert isinstance(found, Rings)
    return found


@LOWERINGS.attach(frag.RingOp)
def ring(lanes: Lanes, op: frag.RingOp) -> None:
    known = rings(lanes, op)
    known.made[op.ring] = make_ring(lanes.state, op)
    lanes.state.without_registers.add(op.ring)


@LOWERINGS.attach(frag.AcquireOp)
def acquire(lanes: Lanes, op: frag.AcquireOp) -> None:
    known = rings(lanes, op)
    ring_copies.acquire(lanes, known.plan, op)
    lanes.state.values[op.slot] = take(lanes.state, known.made[op.ring], FILL)


def await_slot(lanes: Lanes, op: frag.AwaitOp) -> None:
    """`frag.await` of a ring."""
    known = rings(lanes, op)
    ring_copies.await_(lanes, known.plan, op)
    lanes.state.values[op.result] = take(lanes.state, known.made[op.source], READ)


@LOWERINGS.attach(frag.PublishOp)
def publish(lanes: Lanes, op: frag.PublishOp) -> None:
    ring_copies.publish(lanes, rings(lanes, op).plan, op)


@LOWERINGS.attach(frag.ReleaseOp)
def release(lanes: Lanes, op: frag.ReleaseOp) -> None:
    """Products in flight that read it are waited for; the next acquire waits for other threads."""
    if lanes.state.async_proxy:
        from fragir.passes.lowering.in_flight import wait_for_products  # few programs need it

        wait_for_products(lanes, op)


@LOWERINGS.attach(frag.NoSlotOp)
def no_slot(lanes: Lanes, op: frag.NoSlotOp) -> None:
    rings(lanes, op)
    lanes.state.values[op.slot] = NO_SLOT


@LOWERINGS.attach(frag.PartOp)
def part(lanes: Lanes, op: frag.PartOp) -> None:
    state, known = lanes.state, rings(lanes, op)
    made = known.made[known.of_slot[op.slot]]
    memory = made.parts[op.number.value.data].of_slot(state.ar, state.values[op.slot])
    state.memories[op.memory] = memory
