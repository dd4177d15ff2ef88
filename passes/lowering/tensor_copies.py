"""`frag.copy tma`: boxes of tensor maps between global and shared memory.

One thread starts the copies. Those into memory of a ring's slot count at the slot's mbarrier
(`LoweringState.full`); others, of which those that follow each other make a run, at one of the
run's own, at which all threads arrive and wait. Copies to global memory are a group of the
starting thread, for which later operations wait (`fragir.passes.lowering.bulk_groups`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.memory_layout import halved_dimension
from fragir.dialects.frag.tensor_copies import (
    UNIT,
    MatrixCopy,
    at_no_box,
    check_column,
    tensor_copy,
)
from fragir.dialects.interfaces import LOWERINGS, root_of
from fragir.dialects.ptx.tensor_maps import RECORDS, TensorMapRecord, TensorMapType, record_list
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.tensor_boxes import BoxCopies
from fragir.isa.versions import has, lowest_version
from fragir.passes.lowering.arithmetic import Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import MemoryPlace, shared_address
from fragir.passes.lowering.state import LoweringState, SharedPlace

# -- engine ----------------------------------------------------------------------------------------
# What copies by the tensor memory accelerator need of a kernel: a thread that starts them,
# mbarriers, tensor maps, and blocks of a cluster that wait for each other.

LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
LOAD_HERE = LOAD.replace("cluster", "cta")
MULTICAST = f"{LOAD}.multicast::cluster"
STORE = "cp.async.bulk.tensor.{}d.global.shared::cta.tile.bulk_group"
ADD = "cp.reduce.async.bulk.tensor.{}d.global.shared::cta.add.tile.bulk_group"
MBARRIER_BYTES = 8


def statement(
    state: LoweringState,
    text: str,
    inputs: Sequence[SSAValue] = (),
    results: Sequence[Attribute] = (),
    predicate: SSAValue | None = None,
) -> Operation:
    """A statement of PTX, inserted; `predicate` says for which threads."""
    return state.ar.insert(ptx.InstructionOp(text, inputs, results, predicate=predicate))


class Engine:
    """What one kernel has for its copies, made when the first of them is lowered."""

    def __init__(self, state: LoweringState):
        if not has(LOAD.format(2), state.target):
            raise FragirError(
                f"{state.target} has no tensor memory accelerator",
                hint="sm_90 and newer have one; on older machines threads copy: frag.copy async "
                "into shared memory, frag.load and frag.store out of it, rings outside of roles",
            )
        self.state = state
        self.records: list[TensorMapRecord] = []
        self._maps: dict[TensorMapRecord, SSAValue] = {}
        self._barriers: ptx.SharedOp | None = None
        self._fence: Operation | None = None
        self._count = 0
        self._leaves_together = False
        self.barrier: SharedPlace | None = None
        """That of the copies that follow each other now."""

    # --- threads ------------------------------------------------------------------------------

    @property
    def starter(self) -> SSAValue:
        """Whether this thread is the one, of the block or of the role, that starts copies."""
        return _is_first(self.state, self.state.hardware)

    @property
    def blocks(self) -> int:
        """The blocks of a cluster."""
        return prod(self.state.cluster)

    def cluster_rank(self) -> SSAValue:
        """The block's number in its cluster."""
        return self.state.hardware.special("cluster_ctarank", "rank")

    def meet_in_cluster(self) -> None:
        """All threads of all blocks of the cluster wait for each other."""
        self.state.ar.insert(ptx.SyncOp("barrier.cluster.arrive.aligned"))
        self.state.ar.insert(ptx.SyncOp("barrier.cluster.wait.aligned"))

    def leave_together(self) -> None:
        """No block of the cluster ends while another may still arrive at its mbarriers."""
        if self.blocks > 1 and not self._leaves_together:
            self._leaves_together = True
            self.state.at_end.append(lambda _: self.meet_in_cluster())

    def load(self, dimensions: int, blocks: int) -> str:
        """The opcode of a copy into the memory of one block, or of so many of a cluster.

        That of one block is in PTX from 8.6 on; where machines are as new ptxas makes a routine of
        the other, beside which setmaxnreg is ignored (13.2, sm_120).
        """
        if blocks > 1:
            return MULTICAST.format(dimensions)
        here, anywhere = LOAD_HERE.format(dimensions), LOAD.format(dimensions)
        target = self.state.target
        same = lowest_version(here, target) == lowest_version(anywhere, target)
        return here if same else anywhere

    # --- mbarriers ----------------------------------------------------------------------------

    def mbarriers(self, arrivals: int, count: int = 1) -> SharedPlace:
        """New mbarriers of so many arrivals, side by side: where the first one lies.

        They are initialised at the top of the kernel by one thread, before all others go on (PTX
        ISA 9.2, section 9.7.14.15).
        """
        state, ar = self.state, self.state.ar
        with ar.at_top():
            first = _is_first(state, Hardware(ar, state.block_threads))
            if self._barriers is None:
                self._barriers = ar.insert(ptx.SharedOp(0), "mbarriers")
                self._fence = statement(
                    state, "fence.mbarrier_init.release.cluster", predicate=first
                )
                if self.blocks > 1:
                    self.meet_in_cluster()
                else:
                    ar.insert(ptx.SyncOp("bar.sync", 0))
        barriers, fence = self._barriers, self._fence
        assert fence is not None
        block = fence.parent
        assert block is not None
        start = self._count
        self._count += count
        barriers.bytes = IntegerAttr(MBARRIER_BYTES * self._count, i64)
        for number in range(start, self._count):
            place = f"$0+{MBARRIER_BYTES * number}" if number else "$0"
            text = f"mbarrier.init.shared::cta.b64 [{place}], {arrivals}"
            made = ptx.InstructionOp(text, (barriers.pointer,), predicate=first)
            made.location = fence.location
            block.insert_op_before(made, fence)
        return barriers.pointer, MBARRIER_BYTES * start

    def ahead(self, text: str, inputs: Sequence[SSAValue], predicate: SSAValue) -> None:
        """A statement at the top of the kernel, behind which all threads meet; its operands are
        known before the mbarriers are."""
        fence = self._fence
        assert fence is not None, "a ring's mbarriers come first"
        block = fence.parent
        assert block is not None
        made = ptx.InstructionOp(text, inputs, predicate=predicate)
        made.location = fence.location
        block.insert_op_before(made, fence)

    def words(self, count: int) -> SharedPlace:
        """Shared memory beside the mbarriers for so many pairs of words, which nobody sets."""
        barriers, start = self._barriers, self._count
        assert barriers is not None, "a ring's mbarriers come first"
        self._count += count
        barriers.bytes = IntegerAttr(MBARRIER_BYTES * self._count, i64)
        return barriers.pointer, MBARRIER_BYTES * start

    # --- tensor maps --------------------------------------------------------------------------

    def tensor_map(self, record: TensorMapRecord, name: str | None) -> SSAValue:
        """A tensor map as a parameter of the kernel; the same record gives the same, whether it is
        for loads or for stores."""
        key = record._replace(written=False)
        found = self._maps.get(key)
        if found is not None and record.written and record not in self.records:
            self.records[self.records.index(key)] = record
            self.state.attributes[RECORDS] = record_list(self.records)
        if found is None:
            ar = self.state.ar
            entry = ar.blocks[0]
            found = entry.insert_arg(TensorMapType(), len(entry.args))
            found.name_hint = f"{name or 'arg'}_map"
            self._maps[key] = found
            self.records.append(record)
            self.state.attributes[RECORDS] = record_list(self.records)
            with ar.at_top():
                first = _is_first(self.state, Hardware(ar, self.state.block_threads))
                statement(self.state, "prefetch.tensormap [$0]", (found,), predicate=first)
        return found


