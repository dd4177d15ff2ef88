"""Where checks look at a kernel that runs.

A check is a subclass of `Hooks` that overrides what it needs: what the machine tells while it runs
(`machine/events.py`), and the steps themselves, when they are decoded. `machine.hooks` holds the
checks of a launch in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.machine.events import Access, AccessKind, Observer
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.numbers.types import count_of, kind_of, width_of
from fragir.emulator.report import PERFORMANCE, Finding, Severity
from fragir.ptx.tree import Address

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.code import Terminator
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


class Hooks(Observer):
    """A check: override what it needs to see. Steps are wrapped only where a check asks for it.

    It is made for one launch, before anything is decoded: memory is there, its contents too.
    """

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine, self.program = machine, program

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether it has anything to look at in a program; else a launch goes without it."""
        return True

    def overrides(self, name: str) -> bool:
        """Whether this check has a method of its own of that name: who has not is not asked."""
        return getattr(type(self), name) is not getattr(Hooks, name)

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


def overriding(observers: Sequence[Observer], name: str) -> list[Hooks]:
    """The checks that override a method."""
    return [o for o in observers if isinstance(o, Hooks) and o.overrides(name)]


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


def address_of(ins: Instruction) -> int:
    """The first of an instruction's operands that is an address."""
    return next(i for i, o in enumerate(ins.operands) if isinstance(o, Address))


def _observe_fill(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """st.bulk: one access of 8 bytes for each cell that it fills."""
    from fragir.emulator.instructions.async_store import UNIT, filled

    place, size_row, machine = d.place(ins, 0, d.space(ins)), d.source(ins, 1, "u64"), d.machine

    def run(sel: Any, mask: Mask) -> None:
        at, lanes = filled(machine, place, size_row, sel, mask)
        parts = [(machine.memory.shared, at, lanes)]
        access = Access("store", ins, "shared", at, UNIT, lanes, sel, mask, machine.memory, parts)
        for hook in hooks:
            hook.on_access(access)
        step(sel, mask)

    return run


def _observe_fragment(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """wmma.load and wmma.store: every access of the lanes, one after the other."""
    from fragir.emulator.instructions.warp_matrix import whole_warps, wmma_places

    op, place, addresses = wmma_places(d, ins)
    kind: AccessKind = "load" if d.program.opcode(ins).access == "load" else "store"
    machine = d.machine

    def run(sel: Any, mask: Mask) -> None:
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        lanes = machine.lane_ids[warps]
        for at in addresses(warps):
            access = Access(kind, ins, place.space, at, op.unit, lanes, warps, None, machine.memory)
            for hook in hooks:
                hook.on_access(access)
        step(sel, mask)

    return run


def _observe(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """Tell `hooks` of the accesses of one instruction."""
    row = d.program.opcode(ins)
    if not row.access or not hooks:
        return step
    if row.bits in ("load fragment", "store fragment"):
        return _observe_fragment(d, ins, step, hooks)
    if row.bits == "fill":
        return _observe_fill(d, ins, step, hooks)
    kind: AccessKind = row.access
    place: MemoryOperand = d.place(ins, address_of(ins), d.space(ins))
    machine = d.machine
    matrix = row.together == "warp"
    if matrix:
        rows = 8 * next((int(w[1:]) for w in ins.opcode if w in ("x1", "x2", "x4")), 1)
        if "m16n16" in ins.opcode or "m16n8" in ins.opcode:
            rows = min(2 * rows, LANES) if "m16n16" in ins.opcode else rows
        size = 16
    else:
        rows = LANES
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
    lane_ids = machine.lane_ids

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
        access = Access(kind, ins, place.space, address, size, lanes, warps, used, machine.memory)
        for hook in hooks:
            hook.on_access(access)
        step(sel, mask)

    return run
