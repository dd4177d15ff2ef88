"""Metadata of mma.sp and wgmma.sp that PTX leaves undefined.

Two of four elements, or pairs of elements, are kept: their indices differ, and rise where the
opcode has `sp::ordered_metadata`. One of two is kept: the indices are 0b0100 or 0b1110 (PTX ISA
9.2, sections 9.7.14.6.1 and 9.7.14.6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.instructions.register_rows import operation, whole_warps
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.transfers import Issue
from fragir.emulator.numbers.types import U32, Bools
from fragir.emulator.tensor_cores import Mma
from fragir.emulator.tensor_cores.maps import Metadata
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program


_FIRST, _SECOND = np.arange(16) & 3, np.arange(16) >> 2
#: Which of the 16 values of a chunk's metadata have a meaning.
_DIFFERENT: Bools = _FIRST != _SECOND
_RISING: Bools = _FIRST < _SECOND
_ONE_OF_TWO: Bools = np.isin(np.arange(16), (0b0100, 0b1110))


class SparseMetadata(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self._said: set[int] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        return any(_is_sparse(words) for _, words in program.rows())

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        if d.program.opcode(ins).bits != "matrix" or not _is_sparse(ins.opcode):
            return step
        op, row, selector = operation(d, ins), d.source(ins, 4, "u32"), d.literal(ins, 5)
        if not isinstance(op, Mma) or op.plan.metadata is None or selector is None:
            return step
        metadata = op.plan.metadata

        def run(sel: Select, mask: Mask) -> None:
            warps = np.arange(self.machine.warps)[whole_warps(sel, mask)]
            self._look(ins, ins.operands[4], metadata, selector, row[warps], warps)
            step(sel, mask)

        return run

    def on_wgmma_issue(self, item: Issue) -> None:
        metadata = item.form.op.plan.metadata
        if metadata is not None and item.meta is not None:
            words = item.meta.reshape(len(item.warps), -1)
            selector = item.form.options["selector"]
            ins = item.form.instruction
            self._look(ins, ins.operands[3], metadata, selector, words, item.warps)

    def _look(
        self,
        ins: tree.Instruction,
        operand: tree.Operand,
        metadata: Metadata,
        selector: int,
        words: U32,
        warps: npt.NDArray[np.intp],
    ) -> None:
        """`words`: `[W, lanes]` of `warps`, the first ones of warpgroups."""
        if id(ins) in self._said:
            return
        single, ordered = metadata.how.kept == 1, "sp::ordered_metadata" in ins.opcode
        legal = _ONE_OF_TWO if single else _RISING if ordered else _DIFFERENT
        lane, nibble = metadata.place(selector)
        values = words[:, lane] >> (4 * nibble).astype(np.uint32) & np.uint32(0xF)
        bad = ~legal[values]
        if not bad.any():
            return
        self._said.add(id(ins))
        which, row, chunk = (int(x) for x in np.argwhere(bad)[0])
        value, at = int(values[which, row, chunk]), int(lane[row, chunk])
        wanted = (
            "is neither 0b0100 nor 0b1110"
            if single
            else f"has the indices {value & 3} and {value >> 2}, which "
            + ("do not rise" if ordered else "are equal")
        )
        text = (
            f"the metadata of row {row}, columns {chunk * metadata.how.chunk} to "
            f"{(chunk + 1) * metadata.how.chunk - 1} is 0b{value:04b}: it {wanted}; PTX leaves the "
            "product undefined"
        )
        flat = (int(warps[which]) + at // LANES) * LANES + at % LANES
        name = operand.text if isinstance(operand, tree.Name) else ""
        self.found(self.program, ins.at, "operand", text, lane=flat, subject=name)


def _is_sparse(words: Sequence[str]) -> bool:
    return "sp" in words or "sp::ordered_metadata" in words
