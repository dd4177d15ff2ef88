"""Tensor memory at lane level: its allocation, and what tells that products are done.

A kernel allocates the columns of all its rings at the top, by its first warp, and frees them at
the end, when all threads are there. One thread of a role starts the role's products, and what
tells others that they are done (tcgen05.commit): that orders only what its own thread has started
(PTX ISA 9.2, section 9.7.16.6.5).
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i1, i16
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.tensor_memory import columns_of
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has, requirement
from fragir.layout.modes import WARP
from fragir.passes.lowering.arithmetic import INDEX, Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.pairs import group_of
from fragir.passes.lowering.state import SharedPlace
from fragir.passes.lowering.tensor_copies import engine, statement

SUBJECT = "tensor memory"
"""What `LoweringState.of_subject` knows it by."""
COLUMNS, LEAST_COLUMNS = 512, 32
"""Columns of tensor memory, and the fewest that are allocated (section 9.7.16.7.1)."""
ALLOC = "tcgen05.alloc.cta_group::{}.sync.aligned.shared::cta.b32"
RELINQUISH = "tcgen05.relinquish_alloc_permit.cta_group::{}.sync.aligned"
DEALLOC = "tcgen05.dealloc.cta_group::{}.sync.aligned.b32"
COMMIT = "tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster"


class TensorColumns:
    """What a kernel holds of it."""

    def __init__(self, lanes: Lanes):
        self.lanes = lanes
        self.first: dict[SSAValue, list[int]] = {}
        """Of a ring, the columns at which the parts of slot 0 begin."""
        self.steps: dict[SSAValue, int] = {}
        """Of a ring, columns from one slot to the next."""
        state, ar = lanes.state, lanes.state.ar
        alloc = ALLOC.format(1)
        if not has(alloc, state.target):
            raise FragirError(
                f"{state.target} has no tensor memory",
                hint=f"{', '.join(requirement(alloc).targets)} have",
            )
        self.group = group_of(lanes)
        """Blocks whose tensor memory goes together: all tcgen05 of a kernel say the same."""
        rings = [op for op in state.operations if isinstance(op, frag.RingOp)]
        self._columns = self._place(rings)
        self._base: SSAValue | None = None
        with ar.at_top():
            warp = Hardware(ar, state.block_threads).axis("warp")
            first = ar.predicate(ar.compare("eq", warp, 0))
        assert first is not None
        self._first_warp = first
        state.at_end.append(self._end)

    def allocate(self) -> None:
        """Allocates the columns, once there are mbarriers, whose threads meet behind it too."""
        if self._base is not None:
            return
        state, known = self.lanes.state, engine(self.lanes)
        pointer, offset = known.words(1)
        place = f"$0+{offset}"
        alloc = f"{ALLOC.format(self.group)} [{place}], {self._columns}"
        relinquish = RELINQUISH.format(self.group)
        if self.group == 1:
            known.ahead(alloc, (pointer,), self._first_warp)
            known.ahead(relinquish, (), self._first_warp)
        with state.ar.at_top():
            if self.group > 1:  # behind the barrier that tells that the other block has begun
                statement(state, alloc, (pointer,), predicate=self._first_warp)
                statement(state, relinquish, predicate=self._first_warp)
                state.ar.insert(ptx.SyncOp("bar.sync", 0))
            words = f"ld.shared.b32 $0, [{place.replace('$0', '$1')}]"
            (self._base,) = statement(state, words, (pointer,), (INDEX,)).results
            self._base.name_hint = "columns"

    @property
    def base(self) -> SSAValue:
        """The address of its first lane and column."""
        assert self._base is not None, "it is allocated with the first ring"
        return self._base

    def _place(self, rings: list[frag.RingOp]) -> int:
        """Gives each ring its columns; how many are allocated."""
        total = 0
        for op in rings:
            parts = [memref_type(part) for part in op.ring.type.parts]
            if frag.is_tensor_memory(parts[0]):
                first: list[int] = []
                start = total
                for part in parts:
                    first.append(total)
                    total += columns_of(part)
                self.first[op.ring], self.steps[op.ring] = first, total - start
                total += (op.count - 1) * (total - start)
        if total > COLUMNS:
            raise FragirError(
                f"the rings take {total} columns of tensor memory, which has {COLUMNS}",
                hint="take fewer slots, or smaller tiles",
            )
        return max(LEAST_COLUMNS, 1 << (total - 1).bit_length())

    def _end(self, _: Operation) -> None:
        if self.group > 1:  # the other block's loads and products are over, too
            engine(self.lanes).meet_in_cluster()
        else:
            self.lanes.state.ar.insert(ptx.SyncOp("bar.sync", 0))
        text = f"{DEALLOC.format(self.group)} $0, {self._columns}"
        statement(self.lanes.state, text, (self.base,), predicate=self._first_warp)

    def part(self, ring: SSAValue, slot: Value, number: int, memory: SSAValue) -> None:
        """The part of a slot lies where the slot's number says; its pointer is that address."""
        state, ar, type_ = self.lanes.state, self.lanes.state.ar, memref_type(memory.type)
        start = ar.add(ar.mul(slot, self.steps[ring]), self.first[ring][number])
        address = ar.value(ar.add(self.base, start))
        state.memories[memory] = LaneMemory(address, type_.get_shape(), (), type_.element_type)


def tensor_memory(lanes: Lanes) -> TensorColumns:
    """That of the function that is lowered, one of whose rings is of it."""
    found = lanes.state.of_subject.get(SUBJECT)
    if found is None:
        found = lanes.state.of_subject[SUBJECT] = TensorColumns(lanes)
    assert isinstance(found, TensorColumns)
    return found


def starter(lanes: Lanes) -> SSAValue:
    """Whether this thread is the one of the role that starts products, and commits them: the one
    that its first warp elects, by which ptxas knows that it is one (else it goes through all 32).
    """
    state, ar = lanes.state, lanes.state.ar
    text = "elect.sync _|$0, 4294967295"
    leader = ar.pure(("elected",), (), lambda: ptx.InstructionOp(text, (), (i1,)), "leader")
    if state.threads <= WARP:
        return leader
    found = ar.predicate(ar.both(ar.compare("eq", state.hardware.axis("warp"), 0), leader))
    assert found is not None
    return found


def commit(lanes: Lanes, place: SharedPlace, blocks: int = 1) -> None:
    """One arrival at an mbarrier when the products that this role has started are done; at that of
    each of so many blocks of the cluster."""
    pointer, offset = place
    opcode, at = COMMIT.format(tensor_memory(lanes).group), f"[$0{f'+{offset}' if offset else ''}]"
    if blocks == 1:
        text, operands = f"{opcode}.b64 {at}", (pointer,)
    else:
        ar = lanes.state.ar
        mask = ar.literal(IntegerAttr((1 << blocks) - 1, i16))
        text, operands = f"{opcode}.multicast::cluster.b64 {at}, $1", (pointer, mask)
    statement(lanes.state, text, operands, predicate=starter(lanes))
