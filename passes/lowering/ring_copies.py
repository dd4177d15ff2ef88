"""Rings that one role fills and reads: groups of cp.async, and barriers of the block.

Publishing closes a group of copies. Awaiting waits until the group of the slot is complete, with
as many newer ones under way as there are on every path to here, and then for all threads: what one
has copied the others see, and what they have read, they have read. So acquiring waits for them only
where a slot has been released since they last met. Both are computed for the whole function ahead
of its lowering (PTX ISA 9.2, sections 9.7.9.25.3 and 9.7.13.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.in_flight import carried_values
from fragir.dialects.frag.rings import PART
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail
from fragir.passes.lowering import copies
from fragir.passes.lowering.forward import Forward
from fragir.passes.lowering.lane_builder import Lanes

COMPLETE = 1 << 20
"""The age of a slot that no group of copies writes."""
SEEN = 1 << 21
"""The age of a slot that all threads see: they have met since it was complete."""


class Filled(NamedTuple):
    """What is known of a ring on all paths to a place."""

    ages: tuple[int, ...] = ()
    """For each slot that is published and not awaited yet, in order, how many groups have been
    closed since its own, at least."""
    all_known: bool = True
    """Whether these are all such slots; else there may be more, and their ages are not known."""
    read: bool = False
    """Whether a slot may have been released since all threads met."""
    held: int = 0
    """How many slots are acquired and not published, at most; 2 stands for more."""
    slots: int = 0
    """Of the ring."""
    used: int = 0
    """How many are acquired and not released, at most."""
    ready: int = 0
    """How many of the next slots were free when all threads last met, at least."""
    opened: int = 0
    """How many are awaited and not released, at most; 2 stands for more."""
    in_turn: bool = True
    """Whether slots have been released in the order in which they were awaited."""

    @property
    def waits(self) -> bool:
        """Whether the next slot may have been released since all threads met."""
        return self.read and not self.ready

    def acquired(self) -> Filled:
        """After the next slot is taken."""
        used, ready = min(self.slots, self.used + 1), max(0, self.ready - 1)
        return self._replace(held=min(2, self.held + 1), used=used, ready=ready)

    def released(self, perhaps_none: bool) -> Filled:
        """After a slot is given back, or perhaps none."""
        gone = 0 if perhaps_none else 1
        in_turn = self.in_turn and self.opened < 2
        return self._replace(
            read=True,
            used=max(0, self.used - gone),
            opened=max(0, self.opened - gone),
            in_turn=in_turn,
            ready=self.ready if in_turn else 0,
        )

    def met(self, complete: int) -> Filled:
        """After all threads have met, when groups of this age were complete."""
        ages = tuple(SEEN if age >= complete else age for age in self.ages)
        ready = self.slots - self.used if self.in_turn else 0
        return self._replace(read=False, ages=ages, ready=ready)

    def merged(self, other: Filled) -> Filled:
        """What is known where two paths meet."""
        ages = tuple(map(min, self.ages, other.ages))
        whole = len(self.ages) == len(other.ages)
        return Filled(
            ages,
            self.all_known and other.all_known and whole,
            self.read or other.read,
            max(self.held, other.held),
            self.slots,
            max(self.used, other.used),
            min(self.ready, other.ready),
            max(self.opened, other.opened),
            self.in_turn and other.in_turn,
        )


State = tuple[Filled, ...]


class WaitPlan:
    """What acquiring and awaiting wait for in a function, which `operations` begin with.

    `counted` are the rings that groups and barriers of the block serve; of others it is known how
    many slots are published.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        rings: Sequence[SSAValue],
        counted: Sequence[SSAValue],
        target: str,
    ):
        self.numbers = {ring: number for number, ring in enumerate(rings)}
        self.counted = {self.numbers[ring] for ring in counted}
        self.asynchronous = [
            ring in counted and copies.has_cp_async(target) and _is_copied_to(ring)
            for ring in rings
        ]
        self.ring_of: dict[SSAValue, int] = {}
        for op in operations:
            if op.name in ("frag.acquire", "frag.await") and op.operands[0] in self.numbers:
                for value in carried_values(op.results[0]):
                    self.ring_of[value] = self.numbers[op.operands[0]]
        self.perhaps_none = {
            value for op in operations if op.name == "frag.no_slot"
            for value in carried_values(op.results[0])
        }  # fmt: skip
        body = operations[0].regions[0].block
        counts = [ring.owner.count if isinstance(ring.owner, frag.RingOp) else 0 for ring in rings]
        self.forward = Forward[State](self._step, _merge_states)
        self.forward.run(body, tuple(Filled(slots=count, ready=count) for count in counts))

    def before(self, op: Operation, ring: SSAValue) -> Filled:
        """What is known of a ring ahead of an operation."""
        return self.forward.before[op][self.numbers[ring]]

    def is_asynchronous(self, slot: SSAValue) -> bool:
        """Whether cp.async writes slots of this slot's ring."""
        return self.asynchronous[self.ring_of[slot]]

    def are_copies_under_way(self, op: Operation) -> bool:
        """Whether copies into a ring may be under way ahead of an operation."""
        state = self.forward.before[op]
        return any(
            self.asynchronous[number]
            and (not known.all_known or min(known.ages, default=SEEN) < COMPLETE)
            for number, known in enumerate(state)
        )

    # --- what operations do -------------------------------------------------------------------

    def _step(self, op: Operation, state: State) -> State:
        name = op.name
        if name == "frag.acquire" and op.operands[0] in self.numbers:
            number = self.numbers[op.operands[0]]
            if state[number].waits and number in self.counted:
                state = _after_meeting(state)
            return _with_ring(state, number, state[number].acquired())
        if name == "frag.publish" and op.operands[0] in self.ring_of:
            return self._published(self.ring_of[op.operands[0]], state)
        if name == "frag.await" and op.operands[0] in self.numbers:
            number = self.numbers[op.operands[0]]
            return _after_await(number, state, number in self.counted and is_read(op))
        if name == "frag.release" and op.operands[0] in self.ring_of:
            number = self.ring_of[op.operands[0]]
            known = state[number].released(op.operands[0] in self.perhaps_none)
            return _with_ring(state, number, known)
        if name == "frag.barrier":
            return _after_meeting(state)
        return state

    def _published(self, number: int, state: State) -> State:
        age = COMPLETE
        if self.asynchronous[number]:
            age = 0
            state = tuple(
                known._replace(ages=tuple(a + (a < COMPLETE) for a in known.ages))
                for known in state
            )
        known = state[number]
        ages = (*known.ages, age) if known.all_known else known.ages
        return _with(state, number, ages=ages, held=max(0, known.held - 1))


