"""What the checks want around a decoded step: to be told of its accesses, and what they wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import LocatedAccess, locate
from fragir.emulator.checks.selection import Guarded
from fragir.emulator.instructions.async_store import UNIT, filled_cells
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.instructions.warp_matrix import wmma_places
from fragir.emulator.machine.events import Access, AccessKind, Observer
from fragir.emulator.machine.lanes import Mask, Select, Step

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction


def overriding(observers: Sequence[Observer], name: str) -> list[Hooks]:
    """The checks that override a method."""
    return [o for o in observers if isinstance(o, Hooks) and o.overrides(name)]


def instrument(d: Decoder, group: Sequence[Instruction], step: Step) -> tuple[Step, list[Hooks]]:
    """A decoded step (without its guard) with everything that the checks want around it.

    The checks are those that look at it.
    """
    hooks = d.machine.hooks
    asked: list[Hooks] = []
    if not hooks:
        return step, asked
    located: LocatedAccess | None = None
    if len(group) == 1:
        located = locate(d, group[0])
        d.shared_by_checks[id(group[0])] = located
        if d.program.opcode(group[0]).access:
            asked += overriding(hooks, "on_access")
            step = _observe(d, group[0], step, asked.copy(), located)
    for hook in overriding(hooks, "wrap"):
        if located is not None and isinstance(hook, Guarded):
            step, located = located.around(step), None  # a user's check may call it as it likes
        plain, step = step, hook.wrap(d, group, step)
        if step is not plain:
            asked.append(hook)
    return step if located is None else located.around(step), asked


def _observe_fill(d: Decoder, ins: Instruction, step: Step, hooks: Sequence[Hooks]) -> Step:
    """st.bulk: one access of 8 bytes for each cell that it fills."""
    place, size_row, machine = d.place(ins, 0, d.space(ins)), d.source(ins, 1, "u64"), d.machine

    def run(sel: Select, mask: Mask) -> None:
        at, lanes = filled_cells(machine, place, size_row, sel, mask)
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

    def run(sel: Select, mask: Mask) -> None:
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        lanes = machine.lane_ids[warps]
        for at in addresses(warps):
            access = Access(kind, ins, place.space, at, op.unit, lanes, warps, None, machine.memory)
            for hook in hooks:
                hook.on_access(access)
        step(sel, mask)

    return run


def _observe(
    d: Decoder,
    ins: Instruction,
    step: Step,
    hooks: Sequence[Hooks],
    located: LocatedAccess | None,
) -> Step:
    """Tell `hooks` of the accesses of one instruction."""
    row = d.program.opcode(ins)
    if not hooks:
        return step
    if row.bits in ("load fragment", "store fragment"):
        return _observe_fragment(d, ins, step, hooks)
    if row.bits == "fill":
        return _observe_fill(d, ins, step, hooks)
    assert located is not None
    of, told = located.of, [hook.on_access for hook in hooks]

    def run(sel: Select, mask: Mask) -> None:
        access = of(sel, mask)
        for tell in told:
            tell(access)
        step(sel, mask)

    return run
