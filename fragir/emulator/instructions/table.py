"""The table of opcodes: the rows of all families, and those that a user adds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
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
    compare,
    control,
    convert,
    floating,
    integer,
    launch_control,
    mbarriers,
    missing,
    packages,
    products,
    register_moves,
    tensor_map_changes,
    video,
    warp_matrix,
    wgmma,
)
from fragir.emulator.instructions.computed import decode as computed
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.machine.lanes import Step
from fragir.emulator.program.entities import Placed
from fragir.emulator.program.opcode import Opcode, Opcodes
from fragir.ptx import tree

_FAMILIES = (
    integer,
    floating,
    compare,
    convert,
    register_moves,
    video,
    access,
    addresses,
    cache_hints,
    atomics,
    async_copy,
    async_store,
    barriers,
    collective,
    launch_control,
    mbarriers,
    tensor_map_changes,
    products,
    warp_matrix,
    wgmma,
    control,
    missing,
)
OPCODES = Opcodes((row for family in _FAMILIES for row in family.OPCODES), packages.opcodes)


def register(row: Opcode) -> None:
    """Add an opcode, or more forms of one; programs that are launched from now on may use it."""
    OPCODES.register(row)


@contextmanager
def registered(row: Opcode) -> Generator[None]:
    """The same for a while."""
    OPCODES.register(row)
    try:
        yield
    finally:
        OPCODES.remove(row)


def decoded(d: Decoder, ins: tree.Instruction) -> Step:
    """The step of an instruction, its words in the order of its row, without its guard."""
    found = d.program.opcodes.find(ins.opcode, len(ins.operands))
    if found.opcode is None or found.opcode.decode is None:
        raise d.error(ins, found.problem or f"{ins.mnemonic} is no step")
    if found.words != ins.opcode:
        ins = replace(ins, opcode=found.words)
    if isinstance(found.opcode.decode, str):
        return computed(d, ins, found)
    step: Step = found.opcode.decode(d, ins)
    return step


def step_of(d: Decoder, placed: Placed) -> Step:
    """Decode one instruction, without its guard."""
    d.placed = placed
    return decoded(d, placed.ins)
