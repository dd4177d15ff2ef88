"""What copies by the tensor memory accelerator need of a kernel: a thread that starts them,
mbarriers, tensor maps, and blocks of a cluster that wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.ptx.tensor_maps import RECORDS, TensorMapRecord, TensorMapType, record_list
from fragir.errors import FragirError
from fragir.isa.versions import has, lowest_version
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.state import LoweringState, SharedPlace

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