def _is_first(state: LoweringState, hardware: Hardware) -> SSAValue:
    first = state.ar.predicate(state.ar.compare("eq", hardware.thread, 0))
    assert first is not None
    return first


def engine(lanes: Lanes) -> Engine:
    """That of the function that is lowered."""
    found = lanes.state.of_subject.get("engine")
    if found is None:
        found = lanes.state.of_subject["engine"] = Engine(lanes.state)
    assert isinstance(found, Engine)
    return found


def expected_bytes(op: frag.CopyOp, blocks: int) -> int:
    """The bytes that arrive in each block's shared memory by a `frag.copy tma` in a function whose
    clusters have so many blocks."""
    boxes = _boxes(tensor_copy(op), op, blocks)
    rows, cols = boxes.box
    bits = ptx.bits(memref_type(op.target.type).element_type)
    return len(boxes.places) * rows * cols * bits // 8


def _boxes(found: MatrixCopy, op: frag.CopyOp, blocks: int) -> BoxCopies:
    return found.boxes(1 if op.multicast is None else blocks)


def copy(lanes: Lanes, op: frag.CopyOp) -> None:
    """`frag.copy tma`, either way."""
    found = tensor_copy(op)
    memory = found.memory
    if not isinstance(memory, BlockArgument) or not isinstance(
        memory.block.parent_op(), func.FuncOp
    ):
        raise FragirError(
            "a tensor map is made at launch, of an argument of the function",
            hint="copy from the argument itself; frag.copy async copies from any memory",
        )
    _map(lanes, found, _boxes(found, op, engine(lanes).blocks))  # fetched ahead of all waits
    _check_column(lanes, found)
    if not found.to_shared:
        _store(lanes, op, found)
    elif is_of_ring(found.shared):
        full = lanes.state.full.get(found.shared)
        if full is None:
            raise FragirError("the ring has no mbarrier at which its copies could count")
        if op.multicast is not None:
            engine(lanes).leave_together()  # readers tell all blocks that a slot is free
        _load(lanes, op, found, full)
    else:
        _load_and_wait(lanes, op, found)


