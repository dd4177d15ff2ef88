"""The scales of block-scaled mma: whether those that are selected are a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.fragments.patterns import Patterns
from fragir.emulator.checks.fragments.provenance import ByteOrigins
from fragir.emulator.checks.fragments.reports import Reports
from fragir.emulator.checks.planes import PlaneDecoder
from fragir.emulator.machine.lanes import Mask, Step
from fragir.emulator.numbers.types import I64
from fragir.emulator.program.expressions import constant_or_none
from fragir.emulator.tensor_cores import Mma
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine


class ScaleOperands:
    def __init__(
        self, machine: Machine, origins: ByteOrigins, patterns: Patterns, reports: Reports
    ) -> None:
        self.machine, self.origins = machine, origins
        self.patterns, self.reports = patterns, reports

    def steps(self, d: Decoder, group: Sequence[tree.Instruction], op: Mma) -> list[Step]:
        """SFA `[row, block of K]` and SFB `[block, column]`: a byte each, of the lanes chosen."""
        steps: list[Step] = []
        planes = self.origins.planes
        for ins in group:
            used = self.origins.flow.of(ins).operands
            for name, index in (("SFA", len(ins.operands) - 4), ("SFB", len(ins.operands) - 2)):
                if not any(r in self.origins.tracked for r in used[index]):
                    continue
                rows = [PlaneDecoder(d, plane).source(ins, index, "u32") for plane in planes]
                chosen = d.vector(ins.operands[index + 1])
                byte, thread = (constant_or_none(e) or 0 for e in chosen)
                select = byte, thread
                steps.append(partial(self._look, ins, op, name, rows, select))
        return steps

    def _look(
        self,
        ins: tree.Instruction,
        op: Mma,
        name: str,
        rows: Sequence[Any],
        select: tuple[int, int],
        sel: Any,
        mask: Mask,
    ) -> None:
        left = name == "SFA"
        parts = [op.scale_codes(row[sel], select, left=left).astype(np.int64) for row in rows]
        numbers: I64 = np.zeros_like(parts[0])  # [rows, blocks, warps]
        for k, part in enumerate(parts):
            numbers |= part << 8 * k
        warps = np.arange(self.machine.warps)[sel]
        for index, warp in enumerate(warps):
            one = numbers[..., index]
            if not one.any():
                continue
            base = int(one[one > 0].min())
            verdict = self.patterns.of_bytes(name, "scales", one[None], turned=not left)
            assert verdict is not None
            bases = np.array([base], np.int64)
            self.reports.note(ins, name, 8, [verdict], [verdict.good], bases)
            self.reports.elsewhere(ins, name, verdict, base, int(warp), "the selected byte")
