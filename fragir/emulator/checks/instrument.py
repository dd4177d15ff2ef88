"""What the checks want around a decoded step: to be told of its accesses, and what they wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.instructions.async_store import UNIT, filled
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.instructions.warp_matrix import wmma_places
from fragir.emulator.machine.events import Access, AccessKind, Observer
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.numbers.types import count_of, kind_of, width_of
from fragir.ptx.tree import Address

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.ptx.tree import Instruction


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
