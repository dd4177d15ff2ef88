"""Tensor maps that a kernel changes: copies must be told (PTX ISA 9.2, sections 8.6 and 9.7.13.4).

A map in global memory that tensormap.replace or tensormap.cp_fenceproxy wrote is seen by the copies
of those blocks only in which a thread has executed `fence.proxy.tensormap::generic.acquire` for it
since. What orders that thread and the one that copies is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.instructions.access import get
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
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

    def _lanes(self, place: MemoryOperand, sel: Any, mask: Mask) -> list[tuple[int, int]]:
        """(lane, address) of the lanes that take part."""
        lanes = get(self.machine.lane_ids, sel, mask).ravel()
        return list(zip(lanes.tolist(), place.at(sel, mask).ravel().tolist(), strict=True))

    def _block(self, lane: int) -> int:
        return int(self.machine.block_of[lane // LANES])

    def _changes(self, d: Decoder, ins: tree.Instruction, step: Step) -> Step:
        place, line = d.place(ins, 0, d.space(ins)), d.program.error("", ins.at).line or 0

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            self.time += 1
            for _, address in self._lanes(place, sel, mask):
                if place.space != "shared" and address >= GLOBAL_BASE:
                    self.changed[address] = self.time, line

        return run

    def _acquires(self, place: MemoryOperand, step: Step) -> Step:
        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            for lane, address in self._lanes(place, sel, mask):
                self.acquired[self._block(lane), address] = self.time

        return run

    def _uses(self, d: Decoder, ins: tree.Instruction, place: MemoryOperand, step: Step) -> Step:
        def run(sel: Any, mask: Mask) -> None:
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
