"""NVIDIA's tensor-core instructions as data.

`lookup` and `find` give one instruction, `instructions` the whole table; `fragir.isa.model` says
what an instruction is. See docs/instructions.md.
"""

from __future__ import annotations

from fragir.isa.model import (
    Form,
    Instruction,
    Operand,
    Registers,
    Types,
    UnknownInstruction,
)
from fragir.isa.table import FAMILIES, find, instructions, lookup, register, unregister
from fragir.isa.targets import TARGETS

__all__ = [
    "FAMILIES",
    "TARGETS",
    "Form",
    "Instruction",
    "Operand",
    "Registers",
    "Types",
    "UnknownInstruction",
    "find",
    "instructions",
    "lookup",
    "register",
    "unregister",
]