def is_read(op: Operation) -> bool:
    """Whether anything looks at a slot that is awaited; else it is given back as it is."""
    return any(
        use.operation.name == PART for value in carried_values(op.results[0]) for use in value.uses
    )


def _after_await(number: int, state: State, meets: bool) -> State:
    known = state[number]
    age = known.ages[0] if known.ages else 0
    if age < SEEN and meets:
        state = _after_meeting(state, age)
    return _with(state, number, ages=known.ages[1:], opened=min(2, known.opened + 1))


def _after_meeting(state: State, complete: int = COMPLETE) -> State:
    """All threads have met, after groups of this age were complete."""
    return tuple(known.met(complete) for known in state)


def _with(state: State, number: int, **changes: object) -> State:
    changed = state[number]._replace(**changes)  # pyright: ignore[reportArgumentType]
    return _with_ring(state, number, changed)


def _with_ring(state: State, number: int, changed: Filled) -> State:
    return (*state[:number], changed, *state[number + 1 :])


def _merge_states(one: State, other: State) -> State:
    return tuple(x.merged(y) for x, y in zip(one, other, strict=True))


def _is_copied_to(ring: SSAValue) -> bool:
    """Whether a `frag.copy async` writes a slot of a ring."""
    for use in ring.uses:
        if use.operation.name == "frag.acquire":
            for value in carried_values(use.operation.results[0]):
                parts = (use.operation for use in value.uses if use.operation.name == "frag.part")
                for part in parts:
                    for user in part.results[0].uses:
                        op = user.operation
                        if isinstance(op, frag.CopyOp) and op.is_async is not None:
                            return True
    return False


# --- lowering -------------------------------------------------------------------------------------


def acquire(lanes: Lanes, plan: WaitPlan, op: Operation) -> None:
    """Waits until all threads have read the slot that is taken next."""
    known = plan.before(op, op.operands[0])
    if known.held:
        raise FragirError(
            "another slot of this ring is acquired and not published yet",
            hint="publish one slot before the next is acquired",
        )
    if known.waits:
        lanes.state.wait_for_all()


def publish(lanes: Lanes, plan: WaitPlan, op: Operation) -> None:
    """Closes the group of the slot's copies."""
    if plan.is_asynchronous(op.operands[0]):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.commit_group"))


def await_(lanes: Lanes, plan: WaitPlan, op: Operation) -> None:
    """Waits for the slot's copies, and for all threads."""
    known = plan.before(op, op.operands[0])
    if known.all_known and not known.ages:
        raise FragirError(
            "it waits forever: every slot that has been published is awaited already",
            hint="publish a slot of this ring before",
        )
    age = known.ages[0] if known.ages else 0
    if age >= SEEN:
        return
    if age < COMPLETE and plan.asynchronous[plan.numbers[op.operands[0]]]:
        lanes.state.ar.insert(ptx.SyncOp("cp.async.wait_group", age))
    if is_read(op):
        meet(lanes)


def meet(lanes: Lanes) -> None:
    """All threads wait for each other, and wgmma sees what they have written."""
    if lanes.state.async_proxy:
        # (PTX ISA 9.2, section 9.7.15.3)
        lanes.state.ar.insert(ptx.SyncOp("fence.proxy.async.shared::cta"))
    lanes.state.wait_for_all()


def end(lanes: Lanes, plan: WaitPlan, op: Operation) -> None:
    """What has been published and never awaited is complete before a thread ends."""
    if plan.are_copies_under_way(op):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.wait_group", 0))


def check(operations: Sequence[Operation]) -> None:
    """Ends the pass where groups of copies are counted by hand beside a ring."""
    for op in operations:
        if isinstance(op, frag.CommitOp | frag.WaitOp):
            fail(
                op,
                f"{op.name} counts groups of copies, and so does frag.ring in this function; copy "
                "into slots of a ring, which are published and awaited",
            )
