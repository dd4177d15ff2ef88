"""A PTX instruction: the mean of two integers, without overflow on the way."""

from typing import Any

from fragir.emulator import Opcode
from fragir.emulator.instructions.alu import elementwise


def mean(a: Any, b: Any) -> Any:
    """(a + b) / 2, rounded down."""
    return (a & b) + ((a ^ b) >> 1)


def decode(d: Any, ins: Any) -> Any:
    kind = ins.opcode[-1]
    return elementwise(mean, d.target(ins, 0, kind), [d.source(ins, i, kind) for i in (1, 2)])


HADD = Opcode("hadd", ".u16|u32|s16|s32 d, a, b", decode)
