"""Tensor stores beyond the ends of rows: the copy engine writes whole chunks of 16 bytes.

The PTX ISA does not say so (docs/copy-engine.md). Where those bytes lie in a buffer they are
somebody's: an error. Where all lie behind the end of one they are nobody's, since memory is given
out in multiples of 256 bytes: a letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.machine.lanes import Mask, Step
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.machine.tensor_map_fields import CHUNK
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Transfer
    from fragir.emulator.program.program import Program


class RowEnds(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self._current: tree.Instruction | None = None
        self._said: set[tuple[int, bool]] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether a kernel stores by tensor maps at all."""
        return any(_stores(words) for _, words in program.rows())

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        if not _stores(ins.opcode):
            return step

        def run(sel: Any, mask: Mask) -> None:
            self._current = ins
            step(sel, mask)
            self._current = None

        return run

    def on_transfer_issue(self, transfer: Transfer) -> None:
        found, ins = transfer.overrun, self._current
        if found is None or ins is None or (ins.at, found.owned) in self._said:
            return
        self._said.add((ins.at, found.owned))
        memory = self.machine.memory
        buffer = memory.buffers[int(memory.buffer_of(np.array([found.first]))[0])]
        where = f"from byte {found.first - buffer.start} of {buffer.name} on"
        if not found.owned:
            where += ", all of them behind its end"
        message = (
            f"{ins.mnemonic} writes {found.size} bytes behind the end of a row, {where}: the copy "
            f"engine writes whole chunks of {CHUNK} bytes (a limit of the hardware, of which the "
            "PTX ISA says nothing)"
        )
        self.found(
            self.program,
            ins.at,
            "out-of-bounds",
            message,
            lane=int(transfer.lanes[0]),
            address=GLOBAL_BASE + found.first,
            severity=None if found.owned else "letter",
        )


def _stores(words: Sequence[str]) -> bool:
    """Whether an instruction writes to global memory through a tensor map."""
    return "tensor" in words and "bulk_group" in words
