"""Which elements of which buffer arrive in A, B and C of every tensor-core instruction.

The bytes of a fragment are followed to where they were loaded from (`provenance.py`) and put in the
places that the ISA's formulas give them (`maps.py`). What arrives should be a matrix: an origin, a
step from row to row and one from column to column, transposes included. What does not belong to it
is reported. Computed data has no origin and is left out; A and B whose K comes in one and the same
other order are left alone.

`Fragments` is the check. Its parts: `provenance` (where bytes come from), `patterns` with
`affine_fit` (which matrix that is), `scales`, `wgmma`, and `reports` (what is said).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.fragments.patterns import Patterns
from fragir.emulator.checks.fragments.provenance import ByteOrigins, numbers_of
from fragir.emulator.checks.fragments.reports import MatrixOperand, Reports
from fragir.emulator.checks.hooks import Hooks, with_steps_ahead
from fragir.emulator.checks.planes import PlaneDecoder
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.register_rows import RegisterRows, operation, whole_warps
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.transfers import WARPGROUP, Issue
from fragir.emulator.numbers.types import I64, U8, U32, Array
from fragir.emulator.program.entities import constant_or_none
from fragir.emulator.program.program import Program
from fragir.emulator.tensor_cores import Mma
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.transfers import Copy, Transfer


class _Operands:
    """What is said of operands of a kind: where they come from, and by which pattern."""

    def __init__(
        self, machine: Machine, origins: ByteOrigins, patterns: Patterns, reports: Reports
    ) -> None:
        self.machine, self.origins = machine, origins
        self.patterns, self.reports = patterns, reports


# -- scales ----------------------------------------------------------------------------------------
# The scales of block-scaled mma: whether those that are selected are a matrix.


class ScaleOperands(_Operands):
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
        rows: Sequence[Array],
        select: tuple[int, int],
        sel: Select,
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


# -- wgmma -----------------------------------------------------------------------------------------
# The operands of wgmma, in registers and in shared memory.


class WgmmaOperands(_Operands):
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
                self._check_shared_operand(item, name, descriptors)
        if item.scale.any():
            words = [f[form.d[:, None, None], warps].reshape(-1, count, 4 * LANES) for f in files]
            found = self.patterns.of_registers("C", op.plan.d, words)
            kept = [v if s else None for v, s in zip(found[0], item.scale, strict=True)]
            operand = MatrixOperand("C", op.plan.d, [])
            self.reports.judge(form.instruction, [operand], [(kept, found[1])], item.warps, False)
        for file in files:
            file[form.d[:, None, None], warps] = 0

    def _check_shared_operand(self, item: Issue, name: str, descriptors: Array) -> None:
        """An operand in shared memory."""
        form, ins, memory = item.form, item.form.instruction, self.machine.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        transposed = bool(form.options.get(f"transpose_{name.lower()}", False))
        codes: list[Array] = []
        for plane in self.origins.planes:
            chunks = plane.memory.shared.bytes.reshape(-1, 16)

            def read(addresses: U32, chunks: U8 = chunks) -> Array:
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


class Fragments(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.origins = ByteOrigins(machine, program)
        self.patterns = Patterns()
        self.reports = Reports(machine, program, self.found, self.origins.buffer)
        self.scales = ScaleOperands(machine, self.origins, self.patterns, self.reports)
        self.wgmma = WgmmaOperands(machine, self.origins, self.patterns, self.reports)

    def on_wave_start(self) -> None:
        self.origins.reset()

    def on_copy_complete(self, copy: Copy) -> None:
        for plane in self.origins.planes:
            copy.move(plane.memory)

    def on_transfer_complete(self, transfer: Transfer) -> None:
        if transfer.into is not None:
            for plane in self.origins.planes:
                transfer.move(plane.memory)

    def on_wgmma_execute(self, item: Issue) -> None:
        self.wgmma.executes(item)

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        before: list[Step] = []
        if d.program.opcode(group[0]).fuses:
            before += self._mma(d, group)
        for ins in group:
            if d.program.opcode(ins).bits != "wgmma":
                before += self.origins.steps(d, ins)
        return sequence([*before, step])

    def wrap_terminator(
        self, d: Decoder, instruction: tree.Instruction, terminator: Terminator
    ) -> Terminator:
        if d.program.opcode(instruction).ends != "call":
            return terminator
        before = self.origins.arguments(d, instruction)
        return with_steps_ahead(before, terminator)

    def _mma(self, d: Decoder, group: Sequence[tree.Instruction]) -> list[Step]:
        op = operation(d, group[0])
        assert isinstance(op, Mma)
        operands: list[MatrixOperand] = []
        fragments = (op.plan.a, op.plan.b, op.plan.c)
        for index, (name, fragment) in enumerate(zip("ABC", fragments, strict=True), 1):
            roles = [self.origins.flow.of(i).operands[index] for i in group]
            if not any(r in self.origins.tracked for found in roles for r in found):
                continue
            vectors = [d.vector(i.operands[index]) for i in group]
            reads = [
                RegisterRows(PlaneDecoder(d, plane), group, vectors, fragment.width)
                for plane in self.origins.planes
            ]
            operands.append(MatrixOperand(name, fragment, reads))
        scales = self.scales.steps(d, group, op) if op.scales else []
        if not operands:
            return scales
        pairs = op.plan.metadata is None

        def run(sel: Select, mask: Mask) -> None:
            sel = whole_warps(sel, mask)
            warps = np.arange(self.machine.warps)[sel]
            found = [
                self.patterns.of_registers(o.name, o.fragment, [r.read(sel) for r in o.reads])
                for o in operands
            ]
            for number, ins in enumerate(group):
                part = slice(number * len(warps), (number + 1) * len(warps))
                part_of = [(v[part], b[part]) for v, b in found]
                self.reports.judge(ins, operands, part_of, warps, pairs)

        return [*scales, run]