# --- into shared memory ---------------------------------------------------------------------------


def _load_and_wait(lanes: Lanes, op: frag.CopyOp, found: MatrixCopy) -> None:
    """A copy of a run, which ends when all bytes are there."""
    state, started = lanes.state, engine(lanes)
    run = run_of(op)
    if op is run[0]:
        started.barrier = started.mbarriers(state.threads)
        if started.blocks > 1 and any(o.multicast is not None for o in run):
            if state.threads != state.block_threads:
                raise FragirError(
                    "all threads of the cluster wait for each other ahead of a multicast, and a "
                    "role is not all of them",
                    hint="copy into slots of a ring",
                )
            started.meet_in_cluster()  # nobody reads any more what others are about to write
        text = _Text()
        total = sum(expected_bytes(o, started.blocks) for o in run)
        at = text.address(*started.barrier)
        words = f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{at}], {total}"
        statement(state, words, text.inputs, predicate=started.starter)
    assert started.barrier is not None
    _load(lanes, op, found, started.barrier)
    if op is run[-1]:
        _arrive_and_wait(lanes, started.barrier)


def _load(lanes: Lanes, op: frag.CopyOp, found: MatrixCopy, full: SharedPlace) -> None:
    """Starts the copies of all boxes, or of this block's share."""
    started = engine(lanes)
    blocks = 1 if op.multicast is None else started.blocks
    boxes = _boxes(found, op, blocks)
    opcode = started.load(len(found.indices), blocks)
    halved = halved_dimension(memref_type(op.target.type))
    pair = root_of(op.target) in lanes.state.of_pair
    if pair:  # whose mbarrier may be the other block's
        opcode = f"{LOAD.format(len(found.indices))}.cta_group::2"
    mask = "" if blocks == 1 else f", {(1 << blocks) - 1}"
    map_ = _map(lanes, found, boxes)
    for place, predicate in _shares(lanes, boxes, blocks):
        text = _Text()
        shared = text.address(*_address(lanes, found, place))
        if halved is not None:
            place = _in_own_half(lanes, found, place, halved)
        box = f"{text.place(map_)}, {{{', '.join(map(text.place, _at(lanes, found, place)))}}}"
        words = f"{opcode} [{shared}], [{box}], [{text.address(*full)}]{mask}"
        statement(lanes.state, words, text.inputs, predicate=predicate)


class BoxPlace(NamedTuple):
    """Where a box begins: row and column of the matrix, byte of its memory."""

    row: Value
    col: Value
    byte: Value


