"""Which operations wait for copies from shared to global memory, and for how many of them.

What `frag.copy tma` reads may not be written before the copy has read it, and what it writes may
neither be read nor written before it has. Two copies that write one place are not ordered, as
nothing of a machine orders them: which of them is there in the end is not said; where some write
and others add, they wait. The thread that
started copies waits for its groups of them, oldest first (PTX ISA 9.2, section 9.7.9.26), then all
threads meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeGuard

from xdsl.dialects.builtin import DenseArrayBase, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.in_flight import carried_values
from fragir.dialects.frag.kernels import cluster_of, role_of
from fragir.dialects.frag.tensor_copies import APART
from fragir.dialects.interfaces import accesses_of, root_of
from fragir.dialects.ptx.tensor_maps import CLUSTER, WHOLE_CLUSTERS
from fragir.mlir.diagnostics import fail
from fragir.passes.lowering.forward import Forward
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.tensor_copies import is_of_ring, run_of

OLDEST = 7
"""Groups that are told apart; those before are one with the last of them."""


class Wait(NamedTuple):
    """For which groups to wait ahead of an operation."""

    pending: int
    """How many of the newest may be under way."""
    written: bool
    """Whether what they write must be there; else only what they read must be read."""


Ages = Mapping[SSAValue, int]
"""How many groups have been closed, at least, since the last that touches a memory. Slots of a ring
that are awaited stand for it as a whole: two of its parts may be the same memory."""
State = frozenset[tuple[SSAValue, int]]


class _Memories:
    """What the memories of a function are known by."""

    def __init__(self, function: Operation):
        self._rings: dict[SSAValue, SSAValue] = {}
        for op in function.walk():
            if isinstance(op, frag.AwaitOp) and isinstance(op.result.type, frag.SlotType):
                self._rings |= dict.fromkeys(carried_values(op.result), op.source)

    def of(self, memory: SSAValue) -> SSAValue:
        """What a memref is a view of; the ring of a slot that is awaited."""
        root = root_of(memory)
        if isinstance(root.owner, frag.PartOp):
            return self._rings.get(root.owner.slot, root)
        return root

    def awaited(self, slot: SSAValue) -> SSAValue:
        """The ring of a slot that is awaited; of another the slot itself."""
        return self._rings.get(slot, slot)

    def touched(self, op: frag.CopyOp) -> tuple[SSAValue, ...]:
        """The memories of a copy that others must not touch meanwhile."""
        source, target = self.of(op.source), self.of(op.target)
        return (source,) if APART in op.attributes else (source, target)


class _Groups(Forward[State]):
    """Behind roles, what they have copied out may be under way."""

    def __init__(self, step: Callable[[Operation, State], State], memories: _Memories):
        super().__init__(step, _merge_states)
        self._memories = memories

    def _follow_regions(self, op: Operation, state: State) -> State:
        end = super()._follow_regions(op, state)
        if op.name != "frag.roles":
            return end
        copies = [inner for inner in op.walk() if is_store(inner)]
        return _merge_states(
            end, frozenset((m, 0) for one in copies for m in self._memories.touched(one))
        )


class GroupWaits:
    """The waits of a function.

    Where threads write to two memories by turns, and so wait for the copy before the last one, that
    is waited for ahead of the last copy instead, where all threads meet anyway: once, not twice.
    """

    def __init__(self, function: Operation, memories: _Memories):
        self._memories = memories
        self._early = False
        kinds = {(op.target, op.add is None) for op in function.walk() if is_store(op)}
        targets = [target for target, _ in kinds]  # any order
        self._ordered = {target for target in targets if targets.count(target) > 1}
        self.ahead = self._find(function)
        late = [wait for op, wait in self.ahead.items() if _writes_by_threads(op)]
        if late and all(wait == Wait(1, False) for wait in late):
            self._early = True
            found = self._find(function)
            if not any(map(_writes_by_threads, found)):
                self.ahead = found

    def _find(self, function: Operation) -> dict[Operation, Wait]:
        forward = _Groups(self._step, self._memories)
        forward.run(function.regions[0].block, frozenset())
        waits = ((op, self._wait(op, dict(state))) for op, state in forward.before.items())
        return {op: wait for op, wait in waits if wait is not None}

    def _step(self, op: Operation, state: State) -> State:
        ages = dict(state)  # any order
        wait = self._wait(op, ages)
        if wait is not None:
            ages = {memory: age for memory, age in ages.items() if _is_in_use(memory, age, wait)}
        if not is_store(op):
            return frozenset(ages.items())
        run = run_of(op)
        if op is run[-1]:  # which closes the group of all of them
            ages = {memory: min(age + 1, OLDEST) for memory, age in ages.items()}
            for one in run:
                ages |= dict.fromkeys(self._memories.touched(one), 0)
        return frozenset(ages.items())

    def _wait(self, op: Operation, ages: Ages) -> Wait | None:
        """What an operation waits for."""
        if op.name == "frag.arrive":
            return Wait(0, True)  # others may read what this block has copied out
        if isinstance(op, frag.ReleaseOp):
            ring = self._memories.awaited(op.slot)
            return None if ring not in ages else Wait(ages[ring], False)
        accesses = accesses_of(op)
        if accesses is None or not ages:
            return None
        of = self._memories.of
        if isinstance(op, frag.CopyOp) and op.tma is not None:  # those of a run wait together
            run = run_of(op)
            run = run if op is run[0] else []
            writes = {of(one.target) for one in run}
            if self._early and op is run_of(op)[0] and is_store(op) and any(map(_is_here, ages)):
                return Wait(0, any(target in self._ordered and target in ages for target in writes))
            if is_store(op):  # two may read the same
                writes = touched = {target for target in writes if target in self._ordered}
            else:
                touched = writes | {one.source for one in run}
        else:
            writes = {of(value) for value in accesses.writes()}
            touched = writes | {of(value) for value in accesses.reads()}
        if APART in op.attributes:
            touched = writes = {memory for memory in writes if _is_here(memory)}
        needed = [
            (age, not _is_here(memory))
            for memory, age in ages.items()
            if memory in (writes if _is_here(memory) else touched)
        ]
        if not needed:
            return None
        return Wait(min(age for age, _ in needed), any(written for _, written in needed))


def _writes_by_threads(op: Operation) -> bool:
    """Whether an operation waits for itself: of others a thread goes on that starts copies."""
    return not is_store(op) and op.name not in ("frag.arrive", "frag.release")


def _is_here(memory: SSAValue) -> bool:
    """Whether a memory, or a ring's, is shared memory."""
    return isinstance(memory.type, frag.RingType) or frag.is_shared(memory.type)


