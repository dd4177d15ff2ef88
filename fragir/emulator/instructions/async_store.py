"""st.async, red.async and st.bulk (PTX ISA 9.2, sections 9.7.9.12, 9.7.9.13 and 9.7.13.14).

st.async and red.async act on the shared memory of any block of the cluster, later, and then tell
an mbarrier there how many bytes they moved. Their forms with .release act on global memory like
st.release and red.release, and are found there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.access import get, shape_of, stored_rows
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.atomics import operand_rows, operator
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.memory import SHARED_WINDOW, WINDOW, AccessFault, DeviceMemory
from fragir.emulator.machine.transfers import Transfer
from fragir.emulator.numbers.types import I64, Array, kind_of, width_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

_COMPLETION = "mbarrier::complete_tx::bytes"


def positions(machine: Machine, place: MemoryOperand, sel: Select, mask: Mask, size: int) -> I64:
    """Byte positions in shared memory, flat; AccessFault where an address is elsewhere."""
    address = place.at(sel, mask)
    parts = machine.memory.spaces(place.space, address, sel, mask, size)
    if len(parts) != 1 or parts[0][0] is not machine.memory.shared:
        raise AccessFault("this must lie in shared memory", int(address.flat[0]), 0)
    return parts[0][1].ravel()


def store(d: Decoder, ins: Instruction) -> Step:
    """st.async to shared memory, of 4 to 16 bytes."""
    _check_completion(d, ins, 3)
    kind, width, count = shape_of(d, ins)
    if width < 4 or kind_of(ins.opcode) == "b128" or width * count > 16:
        raise d.error(ins, f"there is no {ins.mnemonic}")
    given = len(d.vector(d.operand(ins, 1)))
    if given != count:  # ptxas takes it
        text = f"it stores {count}, and nobody says which of {given}"
        raise d.error(ins, f"{ins.mnemonic} is not emulated: {text}")
    rows = stored_rows(d, ins, 1, kind, width, count, wide=False)
    into, barrier = d.place(ins, 0, d.space(ins)), d.place(ins, 2, d.space(ins))
    machine = d.machine

    def run(sel: Select, mask: Mask) -> None:
        value = np.stack([get(r, sel, mask).ravel() for r in rows if r is not None], axis=-1)
        data = np.ascontiguousarray(value).view(np.uint8)
        size = width * count
        _start(machine, into, barrier, sel, mask, size, "st.async", partial(_write, machine, data))

    return run


def _write(machine: Machine, data: Array, index: int, at: int, memory: DeviceMemory) -> None:
    """What other memories hold beside the machine's is not known of what was in registers."""
    size = data.shape[1]
    memory.shared.bytes[at : at + size] = data[index] if memory is machine.memory else 0


