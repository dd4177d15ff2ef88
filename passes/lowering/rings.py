"""Rings at lane level: the memory of their slots, and the cursors that go round in it.

A ring's slots lie behind each other, part by part. Acquiring and awaiting take them in turn, each
by a cursor of its own: hidden registers of the function (`LoweringState.hidden`), which loops and
branches pass on where something in them moves a cursor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import gcd
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.in_flight import carried_values
from fragir.dialects.frag.memory_layout import own_part
from fragir.dialects.frag.rings import PART
from fragir.dialects.shorthands import memref_type
from fragir.isa.tensor_boxes import TENSOR_BOX
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.memory import LaneMemory, shared_bytes, shared_memory
from fragir.passes.lowering.state import LoweringState
from fragir.passes.remarks import allocate

NO_SLOT = -1
"""The number of a slot that is none."""
FILL, READ = "fill", "read"
"""The cursors of a ring: the next slot to acquire, the next to await."""
MOVES = {"frag.acquire": FILL, "frag.await": READ}


class RingCursor(NamedTuple):
    """The name of a hidden register: the number of the slot that is next, or, with `phase`, whether
    this is an odd round of the ring, 0 or 1."""

    ring: SSAValue
    which: str
    phase: bool = False


class RingPart(NamedTuple):
    """One part of all slots."""

    first: LaneMemory
    """That of slot 0."""
    step: int
    """Bytes from one slot to the next, divided by the ring's unit."""

    def of_slot(self, ar: Arithmetic, slot: Value) -> LaneMemory:
        """That of a slot."""
        return self.first._replace(slot=(slot, self.step))


class LaneRing(NamedTuple):
    """A ring: its value in the program, how many slots it has, and their parts.

    The registers that hold a slot's number hold so many times it, `unit`.
    """

    value: SSAValue
    slots: int
    parts: tuple[RingPart, ...]
    unit: int


def make_ring(state: LoweringState, op: frag.RingOp, *, numbered: bool) -> LaneRing:
    """Allocates a ring's shared memory, and sets its cursors to the first slot.

    That of tensor memory is allocated elsewhere (`operations.tensor_memory`), and has no parts.

    Unless slots are `numbered`, registers hold bytes: then what a turn adds to addresses is there
    without a multiplication, of which SASS has one for each address.
    """
    parts: list[RingPart] = []
    for number, attribute in enumerate(op.ring.type.parts):
        type_ = memref_type(attribute)
        if frag.is_tensor_memory(type_):
            continue
        type_ = own_part(type_)
        layout, element = frag.memory_layout(type_), type_.element_type
        step = -(-shared_bytes(layout, ptx.bits(element)) // TENSOR_BOX) * TENSOR_BOX
        name = f"{op.ring.name_hint}_{number}" if op.ring.name_hint else None
        lowered = state.ar.insert(ptx.SharedOp(step * op.count), name)
        allocate(lowered, 0, state.target)  # what no block has is not unrolled first
        first = shared_memory(lowered.pointer, layout, type_.get_shape(), element)
        parts.append(RingPart(first, step))
    for which in (FILL, READ):
        state.hidden[RingCursor(op.ring, which)] = 0
    state.moves = moved_cursors
    unit = 1 if numbered or not parts else gcd(*(part.step for part in parts))
    parts = [part._replace(step=part.step // unit) for part in parts]
    return LaneRing(op.ring, op.count, tuple(parts), unit)


def moved_cursors(op: Operation) -> tuple[RingCursor, ...]:
    """The hidden registers that an operation changes, as far as the ring has them."""
    which = MOVES.get(op.name)
    if which is None or not isinstance(op.operands[0].type, frag.RingType):
        return ()
    ring = op.operands[0]
    phase = RingCursor(ring, which, phase=True)
    if isinstance(ring.owner, frag.RingOp) and ring.owner.count == 1:
        return (phase,)  # it is always the same slot
    return RingCursor(ring, which), phase


def take(state: LoweringState, ring: LaneRing, which: str) -> Value:
    """The number of the slot at a cursor, which moves on."""
    cursor, phase = RingCursor(ring.value, which), RingCursor(ring.value, which, phase=True)
    slot = state.hidden[cursor]
    state.hidden[cursor] = following(state.ar, slot, ring.slots, ring.unit)
    if phase in state.hidden:
        state.hidden[phase] = _slot_of_turn(state.ar, state.hidden[phase], slot, ring.slots)
    return slot


def _slot_of_turn(ar: Arithmetic, phase: Value, slot: Value, count: int) -> Value:
    """The phase of the slot after another: the other one after the last."""
    at_end = ar.compare("eq", slot, count - 1)
    if isinstance(at_end, bool):
        return ar.xor(phase, 1) if at_end else phase
    other, same = ar.value(ar.xor(phase, 1)), ar.value(phase)
    key = ("turned", phase, at_end)
    return ar.pure(key, (at_end, other, same), lambda: arith.SelectOp(at_end, other, same))


def following(ar: Arithmetic, slot: Value, count: int, unit: int = 1) -> Value:
    """The slot after another, in units: slot + 1, or 0 after the last."""
    if isinstance(slot, int):
        return (slot + unit) % (count * unit)
    if count == 1:
        return 0
    more = ar.add(slot, unit)
    if (count * unit) & (count * unit - 1) == 0:
        return ar.and_(more, count * unit - 1)
    at_end = ar.compare("eq", slot, (count - 1) * unit)
    assert not isinstance(at_end, bool)
    zero, more = ar.value(0), ar.value(more)
    key = ("following", slot, count, unit)
    return ar.pure(key, (at_end, more), lambda: arith.SelectOp(at_end, zero, more))


def unread(slots: Iterable[SSAValue], needed: Collection[SSAValue]) -> set[SSAValue]:
    """Slots whose numbers loops and branches need not pass on, of all that are carried from these.

    Those that become the same values go together; none is one of `needed`, nor is memory of one
    used where it is carried to: nothing asks which slot that is.
    """
    groups: list[tuple[set[SSAValue], bool]] = []
    for slot in slots:
        values = carried_values(slot)
        group = set(values)
        looked = slot in needed or any(
            use.operation.name == PART for value in values[1:] for use in value.uses
        )
        for other, so in [known for known in groups if not group.isdisjoint(known[0])]:
            groups.remove((other, so))
            group |= other
            looked |= so
        groups.append((group, looked))
    return {value for group, looked in groups if not looked for value in group}
