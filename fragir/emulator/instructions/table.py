"""The steps of instructions: by the text of their row, or by the name of its step."""

from __future__ import annotations

from dataclasses import replace

from fragir.emulator.instructions import (
    access,
    addresses,
    async_copy,
    async_store,
    atomics,
    barriers,
    cache_hints,
    collective,
    computed,
    convert,
    launch_control,
    mbarriers,
    products,
    register_moves,
    tensor_map_changes,
    video,
    warp_matrix,
    wgmma,
)
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.instructions.straight_rows import Encode
from fragir.emulator.machine.lanes import Step
from fragir.emulator.program.entities import Placed
from fragir.ptx import tree
from fragir.ptx.opcodes.table import register as register

#: By the name of a row's step: what makes it, and the operations of straight runs that it is.
STEPS: dict[str, Decode] = {
    **access.STEPS,
    **addresses.STEPS,
    **async_copy.STEPS,
    **async_store.STEPS,
    **atomics.STEPS,
    **barriers.STEPS,
    **cache_hints.STEPS,
    **collective.STEPS,
    **convert.STEPS,
    **launch_control.STEPS,
    **mbarriers.STEPS,
    **products.STEPS,
    **register_moves.STEPS,
    **tensor_map_changes.STEPS,
    **video.STEPS,
    **warp_matrix.STEPS,
    **wgmma.STEPS,
}
RUNS: dict[str, Encode] = {
    **access.RUNS,
    **addresses.RUNS,
    **collective.RUNS,
    **convert.RUNS,
    **register_moves.RUNS,
}


def decoded(d: Decoder, ins: tree.Instruction) -> Step:
    """The step of an instruction, its words in the order of its row, without its guard."""
    found = d.program.opcodes.find(ins.opcode, len(ins.operands))
    row = found.opcode
    if row is None or not (row.step or row.decode):
        raise d.error(ins, found.problem or f"{ins.mnemonic} is no step")
    if found.words != ins.opcode:
        ins = replace(ins, opcode=found.words)
    if isinstance(row.decode, str):
        return computed.decode(d, ins, found)
    decode = STEPS[row.step] if row.decode is None else row.decode
    step: Step = decode(d, ins)
    return step


def step_of(d: Decoder, placed: Placed) -> Step:
    """Decode one instruction, without its guard."""
    d.placed = placed
    return decoded(d, placed.ins)
