"""The operands of wgmma, in registers and in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.fragments.patterns import Patterns
from fragir.emulator.checks.fragments.provenance import ByteOrigins, numbers_of
from fragir.emulator.checks.fragments.reports import MatrixOperand, Reports
from fragir.emulator.machine.issues import WARPGROUP, Issue
from fragir.emulator.machine.lanes import LANES

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine


class WgmmaOperands:
    def __init__(
        self, machine: Machine, origins: ByteOrigins, patterns: Patterns, reports: Reports
    ) -> None:
        self.machine, self.origins = machine, origins
        self.patterns, self.reports = patterns, reports

    def executes(self, item: Issue) -> None:
        form = item.form
        op, count = form.op, len(item.warps)
        files = [plane.machine.files[32] for plane in self.origins.planes]
        warps = item.warps[:, None] + np.arange(WARPGROUP)
        if form.a is not None:
            words = [f[form.a[:, None, None], warps].reshape(-1, count, 4 * LANES) for f in files]
            operand = MatrixOperand("A", op.plan.a, [])
            found = self.patterns.of_registers("A", op.plan.a, words)
            self.reports.judge(form.instruction, [operand], [found], item.warps, False)
        for name, descriptors in (("A", item.a), ("B", item.b)):
            if descriptors is not None and op.plan.bits >= 8:
                self._shared(item, name, descriptors)
        if item.scale.any():
            words = [f[form.d[:, None, None], warps].reshape(-1, count, 4 * LANES) for f in files]
            found = self.patterns.of_registers("C", op.plan.d, words)
            kept = [v if s else None for v, s in zip(found[0], item.scale, strict=True)]
            operand = MatrixOperand("C", op.plan.d, [])
            self.reports.judge(form.instruction, [operand], [(kept, found[1])], item.warps, False)
        for file in files:
            file[form.d[:, None, None], warps] = 0

    def _shared(self, item: Issue, name: str, descriptors: Any) -> None:
        """An operand in shared memory."""
        form, ins, memory = item.form, item.form.instruction, self.machine.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        transposed = bool(form.options.get(f"transpose_{name.lower()}", False))
        codes: list[Any] = []
        for plane in self.origins.planes:
            chunks = plane.memory.shared.bytes.reshape(-1, 16)

            def read(addresses: Any, chunks: Any = chunks) -> Any:
                at = addresses.astype(np.int64) + home[:, None]
                return chunks[np.minimum(at >> 4, len(chunks) - 1)]

            codes.append(
                form.op.read_operand(descriptors, read, left=name == "A", transposed=transposed)
            )
        size = form.op.plan.bits // 8
        whole = np.stack([numbers_of(codes, b) for b in range(size)])  # [bytes, G, k, m or n]
        for group, warp in enumerate(item.warps):
            numbers = whole[:, group]
            if not numbers[0].any():
                continue
            base = int(numbers[numbers > 0].min())
            verdict = self.patterns.of_bytes(name, "shared", numbers, turned=name == "A")
            bases = np.array([base], np.int64)
            fine = [verdict is None or verdict.good]
            self.reports.note(ins, name, form.op.plan.bits, [verdict], fine, bases)
            if verdict is not None:
                self.reports.elsewhere(ins, name, verdict, base, int(warp), "shared memory")
