"""Where checks look at a kernel that runs: what the machine tells them, and when.

A check is a subclass of `Hooks` that overrides what it needs. `machine.hooks` holds the checks of
a launch in order; without checks it is empty and the emulator does no extra work: steps are wrapped
when they are decoded, and only where a check asks for it.

Lanes are numbered flat over the machine: warp * 32 + lane, warps of one block being neighbours
(`machine.block_of[warp]`, `machine.place(warp)`). Positions are byte positions in the arena of a
space (`memory.globals`, `memory.shared`, `memory.local`); the shared memory of resident block b
begins at b * `memory.shared_stride`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.common import I64, LANES, Mask, Step, count_of, kind_of, width_of
from fragir.emulator.report import PERFORMANCE, Finding, Severity

if TYPE_CHECKING:
    from fragir.emulator.instructions.decode import Decoder, Place
    from fragir.emulator.instructions.wgmma import Issue
    from fragir.emulator.machine.asynchronous import Copy, Transfer
    from fragir.emulator.machine.memory import Arena
    from fragir.emulator.machine.scheduler import Terminator
    from fragir.emulator.machine.state import Machine
    from fragir.emulator.program.program import Program
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
    numbers, in the same shape). `sel` and `mask` are what the step was called with.
    """

    kind: AccessKind
    instruction: Instruction
    space: str
    address: npt.NDArray[Any]
    size: int
    lanes: I64
    sel: Any
    mask: Mask
    machine: Machine
    _parts: list[tuple[Arena, I64, I64]] | None = None

    def parts(self) -> list[tuple[Arena, I64, I64]]:
        """(arena, byte positions, lanes) per space; several for generic addresses.

        Raises AccessFault where the access itself is about to.
        """
        if self._parts is None:
            self._parts = self._find_parts()
        return self._parts

    def _find_parts(self) -> list[tuple[Arena, I64, I64]]:
        memory = self.machine.memory
        lanes = self.lanes
        if self.space == "shared" and self.address.shape != _shape(self.sel, self.mask, lanes):
            home = memory.shared_home.ravel()[lanes]
            return [(memory.shared, memory.locate_shared(self.address, home, self.size), lanes)]
        found = memory.spaces(self.space, self.address, self.sel, self.mask, self.size)
        return [(arena, at, lanes if which is None else lanes[which]) for arena, at, which in found]


