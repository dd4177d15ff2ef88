"""Rings that roles fill and read side by side, or the tensor memory accelerator fills: mbarriers.

Each slot has two (PTX ISA 9.2, section 9.7.14.15). *Full*: whoever fills the slot arrives, and the
bytes that come by TMA count too; *empty*: whoever has read it arrives. Waiting is for the end of
the phase that the cursor's round has: readers wait for phase 0 of the first round; who fills waits
for the phase before that, which counts as over in a new mbarrier. The barriers are made at the top
of the kernel (`Engine.mbarriers`).

| filled by | arrivals at full |
|---|---|
| TMA | one, of the thread that starts the copies, with the bytes, where the slot is acquired |
| tiles, copies through registers, tcgen05.st | one a warp, when the slot is published |
| cp.async | one a thread, when its copies are complete (`cp.async.mbarrier.arrive.noinc`) |
| tcgen05.mma | one, when the products are done (`tcgen05.commit`) |

Empty takes one arrival a warpgroup where wgmma alone reads the slots, one where tcgen05.mma does,
else one a warp; of every block of the cluster where a part is multicast.

Of a pair of blocks the leader multiplies: the bytes of both count at its full barriers, and both
arrive at its empty ones of tensor memory; its commits arrive at those of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, UnitAttr, i1, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.rings import PART, carried_values
from fragir.errors import FragirError
from fragir.isa.versions import has
from fragir.layout.modes import WARP
from fragir.passes.lowering.arithmetic import Predicate, Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.pairs import BLOCKS as PAIR
from fragir.passes.lowering.pairs import LEADER
from fragir.passes.lowering.ring_use import use_of, users_of_memory
from fragir.passes.lowering.rings import FILL, NO_SLOT, READ, LaneRing, RingCursor, take
from fragir.passes.lowering.state import SharedPlace
from fragir.passes.lowering.tensor_copies import MBARRIER_BYTES, engine, expected_bytes, statement

WARPGROUP = 4 * WARP
TRY_WAIT = "mbarrier.try_wait"


class RingBarriers:
    """The mbarriers of one ring: full ones, then empty ones."""

    def __init__(self, lanes: Lanes, ring: LaneRing):
        self.lanes, self.ring = lanes, ring
        self.use = use_of(ring.value)
        if not self.use.tma and not has(TRY_WAIT, lanes.state.target):
            raise FragirError(
                f"roles wait for each other at this ring by {TRY_WAIT}, which "
                f"{lanes.state.target} does not have",
                hint="sm_90 and newer have it; for older machines fill and read the ring in code "
                "outside of roles, whose threads wait at bar.sync",
            )
        self.cluster = engine(lanes).blocks if self.use.multicast else 1
        self.told = PAIR if self.use.pair else self.cluster
        """Blocks to which a product's end is told."""
        self.full = engine(lanes).mbarriers(self._arrivals_at_full(), ring.slots)
        self.empty = engine(lanes).mbarriers(self._arrivals_at_empty(), ring.slots)
        turns = self._turns()
        self.counts, self.given = self.full, self.empty
        """Where the bytes of copies count, and slots are given back: of a pair at the leader's."""
        if self.use.pair and self.use.tma:
            self.counts = self._of_leader(self.full)
        elif self.use.pair:
            self.given = self._of_leader(self.empty)
        if turns is not None:
            from fragir.passes.lowering.ring_use import share_out  # few rings are

            share_out(lanes, turns, self._threads("frag.await"))
        hidden = lanes.state.hidden
        hidden[RingCursor(ring.value, FILL, phase=True)] = 1
        hidden[RingCursor(ring.value, READ, phase=True)] = 0

    # --- who arrives --------------------------------------------------------------------------

    def _threads(self, maker: str) -> list[int]:
        """The threads of each role that acquires, or awaits, slots of the ring."""
        roles = {
            role_of(use.operation): use.operation
            for use in self.ring.value.uses
            if use.operation.name == maker
        }
        return [threads_at(self.lanes, op) for op in roles.values()]

    def _arrivals_at_full(self) -> int:
        roles = self._threads("frag.acquire")
        if len(roles) > 1:
            raise FragirError(
                "several roles acquire slots of the ring", hint="give each a ring of its own"
            )
        threads, use = sum(roles), self.use
        if use.of_products:
            return 1
        plain = use.by_threads or not (use.tma or use.by_cp_async)
        arrivals = int(use.tma)
        if plain or self._waits_for_cp_async:
            arrivals += max(1, threads // WARP)
        if use.by_cp_async and not self._waits_for_cp_async:
            arrivals += threads
        return arrivals

    @property
    def _waits_for_cp_async(self) -> bool:
        """Whether cp.async is waited for before arriving: wgmma sees it by a fence behind it."""
        return self.use.by_cp_async and self.use.proxy

    def _arrivals_at_empty(self) -> int:
        each = WARPGROUP if self.use.by_wgmma else WARP
        if self.use.by_tensor_products:
            return self.cluster * len(self._threads("frag.await"))
        roles = [max(1, n // each) for n in self._threads("frag.await")]
        shared_out = self._turns() is not None  # then a slot goes to one role
        blocks = PAIR if self.use.pair else self.cluster
        return blocks * (max(roles, default=0) if shared_out else sum(roles))

    def _turns(self) -> frag.RingOp | None:
        """The ring, if roles share its slots out by turns."""
        made = self.ring.value.owner
        return made if isinstance(made, frag.RingOp) and made.turns is not None else None

    # --- addresses ----------------------------------------------------------------------------

    def _at(self, first: SharedPlace, slot: Value) -> SharedPlace:
        pointer, offset = first
        pointer, more = self.lanes.state.ar.offset(pointer, slot, MBARRIER_BYTES)
        return pointer, offset + more

    def counts_at(self, slot: Value) -> SharedPlace:
        """Where the mbarrier lies at which copies into a slot count."""
        return self._at(self.counts, slot)

    def _of_leader(self, place: SharedPlace) -> SharedPlace:
        """The same place in the shared memory of a pair's leader."""
        pointer, offset = place
        with self.lanes.state.ar.at_top():
            words = f"mapa.shared::cluster.u32 $0, $1, {LEADER}"
            (there,) = statement(self.lanes.state, words, (pointer,), (pointer.type,)).results
        return there, offset

    # --- operations ---------------------------------------------------------------------------

    def acquire(self, op: frag.AcquireOp) -> None:
        """Waits until the next slot is empty; says how many bytes TMA will bring."""
        slot = self._wait(FILL, self.empty)
        if self._may_lag(op):
            self.lanes.state.wait_for_all()
        if self.use.tma:
            starts = engine(self.lanes).starter
            total = sum(expected_bytes(copy, engine(self.lanes).blocks) for copy in _copies(op))
            if self.use.pair:
                starts, total = self._leads(starts), PAIR * total
            self._arrive(self._at(self.full, slot), starts, total)

    def _leads(self, thread: SSAValue) -> SSAValue:
        """Whether it is that thread, and of a pair's leader."""
        ar = self.lanes.state.ar
        rank = engine(self.lanes).cluster_rank()
        found = ar.predicate(ar.both(thread, ar.compare("eq", rank, LEADER)))
        assert found is not None
        return found

    def _may_lag(self, op: frag.AcquireOp) -> bool:
        """Whether threads of the role that fills slots may be rounds behind the one that starts
        the copies: nobody waits for them, and a phase two later looks as if none were over. Not
        even lanes of a warp go on together (PTX ISA 9.2, section 3.2).
        """
        readers = (use.operation for use in self.ring.value.uses)
        reads = any(x.name == "frag.await" and role_of(x) is role_of(op) for x in readers)
        return self._arrivals_at_full() == 1 and not reads

    def publish(self, slot: Value) -> None:
        """Arrives for what threads have written."""
        state, use = self.lanes.state, self.use
        place = self._at(self.full, slot)
        if use.of_products:
            self._commit(place)
            return
        if use.by_cp_async and not self._waits_for_cp_async:
            pointer, offset = place
            statement(
                state,
                f"cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0{_plus(offset)}]",
                (pointer,),
            )
        if self._waits_for_cp_async:
            state.ar.insert(ptx.SyncOp("cp.async.wait_all"))
        if use.by_threads or self._waits_for_cp_async or not (use.tma or use.by_cp_async):
            if use.proxy:
                state.ar.insert(ptx.SyncOp("fence.proxy.async.shared::cta"))
            self._arrive_as(place, WARP)

    def await_(self) -> None:
        """Waits until the next slot is full."""
        self._wait(READ, self.full)
        if self.use.by_tensor_products:  # one thread goes on, and no other is a round behind it
            self.lanes.state.wait_for_all()

    def drain(self, known: int | None) -> None:
        """Waits until all copies are complete, of `known` slots that nobody awaits.

        None where their number is not known: then as many as there are from cursor to cursor.
        """
        state, ring = self.lanes.state, self.ring
        if not self.use.tma:
            return
        if known is not None:
            for _ in range(known):
                self._wait(READ, self.full)
                take(state, ring, READ)
            return
        ar, read = state.ar, (RingCursor(ring.value, READ), RingCursor(ring.value, READ, True))
        fill = [state.hidden[RingCursor(ring.value, FILL, odd)] for odd in (False, True)]
        filled = ar.add(ar.mul(ar.xor(fill[1], 1), ring.slots), fill[0])
        starts = [ar.value(state.hidden[name]) for name in read]
        before = Block(arg_types=[value.type for value in starts])
        after = Block(arg_types=[value.type for value in starts])
        with ar.inside(before):
            index, phase = before.args
            here = ar.add(ar.mul(phase, ring.slots), index)
            more = ar.predicate(ar.compare("ne", here, filled))
            assert more is not None
            ar.insert(scf.ConditionOp(more, index, phase))
        with ar.inside(after):
            state.hidden.update(zip(read, after.args, strict=True))
            self._wait(READ, self.full)
            take(state, ring, READ)
            ar.insert(scf.YieldOp(*(ar.value(state.hidden[name]) for name in read)))
        types = [value.type for value in starts]
        ar.insert(scf.WhileOp(starts, types, Region(before), Region(after)))

    def tail(self) -> None:
        """Waits, where slots are filled, until all that were are free again: no other block may
        tell this one that when it has gone."""
        state, ar, ring = self.lanes.state, self.lanes.state.ar, self.ring
        if self.told == 1 or not self.use.by_tensor_products:
            return
        names = [RingCursor(ring.value, FILL, odd) for odd in (False, True)]
        starts = [ar.value(state.hidden[name]) for name in names]
        body = Block(arg_types=[IndexType(), *(value.type for value in starts)])
        state.hidden.update(zip(names, body.args[1:], strict=True))
        with ar.inside(body):
            self._wait(FILL, self.empty)
            take(state, ring, FILL)
            ar.insert(scf.YieldOp(*(ar.value(state.hidden[name]) for name in names)))
        loop = scf.ForOp(ar.value(0), ar.value(ring.slots), ar.value(1), starts, body)
        loop.attributes[ptx.NO_UNROLL] = UnitAttr()
        ar.insert(loop)

    def release(self, slot: Value, may_be_none: bool) -> None:
        """Arrives at empty, in all blocks that write the slot."""
        if self.use.by_tensor_products and not may_be_none:
            self._commit(self._at(self.empty, slot))
            return
        held: Predicate = True
        if may_be_none:
            held = self.lanes.state.ar.compare("ne", slot, NO_SLOT)
        if self.use.tma and not self.use.by_wgmma:
            # what threads have read the copy engine, another proxy, writes next (PTX ISA 9.2, 8.6)
            self.lanes.state.ar.insert(ptx.SyncOp("fence.proxy.async.shared::cta"))
        place = self._at(self.given, slot)
        self._arrive_as(place, WARPGROUP if self.use.by_wgmma else WARP, held)

    def _commit(self, place: SharedPlace) -> None:
        """Arrives when the products are done that the role has started."""
        from fragir.passes.lowering.tensor_memory import commit  # few programs need it

        commit(self.lanes, place, self.told)

    # --- instructions -------------------------------------------------------------------------

    def _wait(self, which: str, first: SharedPlace) -> Value:
        """Waits for the phase of a cursor; the slot there."""
        state = self.lanes.state
        slot = state.hidden[RingCursor(self.ring.value, which)]
        phase = state.hidden[RingCursor(self.ring.value, which, phase=True)]
        pointer, offset = self._at(first, slot)
        words = f"{TRY_WAIT}.parity.shared::cta.b64 $0, [$1{_plus(offset)}], "
        ar, before, after = state.ar, Block(), Block()
        with ar.inside(before):
            if isinstance(phase, int):
                (done,) = statement(state, f"{words}{phase}", (pointer,), (i1,)).results
            else:
                (done,) = statement(state, f"{words}$2", (pointer, phase), (i1,)).results
            (more,) = statement(state, "not.pred $0, $1", (done,), (i1,)).results
            ar.insert(scf.ConditionOp(more))
        with ar.inside(after):
            ar.insert(scf.YieldOp())
        ar.insert(scf.WhileOp([], [], Region(before), Region(after)))
        return slot

    def _arrive_as(self, place: SharedPlace, group: int, held: Predicate = True) -> None:
        """One arrival for each warp or warpgroup of the role; all its threads are here."""
        state, ar = self.lanes.state, self.lanes.state.ar
        if group == WARP:
            state.ar.insert(ptx.SyncOp("bar.warp.sync", -1))
        number = ar.rem(state.hardware.thread, group)
        if self.cluster == 1:
            first = ar.predicate(ar.both(ar.compare("eq", number, 0), held))
            if self.use.pair:
                self._arrive_there(place, first)
            else:
                self._arrive(place, first)
            return
        each = ar.predicate(ar.both(ar.below(number, self.cluster), held))
        block = ar.value(number)
        pointer, offset = place
        words = "mapa.shared::cluster.u32 $0, $1, $2"
        (remote,) = statement(state, words, (pointer, block), (i32,), each).results
        self._arrive_there((remote, offset), each)

    def _arrive_there(self, place: SharedPlace, thread: SSAValue | None) -> None:
        """An arrival at an mbarrier of any block of the cluster."""
        pointer, offset = place
        # without .release.cluster, which ptxas makes a fence of the whole GPU
        words = f"mbarrier.arrive.shared::cluster.b64 _, [$0{_plus(offset)}]"
        statement(self.lanes.state, words, (pointer,), predicate=thread)

    def _arrive(self, place: SharedPlace, thread: SSAValue | None, total: int = 0) -> None:
        pointer, offset = place
        how, more = ("arrive.expect_tx", f", {total}") if total else ("arrive", "")
        words = f"mbarrier.{how}.shared::cta.b64 _, [$0{_plus(offset)}]{more}"
        statement(self.lanes.state, words, (pointer,), predicate=thread)


def _copies(op: frag.AcquireOp) -> Iterator[frag.CopyOp]:
    """The copies by TMA into a slot that is acquired."""
    for slot in carried_values(op.slot):
        for use in slot.uses:
            if use.operation.name == PART:
                for user in users_of_memory(use.operation.results[0]):
                    if isinstance(user, frag.CopyOp) and user.tma is not None:
                        if user.parent is not op.parent:
                            raise FragirError(
                                "a slot is acquired here, and copied to by TMA in another loop or "
                                "branch",
                                hint="write frag.copy tma next to frag.acquire: what lies outside "
                                "of memory is read as zero",
                            )
                        yield user


def threads_at(lanes: Lanes, op: Operation) -> int:
    """The threads that execute an operation: those of its role, or of the block."""
    region = role_of(op)
    if region is None:
        return lanes.threads
    roles = region.parent
    assert isinstance(roles, frag.RolesOp)
    return next(role.threads for role in roles.roles() if role.body is region)


def _plus(offset: int) -> str:
    return f"+{offset}" if offset else ""