def reduce(d: Decoder, ins: Instruction) -> Step:
    """red.async on shared memory."""
    _check_completion(d, ins, 3)
    kind = kind_of(ins.opcode)
    word = next(
        (w for w in ins.opcode[2:] if w in ("inc", "dec", "min", "max", "and", "or", "xor", "add")),
        None,
    )
    function = None if word is None else operator(word, kind)
    wide = kind in ("u64", "s64") and word == "add"
    if function is None or (width_of(kind) != 32 and not wide) or kind[0] == "f":
        raise d.error(ins, f"there is no {ins.mnemonic}")
    (row,) = operand_rows(d, ins, 1, kind, 1)
    into, barrier = d.place(ins, 0, d.space(ins)), d.place(ins, 2, d.space(ins))
    machine = d.machine
    width = width_of(kind) // 8

    def act(values: Array, index: int, at: int, memory: DeviceMemory) -> None:
        if memory is machine.memory:
            cell = memory.shared.view(width)[at // width : at // width + 1]
            cell[...] = function(cell, values[index : index + 1])

    def run(sel: Select, mask: Mask) -> None:
        values = get(row, sel, mask).ravel().copy()
        _start(machine, into, barrier, sel, mask, width, "red.async", partial(act, values))

    return run


def _check_completion(d: Decoder, ins: Instruction, count: int) -> None:
    if _COMPLETION not in ins.opcode or d.count(ins) != count:
        raise d.error(ins, f"{ins.mnemonic} takes {count} operands and needs .{_COMPLETION}")
    if d.space(ins) not in ("shared", "generic") or "shared::cta" in ins.opcode:
        raise d.error(ins, f"{ins.mnemonic} acts on .shared::cluster")


def _start(
    machine: Machine,
    into: MemoryOperand,
    barrier: MemoryOperand,
    sel: Select,
    mask: Mask,
    size: int,
    what: str,
    act: Callable[[int, int, DeviceMemory], None],
) -> None:
    """One transfer for each lane; `act(index, position, memory)` does it."""
    lanes = get(machine.lane_ids, sel, mask).ravel()
    at = positions(machine, into, sel, mask, size)
    signals = positions(machine, barrier, sel, mask, 8)
    stride = max(machine.memory.shared_stride, 1)
    apart = at // stride != signals // stride
    if apart.any():
        index = int(np.flatnonzero(apart)[0])
        reason = "the mbarrier must be in the shared memory of the same block"
        raise AccessFault(reason, int(at[index]) % stride, index, "mbarrier")
    for index, lane in enumerate(lanes):
        position = int(at[index])
        machine.engine.transfer(
            Transfer(
                partial(act, index, position),
                np.array([lane]),
                np.array([position], np.int64),
                what,
                signal=int(signals[index]),
                size=size,
                grain=size,
                generic=True,
                atomic=what == "red.async",
            )
        )
    machine.report.statistics.stored["shared"] += size * len(lanes)


# -- st.bulk ---------------------------------------------------------------------------------------

UNIT = 8  # bytes: addresses and sizes of st.bulk are multiples of it


def fill(d: Decoder, ins: Instruction) -> Step:
    """st.bulk: zeros in shared memory."""
    place, size_row = d.place(ins, 0, d.space(ins)), d.source(ins, 1, "u64")
    if d.literal(ins, 2) != 0 or d.count(ins) != 3 or place.space not in ("shared", "generic"):
        raise d.error(ins, f"{ins.mnemonic} takes a shared address, a size and the constant 0")
    machine = d.machine
    memory = machine.memory

    def run(sel: Select, mask: Mask) -> None:
        at, _ = filled_cells(machine, place, size_row, sel, mask)
        if memory.poisoned and at.size:
            memory.check_poison(memory.shared, at, UNIT)
        memory.shared.scatter(at, UNIT, 1, np.zeros(at.shape, np.uint64))
        machine.report.statistics.stored["shared"] += UNIT * at.size
        machine.progress = True

    return run


def filled_cells(
    machine: Machine, place: MemoryOperand, size_row: Array, sel: Select, mask: Mask
) -> tuple[I64, npt.NDArray[np.int64]]:
    """(positions of all 8-byte cells of an st.bulk, the lane of each)."""
    address = place.at(sel, mask).ravel()
    sizes = get(size_row, sel, mask).ravel().astype(np.uint64)
    lanes = get(machine.lane_ids, sel, mask).ravel()
    if place.space == "generic":
        outside = (address < SHARED_WINDOW) | (address >= SHARED_WINDOW + WINDOW)
        _check_none_bad(outside, address, "this is no address of shared memory")
        address = address - np.uint64(SHARED_WINDOW)
    bad = (sizes % np.uint64(UNIT) != 0) | (sizes > machine.memory.shared_size)
    _check_none_bad(
        bad, address, f"st.bulk fills a multiple of {UNIT} bytes of the block's shared memory"
    )
    home = machine.memory.shared_home.ravel()[lanes]
    first = machine.memory.locate_shared(address, home, UNIT)
    counts = (sizes // np.uint64(UNIT)).astype(np.int64)
    some = counts > 0
    if some.any():
        last = address[some] + (sizes[some] - np.uint64(UNIT)).astype(address.dtype)
        machine.memory.locate_shared(last, home[some], UNIT)
    ends = counts.cumsum()
    within = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
    return np.repeat(first, counts) + UNIT * within, np.repeat(lanes, counts)


def _check_none_bad(bad: Array, address: Array, reason: str) -> None:
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        raise AccessFault(reason, int(address[index]), index)


STEPS: dict[str, Decode] = {
    "fill": fill,
    "store later": store,
    "reduce later": reduce,
}
