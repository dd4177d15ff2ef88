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
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.fragments.patterns import Patterns
from fragir.emulator.checks.fragments.provenance import ByteOrigins
from fragir.emulator.checks.fragments.reports import MatrixOperand, Reports
from fragir.emulator.checks.fragments.scales import ScaleOperands
from fragir.emulator.checks.fragments.wgmma import WgmmaOperands
from fragir.emulator.checks.hooks import Hooks, preceded
from fragir.emulator.checks.planes import PlaneDecoder
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.register_rows import RegisterRows, operation, whole_warps
from fragir.emulator.machine.lanes import Mask, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.program.program import Program
from fragir.emulator.tensor_cores import Mma
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.code import Terminator
    from fragir.emulator.machine.issues import Issue
    from fragir.emulator.machine.transfers import Copy, Transfer


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
        return preceded(before, terminator)

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

        def run(sel: Any, mask: Mask) -> None:
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
