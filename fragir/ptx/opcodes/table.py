"""The table of opcodes: our rows, those that packages give, and those that a user adds."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, cast

from fragir.errors import FragirError, kind_of
from fragir.ptx.opcodes import (
    arithmetic,
    copies,
    matrices,
    memory,
    synchronisation,
    tensor_memory,
)
from fragir.ptx.opcodes.row import Found, Opcode, Opcodes
from fragir.ptx.tree import Instruction

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


# -- packages --------------------------------------------------------------------------------------
# Opcodes of installed packages, by the entry point `fragir.opcodes`.
#
# An entry's name is the first word of its opcodes, its value a row or several. Looking for entry
# points takes some 30 ms: it happens where a program has an opcode that no row of ours begins.


@cache
def _entries() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group="fragir.opcodes"), key=lambda entry: entry.value):
        found.setdefault(entry.name, []).append(entry)
    return found


def opcodes(word: str) -> Sequence[Opcode]:
    """The rows that packages give for opcodes that begin with a word.

    FragirError, which names the package, where it fails or gives something else.
    """
    rows: list[Opcode] = []
    for entry in _entries().get(word, ()):
        package = entry.dist.name if entry.dist is not None else entry.value
        try:
            found: object = entry.load()
        except (Exception, SystemExit) as error:
            words = " ".join(str(error).split())
            raise FragirError(
                f"the package {package} cannot give its opcode {word}: "
                f"{type(error).__name__}: {words}",
                hint=f"repair or uninstall {package}",
            ) from error
        for row in cast("Sequence[object]", found) if isinstance(found, list | tuple) else [found]:
            if not isinstance(row, Opcode) or row.head[0] != word:
                what = row.name if isinstance(row, Opcode) else kind_of(row)
                raise FragirError(
                    f"the package {package} gives {what} for its opcode {word}",
                    hint="an entry point of fragir.opcodes is a fragir.emulator.Opcode, or several",
                )
            rows.append(row)
    return rows


_FAMILIES = (arithmetic, memory, copies, synchronisation, matrices, tensor_memory)
OPCODES = Opcodes((row for family in _FAMILIES for row in family.OPCODES), opcodes)


class Names(NamedTuple):
    """What a statement may name beside special registers.

    `outside` and `inside`: the text of declarations of a module, and of a kernel's body (its
    registers too); `parameters`: names of the kernel's.
    """

    outside: str = ""
    parameters: tuple[str, ...] = ()
    inside: str = ""


def find_row(instruction: Instruction) -> Found:
    """What the table says of an instruction, `problem` where it has none such."""
    return OPCODES.find(instruction.opcode, len(instruction.operands))


def register(row: Opcode) -> None:
    """Add an opcode, or more forms of one; programs that are launched from now on may use it."""
    OPCODES.register(row)


@contextmanager
def registered_row(row: Opcode) -> Generator[None]:
    """The same for a while."""
    OPCODES.register(row)
    try:
        yield
    finally:
        OPCODES.remove(row)
