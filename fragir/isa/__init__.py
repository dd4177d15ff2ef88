"""NVIDIA's tensor-core instructions as data.

`lookup` and `find` give one instruction, `instructions` the whole table; `fragir.isa.model` says
what an instruction is. `register` adds or overrides one, `register_target` adds a target, `using`
puts another `Table` into force for a while. See docs/instructions.md.
"""

from __future__ import annotations

from fragir.isa.model import (
    FAMILIES,
    Form,
    Instruction,
    Operand,
    Registers,
    Types,
    UnknownInstruction,
)
from fragir.isa.registry import (
    current,
    find,
    instructions,
    lookup,
    register,
    register_target,
    remove,
    unregister,
    unregister_target,
    using,
)
from fragir.isa.table import Table
from fragir.isa.targets import TARGETS, Target

__all__ = [
    "FAMILIES",
    "TARGETS",
    "Form",
    "Instruction",
    "Operand",
    "Registers",
    "Table",
    "Target",
    "Types",
    "UnknownInstruction",
    "current",
    "find",
    "instructions",
    "lookup",
    "register",
    "register_target",
    "remove",
    "unregister",
    "unregister_target",
    "using",
]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
