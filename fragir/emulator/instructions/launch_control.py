"""clusterlaunchcontrol: a running cluster takes over the work of one that has not started.

PTX ISA 9.2, section 9.7.13.20. Clusters that do not fit on the machine wait (`Launch`), and the
first of them is what try_cancel takes. The response is opaque to PTX; here its low half holds the
block's x (32 bits), y and z (16 each), and bit 0 of the high half says whether there is one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Decode, elementwise, of1, sequence
from fragir.emulator.instructions.async_store import positions
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.memory import AccessFault, DeviceMemory
from fragir.emulator.machine.transfers import Transfer
from fragir.emulator.numbers.types import Array

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

SIZE = 16


def _try(d: Decoder, ins: Instruction) -> Step:
    if d.count(ins) != 2:
        raise d.error(ins, f"{ins.mnemonic} takes two addresses")
    space = d.space(ins)
    into, barrier = d.place(ins, 0, space), d.place(ins, 1, space)
    if into.space == "generic" and into.row.dtype.itemsize == 4:
        into.space = barrier.space = "shared"
    everywhere = "multicast::cluster::all" in ins.opcode
    machine = d.machine
    memory = machine.memory

    def run(sel: Select, mask: Mask) -> None:
        at = positions(machine, into, sel, mask, SIZE)
        signals = positions(machine, barrier, sel, mask, 8)
        lanes = get(machine.lane_ids, sel, mask).ravel()
        homes = get(memory.shared_home, sel, mask).ravel()
        stride = memory.shared_stride
        for index, lane in enumerate(lanes):
            if machine.cancel is None:
                raise AccessFault("no launch waits here", int(at[index]), index)
            taken = machine.cancel()
            low, high = 0, 0
            if taken is not None:
                x, y, z = taken
                low, high = x | y << 32 | z << 48, 1
            data = np.array([low, high], np.uint64).view(np.uint8)
            home = int(homes[index])
            blocks = range(memory.cluster) if everywhere else [(int(at[index]) - home) // stride]
            for rank in blocks:
                place = home + rank * stride + (int(at[index]) - home) % stride
                signal = home + rank * stride + (int(signals[index]) - home) % stride
                machine.engine.transfer(
                    Transfer(
                        partial(_respond, machine, data, place),
                        np.array([lane]),
                        np.array([place], np.int64),
                        "clusterlaunchcontrol.try_cancel",
                        signal=signal,
                        size=SIZE,
                    )
                )

    return run


def _respond(machine: Machine, data: Array, at: int, memory: DeviceMemory) -> None:
    memory.shared.bytes[at : at + SIZE] = data if memory is machine.memory else 0


def _query(d: Decoder, ins: Instruction) -> Step:
    if d.count(ins) != 2:
        raise d.error(ins, f"{ins.mnemonic} takes two operands")
    low, high = d.halves(ins, d.operand(ins, 1), source=True)
    if low is None or high is None:
        raise d.error(ins, f"{ins.mnemonic} needs a .b128 register")
    if "is_canceled" in ins.opcode:
        return elementwise(of1(lambda h: (h & np.uint64(1)) != 0), d.target(ins, 0, "pred"), [high])
    parts = [
        of1(lambda v: (v & np.uint64(0xFFFFFFFF)).astype(np.uint32)),
        of1(lambda v: (v >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.uint32)),
        of1(lambda v: (v >> np.uint64(48)).astype(np.uint32)),
    ]
    if "get_first_ctaid" in ins.opcode:
        elements = d.vector(d.operand(ins, 0))
        if len(elements) != 4:
            raise d.error(ins, f"{ins.mnemonic} gives four elements")
        targets = [d.target_of(ins, e, "u32") for e in elements]
        steps = [elementwise(f, t, [low]) for f, t in zip(parts, targets, strict=False)]
        return sequence(steps)
    axis = next((w[-1] for w in ins.opcode if w.startswith("get_first_ctaid::")), "")
    if axis not in ("x", "y", "z"):
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    return elementwise(parts["xyz".index(axis)], d.target(ins, 0, "u32"), [low])


STEPS: dict[str, Decode] = {
    "try to cancel": _try,
    "query cancelled": _query,
}