def _shape(sel: Any, mask: Mask, lanes: I64) -> tuple[int, ...]:
    return lanes.shape if mask is not None else (lanes.size // LANES, LANES)


class Hooks:
    """A check: override what it needs to see. Nothing is called that is not overridden."""

    machine: Machine

    # -- when the program is decoded -----------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        """Put something around a step. `group`: its instruction, or neighbouring independent mma.

        The step is called for the lanes whose guard holds. `d` can still be asked for operands.
        """
        return step

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        """The same for a guarded instruction with its guard (called with all lanes there)."""
        return step

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        """Put something around a branch, call, ret, exit, bar or barrier (its guard included)."""
        return terminator

    # -- memory ----------------------------------------------------------------------------------

    def on_access(self, access: Access) -> None:
        """ld, st, atom, red, ldmatrix, stmatrix, wmma.load, wmma.store: before the access."""

    def on_copy_issue(self, copy: Copy) -> None:
        """cp.async of many lanes is issued (not executed yet; see `Copy` for the positions)."""

    def on_copy_complete(self, copy: Copy) -> None:
        """cp.async, or the part of one that these lanes issued, has moved its bytes."""

    def on_transfer_issue(self, transfer: Transfer) -> None:
        """A bulk or tensor copy is issued by one lane (`Transfer.into`, `.reads`, `.signal`)."""

    def on_transfer_complete(self, transfer: Transfer) -> None:
        """A bulk or tensor copy has moved its bytes and signalled its mbarrier."""

    def on_leftover(self, copies: Sequence[Copy], transfers: Sequence[Transfer]) -> None:
        """Every lane has exited while these were pending."""

    def on_wgmma_issue(self, item: Issue) -> None:
        """A wgmma of some warpgroups is issued."""

    def on_wgmma_execute(self, item: Issue) -> None:
        """A wgmma is about to read its operands and to write its accumulator."""

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

    def on_wave(self) -> None:
        """New blocks are put on the machine; registers and shared memory are as at a start."""

    def on_finish(self) -> None:
        """Every lane of the wave has exited."""

    # -- for subclasses --------------------------------------------------------------------------

    def report(
        self,
        d: Decoder,
        instruction: Instruction,
        kind: str,
        message: str,
        *,
        lane: int | None = None,
        address: int | None = None,
        subject: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Add a finding at an instruction; `lane` is a flat number. See `Finding`."""
        self.found(
            d.program,
            instruction.at,
            kind,
            message,
            lane=lane,
            address=address,
            subject=subject,
            severity=severity,
        )

    def found(
        self,
        program: Program,
        at: int,
        kind: str,
        message: str,
        *,
        lane: int | None = None,
        address: int | None = None,
        subject: str = "",
        severity: Severity | None = None,
    ) -> None:
        """Add a finding at a place in the PTX: a remark or an error by its kind, or a letter."""
        where = program.error("", at)
        warp = None if lane is None else lane // LANES
        if warp is not None:
            block, local = self.machine.place(warp)
            message = f"{message} (block {block} warp {local} lane {(lane or 0) % LANES})"
            warp = local
        report = self.machine.report
        severity = severity or ("remark" if kind in PERFORMANCE else "error")
        (report.remarks if severity == "remark" else report.findings).append(
            Finding(
                kind,
                message,
                where.file,
                where.line,
                where.col,
                warp,
                None if lane is None else lane % LANES,
                address,
                subject,
                severity,
            )
        )


def overriding(hooks: Sequence[Hooks], name: str) -> list[Hooks]:
    """The checks that override a method."""
    base = getattr(Hooks, name)
    return [h for h in hooks if getattr(type(h), name) is not base]


def instrument(d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
    """A decoded step (without its guard) with everything that the checks want around it."""
    hooks = d.machine.hooks
    if not hooks:
        return step
    if len(group) == 1:
        step = _observe(d, group[0], step, overriding(hooks, "on_access"))
    for hook in overriding(hooks, "wrap"):
        step = hook.wrap(d, group, step)
    return step


_KINDS: dict[str, tuple[AccessKind, int]] = {  # kind, operand that is the address
    "ld": ("load", 1),
    "ldu": ("load", 1),
    "st": ("store", 0),
    "atom": ("atomic", 1),
    "red": ("atomic", 0),
    "ldmatrix": ("load", 1),
    "stmatrix": ("store", 0),
}


def later(ins: Instruction) -> bool:
    """Whether it is an st.async or red.async that is told of as a transfer."""
    words = ins.opcode
    return words[0] in ("st", "red") and "async" in words and "release" not in words


def _observe_fill(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """st.bulk: one access of 8 bytes for each cell that it fills."""
    from fragir.emulator.instructions.async_store import UNIT, filled

    place, size_row, machine = d.place(ins, 0, d.space(ins)), d.source(ins, 1, "u64"), d.machine

    def run(sel: Any, mask: Mask) -> None:
        at, lanes = filled(machine, place, size_row, sel, mask)
        parts = [(machine.memory.shared, at, lanes)]
        access = Access("store", ins, "shared", at, UNIT, lanes, sel, mask, machine, parts)
        for hook in hooks:
            hook.on_access(access)
        step(sel, mask)

    return run


def _observe_fragment(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """wmma.load and wmma.store: every access of the lanes, one after the other."""
    from fragir.emulator.instructions.warp_matrix import whole_warps, wmma_places

    op, place, addresses = wmma_places(d, ins)
    kind: AccessKind = "load" if ins.opcode[1] == "load" else "store"
    machine = d.machine

    def run(sel: Any, mask: Mask) -> None:
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        lanes = machine.engine.lane_ids[warps]
        for at in addresses(warps):
            access = Access(kind, ins, place.space, at, op.unit, lanes, warps, None, machine)
            for hook in hooks:
                hook.on_access(access)
        step(sel, mask)

    return run


def _observe(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """Tell `hooks` of the accesses of one instruction."""
    if ins.opcode[0] == "wmma" and ins.opcode[1] != "mma" and hooks:
        return _observe_fragment(d, ins, step, hooks)
    known = _KINDS.get(ins.opcode[0])
    if known is None or not hooks or later(ins):
        return step
    if ins.opcode[:2] == ("st", "bulk"):
        return _observe_fill(d, ins, step, hooks)
    kind, operand = known
    place: Place = d.place(ins, operand, d.space(ins))
    machine = d.machine
    matrix = ins.opcode[0] in ("ldmatrix", "stmatrix")
    if matrix:
        rows = 8 * next((int(w[1:]) for w in ins.opcode if w in ("x1", "x2", "x4")), 1)
        if "m16n16" in ins.opcode or "m16n8" in ins.opcode:
            rows = min(2 * rows, LANES) if "m16n16" in ins.opcode else rows
        size = 16
    else:
        rows = LANES
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
    lane_ids = machine.engine.lane_ids

    def run(sel: Any, mask: Mask) -> None:
        if matrix:
            used: Mask = None
            warps: Any = np.arange(machine.warps)[sel]
            if mask is not None:
                warps = warps[mask.any(axis=1)]
            lanes = lane_ids[warps][:, :rows]
            address = place.at(warps, None)[:, :rows]
        else:
            used, warps = mask, sel
            address = place.at(sel, mask)
            lanes = lane_ids[sel] if mask is None else lane_ids[sel][mask]
        access = Access(kind, ins, place.space, address, size, lanes, warps, used, machine)
        for hook in hooks:
            hook.on_access(access)
        step(sel, mask)

    return run


class Sited(Hooks):
    """A check that tells instructions apart by their place in the program.

    `sites`: from the identity of an instruction to its place. `site`: that of the asynchronous
    instruction or of the cluster's barrier that runs, for what hears of it without
    the instruction.
    """

    sites: dict[int, int]
    site: int = 0

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if instruction.opcode[:2] != ("barrier", "cluster"):
            return terminator
        site = self.sites[id(instruction)]

        def run(sel: Any, mask: Mask) -> int | None:
            self.site = site
            return terminator(sel, mask)

        return run