def _in_own_half(lanes: Lanes, found: MatrixCopy, place: BoxPlace, halved: int) -> BoxPlace:
    """Where a box begins in what this block of a pair has of a matrix, the rows or columns `halved`
    behind the other's half."""
    ar = lanes.state.ar
    size = memref_type(found.shared.type).get_shape()[halved] // 2
    moved = ar.mul(engine(lanes).cluster_rank(), size)
    if (halved == 0) != found.is_turned:
        return place._replace(row=ar.add(place.row, moved))
    return place._replace(col=ar.add(place.col, moved))


def _shares(lanes: Lanes, boxes: BoxCopies, blocks: int) -> Iterator[tuple[BoxPlace, SSAValue]]:
    """What this block copies, and the predicate of the thread that starts it."""
    started, ar, places = engine(lanes), lanes.state.ar, boxes.places
    starter = started.starter
    step = _share_step(places, blocks)
    if blocks == 1:
        yield from ((BoxPlace(*place), starter) for place in places)
    elif step is not None:
        rank = started.cluster_rank()
        for place in places[: len(places) // blocks]:
            moved = [ar.add(x, ar.mul(rank, by)) for x, by in zip(place, step, strict=True)]
            yield BoxPlace(*moved), starter
    else:
        for number, place in enumerate(places):
            mine = ar.compare("eq", started.cluster_rank(), number % blocks)
            predicate = ar.predicate(ar.both(starter, mine))
            assert predicate is not None
            yield BoxPlace(*place), predicate


def _share_step(places: Sequence[tuple[int, int, int]], blocks: int) -> tuple[int, ...] | None:
    """How far one block's share is from the next one's; None where they differ in that."""
    each = len(places) // blocks
    if not each or len(places) % blocks:
        return None
    steps = {
        tuple(b - a for a, b in zip(places[n], places[n + each], strict=True))
        for n in range(len(places) - each)
    }
    return steps.pop() if len(steps) == 1 else None


def _arrive_and_wait(lanes: Lanes, barrier: SharedPlace) -> None:
    """All threads arrive and wait for the phase that they arrive in (PTX ISA 9.2, section
    9.7.14.15): it ends when all threads are here and all bytes."""
    ar = lanes.state.ar
    pointer, offset = barrier
    at = f"$1+{offset}" if offset else "$1"
    words = f"mbarrier.arrive.shared::cta.b64 $0, [{at}]"
    (phase,) = statement(lanes.state, words, (pointer,), (i64,)).results
    true = ar.literal(IntegerAttr(1, i1))
    before, after = Block(), Block()
    with ar.inside(before):
        words = f"mbarrier.try_wait.shared::cta.b64 $0, [{at}], $2"
        (done,) = statement(lanes.state, words, (pointer, phase), (i1,)).results
        ar.insert(scf.ConditionOp(ar.insert(arith.XOrIOp(done, true)).result))
    with ar.inside(after):
        ar.insert(scf.YieldOp())
    ar.insert(scf.WhileOp([], [], Region(before), Region(after)))


# --- to global memory -----------------------------------------------------------------------------


def _store(lanes: Lanes, op: frag.CopyOp, found: MatrixCopy) -> None:
    """Starts the copies once all threads have written; those of a run are one group."""
    run = run_of(op)
    if op is run[0]:
        meet(lanes)
    boxes = found.boxes()
    map_ = _map(lanes, found, boxes)
    for place, predicate in _shares(lanes, boxes, 1):
        text = _Text()
        box = f"{text.place(map_)}, {{{', '.join(map(text.place, _at(lanes, found, place)))}}}"
        shared = text.address(*_address(lanes, found, place))
        opcode = (STORE if op.add is None else ADD).format(len(found.indices))
        words = f"{opcode} [{box}], [{shared}]"
        statement(lanes.state, words, text.inputs, predicate=predicate)
    if op is run[-1]:
        lanes.state.ar.insert(ptx.SyncOp("cp.async.bulk.commit_group"))


def meet(lanes: Lanes) -> None:
    """All threads wait for each other, and the copy engine sees what they have written."""
    barrier = LOWERINGS.of(frag.BarrierOp)
    assert barrier is not None
    barrier(lanes, frag.BarrierOp())


# --- statements -----------------------------------------------------------------------------------


class _Text:
    """The inputs of a statement, and how it names them; numbers stand in it as they are."""

    def __init__(self) -> None:
        self.inputs: list[SSAValue] = []

    def place(self, value: Value) -> str:
        if isinstance(value, int):
            return str(value)
        if value not in self.inputs:
            self.inputs.append(value)
        return f"${self.inputs.index(value)}"

    def address(self, pointer: SSAValue, offset: int) -> str:
        return self.place(pointer) + (f"+{offset}" if offset else "")


def _address(lanes: Lanes, found: MatrixCopy, place: BoxPlace) -> SharedPlace:
    """Where a box lies in shared memory."""
    state, ar = lanes.state, lanes.state.ar
    shared = state.memories[found.shared]
    if shared.bits < 8:
        from fragir.passes.lowering.packed import in_units  # few programs need it

        shared = in_units(ar, shared, len(shared.shape) - 1)
    assert shared.layout is not None
    at = (*state.indices(found.slot), 0, 0)
    matrix = MemoryPlace((NOWHERE,) * len(at), at)
    pointer, offset = shared_address(ar, shared, shared.layout, matrix, (0,) * len(at))
    pointer, more = ar.offset(pointer, place.byte)
    return pointer, offset + more


def _at(lanes: Lanes, found: MatrixCopy, place: BoxPlace) -> list[Value]:
    """The coordinates of a box, innermost first."""
    ar = lanes.state.ar
    *leading, first, second = lanes.state.indices(found.indices)
    row, col = (second, first) if found.is_turned else (first, second)
    return [ar.add(col, place.col), ar.add(row, place.row), *reversed(leading)]


def _map(lanes: Lanes, found: MatrixCopy, boxes: BoxCopies) -> SSAValue:
    memory = found.memory
    assert isinstance(memory, BlockArgument)
    record = TensorMapRecord(
        memory.index,
        (*[1] * (len(found.indices) - 2), *boxes.box),
        boxes.swizzle,
        element_name(memref_type(memory.type).element_type),
        found.is_turned,
        written=not found.to_shared,
    )
    return engine(lanes).tensor_map(record, memory.name_hint)


# --- runs -----------------------------------------------------------------------------------------


def run_of(op: frag.CopyOp) -> list[frag.CopyOp]:
    """The copies that go the same way and follow each other, nothing between them."""
    before, behind = _beside(op, back=True), _beside(op, back=False)
    return [*reversed(list(before)), op, *behind]


def _beside(op: frag.CopyOp, *, back: bool) -> Iterator[frag.CopyOp]:
    """The others of a run on one side of a copy, the nearest first."""
    way = _way(op)
    other = op.prev_op if back else op.next_op
    while other is not None:
        if isinstance(other, frag.CopyOp) and _way(other) == way:
            yield other
        elif not (isinstance(other, memref.AllocOp) or is_side_effect_free(other)):
            return
        other = other.prev_op if back else other.next_op


def _way(op: frag.CopyOp) -> str:
    if op.tma is None:
        return "by threads"
    if not frag.is_shared(op.target.type):
        return "out" if op.add is None else "added"
    return "ring" if is_of_ring(op.target) else "in"


def _check_column(lanes: Lanes, found: MatrixCopy) -> None:
    """FragirError where a box is known to begin inside of 16 bytes of a row."""
    type_ = memref_type(found.memory.type)
    column = lanes.state.indices(found.indices)[found.along]
    check_column(type_, column)
    base, rest = lanes.state.ar.parts(column)
    step = 8 * UNIT // ptx.bits(type_.element_type)
    if lanes.state.ar.divisor(base) % step == 0 and rest % step:
        raise at_no_box(
            type_, f"begins {rest % step} elements behind a multiple of {step} in a row"
        )


def is_of_ring(memory: SSAValue) -> bool:
    """Whether shared memory is, or is a view of, a part of a slot."""
    owner = root_of(memory).owner
    return isinstance(owner, Operation) and owner.name == "frag.part"
