"""The table of opcodes: our rows, those that packages give, and those that a user adds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from fragir.ptx.opcodes import (
    arithmetic,
    control,
    copies,
    matrices,
    memory,
    packages,
    synchronisation,
)
from fragir.ptx.opcodes.row import Found, Opcode, Opcodes
from fragir.ptx.tree import Instruction

_FAMILIES = (arithmetic, memory, copies, synchronisation, matrices, control)
OPCODES = Opcodes((row for family in _FAMILIES for row in family.OPCODES), packages.opcodes)


class Names(NamedTuple):
    """What a statement may name beside special registers.

    `outside` and `inside`: the text of declarations of a module, and of a kernel's body (its
    registers too); `parameters`: names of the kernel's.
    """

    outside: str = ""
    parameters: tuple[str, ...] = ()
    inside: str = ""


def found(instruction: Instruction) -> Found:
    """What the table says of an instruction, `problem` where it has none such."""
    return OPCODES.find(instruction.opcode, len(instruction.operands))


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
