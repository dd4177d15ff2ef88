"""From opcodes to the functions that decode them, a table for each family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from fragir.emulator.instructions import (
    access,
    addresses,
    async_copy,
    async_store,
    atomics,
    barriers,
    collective,
    compare,
    convert,
    floating,
    hints,
    integer,
    launch_control,
    mbarriers,
    moves,
    tensor_map_changes,
    video,
    warp_matrix,
    wgmma,
)
from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.machine.lanes import Step
from fragir.emulator.numbers.types import DTYPES
from fragir.emulator.program.program import Placed
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.alu import Decode


def types_last(ins: tree.Instruction) -> tree.Instruction:
    """Arithmetic written `add.f32.rn`, as ptxas takes it too, with its types at the end."""
    words = ins.opcode
    if words[-1] in DTYPES or words[0] not in REORDERED:
        return ins
    types = [w for w in words if w in DTYPES]
    return replace(ins, opcode=(*(w for w in words if w not in DTYPES), *types))


@cache
def tables() -> tuple[dict[str, Decode], dict[str, Decode]]:
    """(integer and common table, floating-point table), by first opcode word."""

    common: dict[str, Decode] = {}
    families: Sequence[Any] = (
        integer,
        access,
        addresses,
        hints,
        async_copy,
        async_store,
        atomics,
        barriers,
        collective,
        compare,
        convert,
        launch_control,
        mbarriers,
        moves,
        tensor_map_changes,
        video,
        warp_matrix,
        wgmma,
    )
    for family in families:
        common.update(family.TABLE)
    return common, floating.TABLE


def lookup(opcode: tuple[str, ...]) -> Decode | None:
    """The decode function of an opcode; floating-point types choose the other table."""
    common, floats = tables()
    if opcode[-1] in FLOAT_KINDS and opcode[0] in floats:
        return floats[opcode[0]]
    return common.get(opcode[0]) or floats.get(opcode[0])


#: Instructions whose decoding takes the types from the end of the opcode.
REORDERED = frozenset(
    "add sub mul fma mad div rcp sqrt rsqrt ex2 lg2 sin cos tanh min max neg abs copysign testp "
    "set setp slct addc subc".split()
)


FLOAT_KINDS = {"f16", "bf16", "f16x2", "bf16x2", "f32", "f32x2", "f64"}


def step_of(d: Decoder, placed: Placed) -> Step:
    """Decode one instruction, without its guard."""
    d.placed = placed
    ins = types_last(placed.ins)
    decode = lookup(ins.opcode)
    if decode is None:
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    return decode(d, ins)