def _is_in_use(memory: SSAValue, age: int, wait: Wait) -> bool:
    """Whether a memory is still in use behind a wait."""
    return age < wait.pending or not (wait.written or _is_here(memory))


def is_store(op: Operation) -> TypeGuard[frag.CopyOp]:
    """Whether an operation is a `frag.copy tma` to global memory."""
    return isinstance(op, frag.CopyOp) and op.tma is not None and frag.is_shared(op.source.type)


def _merge_states(one: State, other: State) -> State:
    ages = dict(one)  # any order
    for memory, age in other:  # any order
        ages[memory] = min(age, ages.get(memory, age))
    return frozenset(ages.items())


def _written_by_threads(function: Operation) -> set[SSAValue]:
    """The arguments that are written otherwise than by TMA."""
    found: set[SSAValue] = set()
    for op in function.walk():
        accesses = accesses_of(op)
        if accesses is not None and not is_store(op):
            found |= {root_of(value) for value in accesses.writes()}
    return found


def _check_roles(function: Operation, memories: _Memories) -> None:
    """Ends the pass where a role touches what another one copies out: only the thread that starts
    a copy can wait for it. Copies of one kind are not ordered anyway."""
    owners: dict[SSAValue, set[tuple[Region | None, bool]]] = {}
    for op in function.walk():
        if is_store(op):
            for memory in memories.touched(op):
                owners.setdefault(memory, set()).add((role_of(op), op.add is not None))
    for op in function.walk():
        accesses, role = accesses_of(op), role_of(op)
        if accesses is None or role is None:
            continue
        if APART in op.attributes:
            continue
        adds = op.add is not None if is_store(op) else None
        used = [*accesses.writes(), *(v for v in accesses.reads() if not frag.is_shared(v.type))]
        for memory in map(memories.of, used):
            for other, also_adds in owners.get(memory, ()):
                if other not in (None, role) and adds is not also_adds:
                    fail(op, f"{op.name}: another role copies this memory by TMA, and it alone "
                         "can wait for that; hand memory over in slots of a ring")  # fmt: skip


def plan(lanes: Lanes, function: Operation) -> None:
    """Arranges the waits of a function that copies by TMA; ends the pass, at its operation, for
    what cannot be ordered."""
    state = lanes.state
    stores = False
    memories = _Memories(function)
    written = _written_by_threads(function)
    for op in function.walk():
        if is_store(op):
            stores = True
            if is_of_ring(op.source) and not isinstance(memories.of(op.source).type, frag.RingType):
                fail(op, "frag.copy tma: this slot is being filled; copy from one that is awaited, "
                     "or from memory of its own (memref.alloc)")  # fmt: skip
        elif isinstance(op, frag.CopyOp) and op.tma is not None and op.source in written:
            fail(op, "frag.copy tma: threads of this kernel write what it reads, and the copy "
                 "engine may not see that; write frag.copy async")  # fmt: skip
    if not stores:
        return
    _check_roles(function, memories)

    def wait_for(op: Operation, wait: Wait) -> None:
        read = "" if wait.written else ".read"
        state.ar.insert(ptx.SyncOp(f"cp.async.bulk.wait_group{read}", wait.pending))
        # to arrive all threads meet anyway, and to copy; of a slot the thread that copies says that
        # it is free
        if _writes_by_threads(op) or (is_store(op) and wait.written):
            state.wait_for_all()

    for op, wait in GroupWaits(function, memories).ahead.items():
        state.ahead[op] = lambda op=op, wait=wait: wait_for(op, wait)

    def wait_for_all(_end: Operation) -> None:
        """Shared memory lives as long as the block."""
        state.ar.insert(ptx.SyncOp("cp.async.bulk.wait_group", 0))

    state.at_end.append(wait_for_all)


# -- clusters --------------------------------------------------------------------------------------
# What is arranged for a function before it is lowered: its cluster, and waits for its copies.


def begin(lanes: Lanes, function: FuncOp) -> None:
    """Takes down the cluster of a function, and plans what waits for its copies by TMA."""
    state = lanes.state
    state.cluster = cluster_of(function)
    if state.cluster != (1, 1, 1):
        state.attributes[CLUSTER] = DenseArrayBase.from_list(i64, state.cluster)
        if all(_is_masked(op) for op in function.walk()):
            state.attributes[WHOLE_CLUSTERS] = UnitAttr()
    plan(lanes, function)


def _is_masked(op: Operation) -> bool:
    """Whether an operation touches nothing outside of global memory wherever its block stands."""
    accesses = accesses_of(op)
    if accesses is None or "masked" in op.properties or "tma" in op.properties:
        return op.name not in ("frag.lanes", "frag.pointer")
    return all(frag.is_shared(memory.type) for memory in (*accesses.reads(), *accesses.writes()))
