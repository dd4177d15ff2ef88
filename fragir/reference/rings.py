"""The meaning of rings: queues of slots, which those who fill and those who read take in turn.

A slot is free, then acquired, then full for each role that reads the ring, then free again once all
of them have released it. Slots are taken in the order of their numbers, so whoever is ahead waits;
what waits for nobody is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.reference.element_types import type_name
from fragir.reference.memory import BoundedMemory, unwritten
from fragir.reference.run import Run, Token


@dataclass(eq=False)
class RingQueue(Token):
    """The slots of a ring, and how far everybody has come."""

    slots: list[list[BoundedMemory]]
    readers: int
    """How many roles await it."""
    uses_left: list[int] = field(default_factory=list[int])
    """For how many more reads each slot stands: 0 where it is free."""
    full: list[bool] = field(default_factory=list[bool])
    """Whether each slot is published, and not yet released by everybody."""
    acquired: int = 0
    """Slots acquired so far."""
    awaited: dict[int, int] = field(default_factory=dict[int, int])
    """Slots awaited so far, by the number of the role."""
    taken: list[set[int]] = field(default_factory=list[set[int]])
    """The roles that have awaited what each slot holds now."""
    shared_out: bool = False
    """Whether a slot goes to one role, whichever awaits next; the roles take turns. All are counted
    as role 0 then."""


@dataclass(eq=False)
class HeldSlot(Token):
    """A slot that is held; `ring` is None for no slot."""

    ring: RingQueue | None = None
    number: int = 0


def ring(run: Run, op: frag.RingOp) -> None:
    slots = [[_memory(part) for part in op.ring.type.parts] for _ in range(op.count)]
    readers = {
        _number_of_role(use.operation)
        for use in op.ring.uses
        if isinstance(use.operation, frag.AwaitOp)
    }
    run.values[op.ring] = RingQueue(
        slots,
        len(readers) if op.turns is None else 1,
        [0] * op.count,
        [False] * op.count,
        taken=[set() for _ in slots],
        shared_out=op.turns is not None,
    )


def _memory(part: Attribute) -> BoundedMemory:
    return unwritten(memref_type(part).get_shape(), type_name(part))


def _number_of_role(op: Operation) -> int:
    """The number of the role that an operation belongs to; 0 outside of `frag.roles`."""
    region = role_of(op)
    if region is None:
        return 0
    assert region.parent is not None
    return region.parent.regions.index(region)


def acquire(run: Run, op: frag.AcquireOp) -> None:
    known = _ring(run, op.ring)
    number = known.acquired % len(known.slots)
    run.wait_for(
        lambda: not known.uses_left[number],
        f"no slot of {_name(op.ring)} ever becomes free: all {len(known.slots)} are in use",
    )
    known.acquired += 1
    known.uses_left[number] = max(1, known.readers)
    known.full[number] = False
    known.taken[number].clear()
    for memory in known.slots[number]:
        memory.write(unwritten(memory.value.shape, memory.element).content)
    run.values[op.slot] = HeldSlot(known, number)


def publish(run: Run, op: frag.PublishOp) -> None:
    slot = _slot(run, op.slot)
    assert slot.ring is not None
    slot.ring.full[slot.number] = True


def await_slot(run: Run, op: frag.AwaitOp) -> None:
    """`frag.await` of a ring."""
    known = _ring(run, op.source)
    role = 0 if known.shared_out else _number_of_role(op)
    count = known.awaited.get(role, 0)
    number = count % len(known.slots)
    run.wait_for(
        lambda: known.full[number] and role not in known.taken[number],
        f"no further slot of {_name(op.source)} is ever published: {count} were awaited",
    )
    known.awaited[role] = count + 1
    known.taken[number].add(role)
    run.values[op.result] = HeldSlot(known, number)


def release(run: Run, op: frag.ReleaseOp) -> None:
    slot = _slot(run, op.slot)
    if slot.ring is not None:
        slot.ring.uses_left[slot.number] -= 1
        if not slot.ring.uses_left[slot.number]:
            slot.ring.full[slot.number] = False


def no_slot(run: Run, op: frag.NoSlotOp) -> None:
    run.values[op.slot] = HeldSlot()


def part(run: Run, op: frag.PartOp) -> None:
    slot = _slot(run, op.slot)
    if slot.ring is None:
        raise FragirError("no slot has no parts", hint="skip this where there is none yet")
    run.values[op.memory] = slot.ring.slots[slot.number][op.number.value.data]


def _ring(run: Run, value: SSAValue) -> RingQueue:
    found = run.values[value]
    assert isinstance(found, RingQueue)
    return found


def _slot(run: Run, value: SSAValue) -> HeldSlot:
    found = run.values[value]
    assert isinstance(found, HeldSlot)
    return found


def _name(ring: SSAValue) -> str:
    return f"%{ring.name_hint}" if ring.name_hint else "the ring"


# --- waiting for a slot or a tile -----------------------------------------------------------------


def await_(run: Run, op: frag.AwaitOp) -> None:
    if frag.held_tile(op.source.type) is not None:
        run[op.result] = run[op.source]  # it is what it will be: nobody could ask before
    else:
        await_slot(run, op)
