"""The meaning of rings and roles: queues of slots, and warps that run side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread

from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.rings import roles_of_turn
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.reference.formats import type_name
from fragir.reference.memory import BoundedMemory, unwritten_memory
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
    return unwritten_memory(memref_type(part).get_shape(), type_name(part))


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
        memory.write(unwritten_memory(memory.value.shape, memory.element).content)
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


# -- side by side ----------------------------------------------------------------------------------
# The meaning of roles: they run side by side, and wait for each other in rings.
#
# Each has a thread of Python, of which one runs at a time: until it has to wait (`Run.wait_for`),
# or is done. Then the next one in order runs that need not wait any more. So a program takes one
# course, always the same, and where none can go on that is known at once.


class _StoppedError(BaseException):
    """Ends a role where another one has failed."""


class SideBySide:
    """Some blocks of operations that run side by side, each in a thread of its own."""

    def __init__(self, run: Run, blocks: list[Block]):
        self._run, self._blocks = run, blocks
        self._waits: list[Callable[[], bool] | None] = [None] * len(blocks)
        self._over = [False] * len(blocks)
        self._turn = 0
        self._stuck = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def run(self) -> None:
        """Runs all of them to their ends. What one raises ends the others and is raised here."""
        before = self._run.others
        self._run.others = self._wait
        threads = [
            Thread(target=copy_context().run, args=(self._play, number), daemon=True)
            for number in range(len(self._blocks))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self._run.others = before
        if self._error is not None:
            raise self._error

    def _play(self, number: int) -> None:
        try:
            self._come(number)
            self._run.run_block(self._blocks[number])
        except _StoppedError:
            return
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()
            return
        self._over[number] = True
        if not all(self._over):
            following = self._following(number)
            if following is None:  # the first that waits in vain says so
                self._stuck = True
                following = self._over.index(False)
            self._give(following)

    def _wait(self, ready: Callable[[], bool]) -> bool:
        """Lets others go on until a condition holds: whether it does then."""
        number = self._turn
        self._waits[number] = ready
        following = self._following(number)
        if following is None:
            return False
        self._give(following)
        self._come(number)
        self._waits[number] = None
        return not self._stuck

    def _following(self, number: int) -> int | None:
        """The next one that can go on."""
        count = len(self._blocks)
        for other in (*range(number + 1, count), *range(number + 1)):
            ready = self._waits[other]
            if not self._over[other] and (ready is None or ready()):
                return other
        return None

    def _give(self, number: int) -> None:
        with self._changed:
            self._turn = number
            self._changed.notify_all()

    def _come(self, number: int) -> None:
        """Waits for the turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or self._error is not None)
        if self._error is not None:
            raise _StoppedError


def roles(run: Run, op: frag.RolesOp) -> None:
    SideBySide(run, [role.body.block for role in op.roles()]).run()


def take_turn(run: Run, op: frag.TakeTurnOp) -> None:
    mine, whose = _turns(run, op)
    run.wait_for(
        lambda: whose[0] == mine,
        f"the turn at {op.turn.data!r} never comes: another role takes fewer turns",
    )


def pass_turn(run: Run, op: frag.PassTurnOp) -> None:
    mine, whose = _turns(run, op)
    assert whose[0] == mine
    order = whose[1:]
    whose[0] = order[(order.index(mine) + 1) % len(order)]


def _turns(run: Run, op: frag.TakeTurnOp | frag.PassTurnOp) -> tuple[int, list[int]]:
    """The number of the role, and whose turn it is, before all who take it in order."""
    role = role_of(op)
    assert role is not None
    assert role.parent is not None
    order = roles_of_turn(role, op.turn.data)
    known: list[int] = run.kept.setdefault(
        f"turn {op.turn.data!r} of {run.block_id}", [order[0], *order]
    )
    return role.parent.regions.index(role), known
