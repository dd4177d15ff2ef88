"""What the machine tells of a run: accesses, copies, barriers, as they happen.

`machine.hooks` holds who listens, in order; without anybody it is empty and the emulator does no
extra work.

Lanes are numbered flat over the machine: warp * 32 + lane, warps of one block being neighbours
(`machine.block_of[warp]`, `machine.place(warp)`). Positions are byte positions in the arena of a
space (`memory.globals`, `memory.shared`, `memory.local`); the shared memory of resident block b
begins at b * `memory.shared_stride`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fragir.emulator.machine.arena import AccessPattern, Spaces
from fragir.emulator.machine.lanes import LANES, Mask, Select
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.machine.tensor_work import (
    TensorAccess,
    TensorCommit,
    TensorStatement,
    TensorWork,
)
from fragir.emulator.machine.transfers import Copy, Issue, Transfer
from fragir.emulator.numbers.types import I64, Array, Bools

if TYPE_CHECKING:
    from fragir.emulator.machine.memory import Arena
    from fragir.ptx.tree import Instruction


AccessKind: TypeAlias = Literal["load", "store", "atomic"]
BarrierEvent: TypeAlias = Literal["arrive", "sync", "wait", "release"]
Event: TypeAlias = Literal[
    "init", "inval", "arrive", "expect", "complete", "phase", "test", "wait", "underflow"
]


@dataclass(slots=True)
class Access:
    """One instruction's access to memory by the lanes that take part, before it happens.

    `size`: bytes of each lane (whole vector; 16 for a row of ldmatrix or stmatrix). `address`: as
    the kernel sees it in `space` (global, shared, local or generic), one for each of `lanes` (flat
    numbers, in the same shape). `sel` and `mask` are what the step was called with. `pattern`:
    where the instruction has accessed memory like this before; `moved`: how far from its places.
    `found`: what `DeviceMemory.spaces` gives. `group`: what a check has made of it, for the next
    time: accesses that are the same may be one object.
    """

    kind: AccessKind
    instruction: Instruction
    space: str
    address: Array
    size: int
    lanes: I64
    sel: Select
    mask: Mask
    memory: DeviceMemory
    _parts: list[tuple[Arena, I64, I64]] | None = None
    found: Spaces | None = None
    pattern: AccessPattern | None = None
    moved: int = 0
    group: Any = None

    def parts(self) -> list[tuple[Arena, I64, I64]]:
        """(arena, byte positions, lanes) per space; several for generic addresses.

        Raises AccessFault where the access itself is about to.
        """
        if self._parts is None:
            self._parts = self._find_parts()
        return self._parts

    def _find_parts(self) -> list[tuple[Arena, I64, I64]]:
        memory = self.memory
        lanes = self.lanes
        if self.space == "shared" and self.address.shape != _shape(self.sel, self.mask, lanes):
            home = memory.shared_home.ravel()[lanes]
            return [(memory.shared, memory.locate_shared(self.address, home, self.size), lanes)]
        found = self.found
        if found is None:
            found = memory.spaces(self.space, self.address, self.sel, self.mask, self.size)
            self.found = found
        return [(arena, at, lanes if which is None else lanes[which]) for arena, at, which in found]


def _shape(sel: Select, mask: Mask, lanes: I64) -> tuple[int, ...]:
    return lanes.shape if mask is not None else (lanes.size // LANES, LANES)


class Observer:
    """Who listens to a machine: override what is of interest. Here nothing happens.

    A launch puts its blocks on the machine in waves, as many as there is room for. A process that
    runs some of the blocks has waves of its own, of these alone; `on_leave` says which warps of the
    wave that is divided it has not.
    """

    # -- memory ----------------------------------------------------------------------------------

    def on_access(self, access: Access) -> None:
        """ld, st, atom, red, ldmatrix, stmatrix, wmma.load, wmma.store: before the access."""

    def on_copy_issue(self, copy: Copy) -> None:
        """cp.async of many lanes is issued (not executed yet; see `Copy` for the positions)."""

    def on_copy_complete(self, copy: Copy) -> None:
        """cp.async, or the part of one that these lanes issued, has moved its bytes."""

    def on_transfer_issue(self, transfer: Transfer) -> None:
        """A bulk or tensor copy is issued by one lane (`Transfer.into`, `.reads`, `.signal`)."""

    def on_transfer_execute(self, transfer: Transfer) -> None:
        """A bulk or tensor copy is about to move its bytes."""

    def on_transfer_complete(self, transfer: Transfer) -> None:
        """A bulk or tensor copy has moved its bytes and signalled its mbarrier."""

    def on_leftover(self, copies: Sequence[Copy], transfers: Sequence[Transfer]) -> None:
        """Every lane has exited while these were pending."""

    def on_wgmma_issue(self, item: Issue) -> None:
        """A wgmma of some warpgroups is issued."""

    def on_wgmma_execute(self, item: Issue) -> None:
        """A wgmma is about to read its operands and to write its accumulator."""

    def on_wgmma_complete(self, item: Issue) -> None:
        """A wgmma has written its accumulator."""

    # -- tensor memory ---------------------------------------------------------------------------

    def on_tensor_meet(
        self, form: TensorStatement, name: str, lane: int, other: int | None
    ) -> None:
        """The warp of `lane` comes to alloc, dealloc or relinquish, by `name`; `other`: the
        resident block that it needs a warp of, too."""

    def on_tensor_allocate(self, block: int, first: int, count: int, lane: int) -> None:
        """A resident block has got columns of tensor memory, by the warp of `lane`."""

    def on_tensor_address(self, access: Access) -> None:
        """tcgen05.alloc is about to store the address of what it has got; behind `on_access`."""

    def on_tensor_free(self, block: int, first: int, count: int, lane: int) -> None:
        """A resident block is about to give columns of tensor memory back."""

    def on_tensor_access(self, access: TensorAccess) -> None:
        """A warp is about to load from tensor memory, or to store there."""

    def on_tensor_issue(self, work: TensorWork) -> None:
        """An mma, cp or shift of tcgen05 is issued."""

    def on_tensor_execute(self, work: TensorWork) -> None:
        """An mma, cp or shift of tcgen05 is about to read its operands and to write its result."""

    def on_tensor_commit(self, commit: TensorCommit) -> None:
        """A tcgen05.commit is issued."""

    def on_tensor_arrive(self, commit: TensorCommit, position: int) -> None:
        """What a tcgen05.commit is for is done; it arrives at the mbarrier at a position."""

    # -- synchronisation -------------------------------------------------------------------------

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        """bar, barrier, barrier.cluster: lanes arrive, arrive and wait (sync), or are let go.

        "wait" is told of clusters only, before lanes wait. "release" comes after every arrival of
        its phase and names all lanes that waited.
        """

    def on_wait(self, warp: int, mask: Bools) -> None:
        """Lanes `mask` of a warp wait at a collective for others that have not come yet."""

    def on_mbarrier(
        self,
        kind: Event,
        position: int,
        lanes: I64,
    ) -> None:
        """An mbarrier at a byte position of shared memory.

        init, inval, arrive, expect: by these lanes, before it happens; complete: transaction bytes
        of a copy that these lanes issued; phase: the phase is complete (no lanes); test: these
        lanes saw that it is not, wait: that it is; underflow: all have arrived, and more bytes
        than were expected.
        """

    def on_deadlock(self) -> list[str]:
        """What is known of those who wait; for the message."""
        return []

    # -- the life of a launch --------------------------------------------------------------------

    def on_launch_start(self) -> None:
        """Memory has its contents, and no block has begun."""

    def on_wave_start(self) -> None:
        """New blocks are put on the machine; registers and shared memory are as at a start."""

    def on_leave(self, warps: I64) -> None:
        """These warps of the wave go on in another process, and are not seen here any more."""

    def on_wave_end(self) -> None:
        """Every lane of the wave has exited."""

    def on_launch_end(self) -> None:
        """Every block has ended, in every process. Not told where the launch has failed."""
