"""Tensor maps: changes that copies must be told, and stores beyond the ends of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.instructions.access import get
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.machine.tensor_map import CHUNK
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Transfer
    from fragir.emulator.program.program import Program


class TensorMaps(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.time = 0
        self.changed: dict[int, tuple[int, int]] = {}  # address -> (when, line)
        self.acquired: dict[tuple[int, int], int] = {}  # (block, address) -> when

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether a kernel changes tensor maps at all."""
        return any(row.tensor_map == "changes" for row, _ in program.rows())

    def on_wave_start(self) -> None:
        self.acquired.clear()

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        row = d.program.opcode(ins)
        if row.tensor_map == "changes":
            return self._changes(d, ins, step)
        if row.fence == "tensor maps" and ins.operands:
            return self._acquires(d.place(ins, 0, "generic"), step)
        if row.tensor_map == "uses":
            for operand in ins.operands:
                if isinstance(operand, tree.Address) and operand.rest:
                    return self._uses(d, ins, d.place_of(ins, operand, "generic"), step)
        return step

    def _lanes(self, place: MemoryOperand, sel: Select, mask: Mask) -> list[tuple[int, int]]:
        """(lane, address) of the lanes that take part."""
        lanes = get(self.machine.lane_ids, sel, mask).ravel()
        return list(zip(lanes.tolist(), place.at(sel, mask).ravel().tolist(), strict=True))

    def _block(self, lane: int) -> int:
        return int(self.machine.block_of[lane // LANES])

    def _changes(self, d: Decoder, ins: tree.Instruction, step: Step) -> Step:
        place, line = d.place(ins, 0, d.space(ins)), d.program.error("", ins.at).line or 0

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            self.time += 1
            for _, address in self._lanes(place, sel, mask):
                if place.space != "shared" and address >= GLOBAL_BASE:
                    self.changed[address] = self.time, line

        return run

    def _acquires(self, place: MemoryOperand, step: Step) -> Step:
        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            for lane, address in self._lanes(place, sel, mask):
                self.acquired[self._block(lane), address] = self.time

        return run

    def _uses(self, d: Decoder, ins: tree.Instruction, place: MemoryOperand, step: Step) -> Step:
        def run(sel: Select, mask: Mask) -> None:
            if self.changed:
                for lane, address in self._lanes(place, sel, mask):
                    when, line = self.changed.get(address, (0, 0))
                    if when > self.acquired.get((self._block(lane), address), 0):
                        message = (
                            f"{ins.mnemonic}: the tensor map was changed at line {line}, and this "
                            "block has no fence.proxy.tensormap::generic.acquire for it since"
                        )
                        self.report(d, ins, "proxy-fence", message, lane=lane, address=address)
                        self.acquired[self._block(lane), address] = self.time
            step(sel, mask)

        return run


# -- row ends --------------------------------------------------------------------------------------
# Tensor stores beyond the ends of rows: the copy engine writes whole chunks of 16 bytes.
#
# The PTX ISA does not say so (docs/copy-engine.md). Where those bytes lie in a buffer they are
# somebody's: an error. Where all lie behind the end of one they are nobody's, since memory is given
# out in multiples of 256 bytes: a letter.


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

        def run(sel: Select, mask: Mask) -> None:
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
