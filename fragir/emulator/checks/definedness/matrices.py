"""Undefined bits among the operands of mma, wmma.mma and wgmma; what they write is defined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.registers import Undefined
from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.instructions.register_rows import whole_warps
from fragir.emulator.machine.issues import WARPGROUP, Issue, expand
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.program.entities import Register
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine


class Matrices:
    def __init__(self, machine: Machine, undefined: Undefined, uses: Uses) -> None:
        self.machine, self.undefined, self.uses = machine, undefined, uses
        self.flow, self.plane = undefined.flow, undefined.plane

    def mma(self, group: Sequence[tree.Instruction]) -> list[Step]:
        read = [(i, r) for i in group for r in self.flow.of(i).read if r in self.undefined.tracked]
        written = [r for i in group for r in self.flow.of(i).written if r in self.undefined.tracked]
        if not read and not written:
            return []
        checks = [
            c
            for i in group
            for c in self.uses.checks(i, self.flow.of(i).read, f"an operand of {i.opcode[0]}")
        ]
        files = self.plane.machine.files
        by_width = {
            width: np.array(sorted({r.index for _, r in read if r.width == width}), np.intp)
            for width in sorted({r.width for _, r in read})
        }
        clear = {
            width: np.array(sorted({r.index for r in written if r.width == width}), np.intp)
            for width in sorted({r.width for r in written})
        }

        def run(sel: Any, mask: Mask) -> None:
            if any(files[w][rows][:, sel].any() for w, rows in by_width.items()):
                for check in checks:
                    check(sel, mask)
            warps = np.arange(self.machine.warps)[whole_warps(sel, mask)]
            for width, rows in clear.items():
                files[width][rows[:, None], warps] = 0

        return self.undefined.if_doubtful([run], [r for _, r in read], written)

    def wgmma(self, item: Issue) -> None:
        form = item.form
        every = expand(item.warps)
        file = self.plane.machine.files[32]
        added = np.repeat(item.scale, WARPGROUP)
        used = [(int(r), every[added]) for r in form.d] if added.any() else []
        used += [(int(r), every) for r in (form.a if form.a is not None else ())]
        for index, warps in used:
            bad = file[index][warps] != 0
            if bad.any():
                warp, lane = (int(x) for x in np.argwhere(bad)[0])
                name = self.flow.name(form.instruction, Register(32, index, ""))
                what = "an operand of wgmma"
                count = int(bad.sum())
                self.uses.complain(form.instruction, name, what, int(warps[warp]), lane, count)
        self._shared_operands(item)
        file[form.d[:, None], every] = 0

    def _shared_operands(self, item: Issue) -> None:
        form = item.form
        transposes = {k: v for k, v in form.options.items() if k.startswith("transpose")}
        at = form.op.shared_addresses(item.a, item.b, **transposes).astype(np.int64)
        memory = self.plane.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        at = at + home[:, None]
        if at.size and int((at - home[:, None]).max()) + 16 > memory.shared_size:
            return  # the wgmma itself reports it
        bad = memory.shared.bytes.reshape(-1, 16)[at >> 4].any(axis=-1)
        if bad.any():
            group, chunk = (int(x) for x in np.argwhere(bad)[0])
            address = int(at[group, chunk] - home[group])
            name = f"shared memory at {address}"
            warp = int(item.warps[group])
            what = "an operand of wgmma"
            self.uses.complain(form.instruction, name, what, warp, 0, LANES * 4, address)
