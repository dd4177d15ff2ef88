"""Statements of PTX with numbered places for values: `shfl.sync.idx.b32 $0|$1, $2, $3, 31, -1`.

The results of an operation are numbered first, then what it reads. A place is an identifier of PTX
(ISA 9.2, section 4.4), so a statement is read by the reader of PTX.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from fragir.errors import FragirError
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.table import find_row

if TYPE_CHECKING:
    from fragir.ptx import tree


PLACE = re.compile(r"(?<![\w$%.])\$(\d+)(?![\w$])")
_MODULE = ".version 9.2\n.target sm_90a\n.entry k() {{\n{};\n}}"
_SHOWN = 'write it as in "add.s32 $0, $1, 4": $0 is the first result'


@dataclass(frozen=True)
class Statement:
    """A statement as it was read.

    `written`: the places in what it writes, its first operand; `read`: all others; `symbols`: the
    names in it of variables, functions and special registers; `special`: those that begin with %.
    """

    instruction: tree.Instruction
    written: tuple[int, ...]
    read: tuple[int, ...]
    symbols: tuple[str, ...]
    special: tuple[str, ...]
    operands: tuple[str, ...]

    @property
    def opcode(self) -> str:
        return self.instruction.mnemonic

    def filled_operands(self, names: Sequence[Sequence[str]]) -> list[str]:
        """The operands with the registers of values in their places.

        Several registers get braces of their own where there are none around the place.
        """
        return filled_operands(self.operands, names)


def filled_operands(operands: Sequence[str], names: Sequence[Sequence[str]]) -> list[str]:
    """Operands with the registers of values in their places, as of `Statement.filled`."""
    return [_filled_operand(operand, names) for operand in operands]


def _filled_operand(operand: str, names: Sequence[Sequence[str]]) -> str:
    def registers(found: re.Match[str]) -> str:
        registers = names[int(found[1])]
        before = operand[: found.start()]
        text = ", ".join(registers)
        inside = before.count("{") > before.count("}")
        return text if inside or len(registers) == 1 else f"{{{text}}}"

    return PLACE.sub(registers, operand)


_ATOM = r"(?:\$\d+|0x[0-9a-fA-F]+|-?\d+|_|%\w+(?:\.[xyz])?)"
_LIST = rf"\{{{_ATOM}(?:, {_ATOM})*\}}"
_ADDRESS = rf"\[\$\d+(?:\+\d+)?(?:, {_LIST})?\]"
_OPERAND = rf"(?:{_ATOM}(?:\|{_ATOM})?|{_LIST}|{_ADDRESS})"
_PLAIN = re.compile(rf"[a-z][\w.:]*(?: ({_OPERAND}(?:, {_OPERAND})*))?", re.ASCII)
_NEXT = re.compile(_OPERAND, re.ASCII)


@lru_cache(maxsize=1 << 14)
def opcode_and_operands(text: str) -> tuple[str, tuple[str, ...]]:
    """The opcode and the operands of a statement, as `read` has them.

    Most are plain, as they are made, and are cut without the reader of PTX, whose import takes
    longer than most programs.
    """
    found = _PLAIN.fullmatch(text)
    if found is None:
        statement = read(text)
        return statement.opcode, statement.operands
    opcode, _, _ = text.partition(" ")
    return opcode, tuple(_NEXT.findall(found[1] or ""))


@lru_cache(maxsize=1 << 14)
def read(text: str) -> Statement:
    """The statement in a text; FragirError where it is none, or more than one."""
    from fragir.ptx import tree  # few programs need the reader
    from fragir.ptx.reader import PtxSyntaxError, parse

    try:
        module = parse(_MODULE.format(text))
    except PtxSyntaxError as error:
        words = f'"{text}" is no statement of PTX: {error.message}'
        raise FragirError(words, hint=_SHOWN) from error
    body = module.functions[0].body if len(module.functions) == 1 else None
    items = body.items if body is not None else ()
    if len(items) != 1 or not isinstance(items[0], tree.Instruction) or items[0].guard is not None:
        hint = "a guard is said with `if %p`" if text.lstrip().startswith("@") else _SHOWN
        raise FragirError(f'"{text}" is not one instruction without a guard', hint=hint)
    return of(items[0])


def of(instruction: tree.Instruction) -> Statement:
    """A statement of an instruction whose values are places."""
    from fragir.ptx import tree
    from fragir.ptx.visit import walk
    from fragir.ptx.writer import write_node

    written: list[int] = []
    read: list[int] = []
    symbols: dict[str, None] = {}
    special: dict[str, None] = {}
    for index, operand in enumerate(instruction.operands):
        into = written if index == 0 and writes(instruction) else read
        for node in walk(operand):
            if isinstance(node, tree.Component) and node.base.text.startswith("%"):
                special[f"{node.base.text}.{node.component}"] = None
            if not isinstance(node, tree.Name):
                continue
            place = PLACE.fullmatch(node.text)
            if place:
                into.append(int(place[1]))
            else:
                symbols[node.text] = None
                if node.text.startswith("%"):
                    special[node.text] = None
    operands = tuple(map(write_node, instruction.operands))
    return Statement(
        instruction, tuple(written), tuple(read), tuple(symbols), tuple(special), operands
    )


def writes(instruction: tree.Instruction) -> bool:
    """Whether the first operand of an instruction is its result."""
    from fragir.ptx import tree
    from fragir.ptx.opcodes.table import find_row

    if not instruction.operands or isinstance(instruction.operands[0], tree.Address):
        return False
    row = find_row(instruction).opcode
    if row is not None and row.ends == "call":
        return isinstance(instruction.operands[0], tree.Parens)
    return row.writes if row is not None else True


# -- effects ---------------------------------------------------------------------------------------
# What an instruction does beside computing its result, told from its row in the table of opcodes.
#
# An instruction is pure where its row names nothing else. Those that a warp executes together have
# no effect on memory, but do not move into or out of control flow. What is in no row, or accesses
# memory in order, reads and writes.


class Effect(Enum):
    """From what may be moved anywhere to what must stay where it is."""

    PURE = "pure"
    TOGETHER = "together"
    READS = "reads"
    WRITES = "writes"


#: Special registers that give another number each time, or change as a kernel runs (section 10).
_CHANGING = ("%clock", "%globaltimer", "%pm", "%warpid", "%smid", "%reserved")
#: Opcodes of which their rows say nothing, and whose results depend on where they stand.
_HERE = frozenset("activemask alloca stacksave".split())
_ORDERED = frozenset("volatile relaxed acquire release mmio".split())


@lru_cache(maxsize=1 << 14)
def effect(text: str) -> Effect:
    """The effect of a statement."""
    statement = read(text)
    row = find_row(statement.instruction).opcode
    if row is None or not row.writes or not statement.written:
        return Effect.WRITES
    if _changes(statement, row):
        return Effect.WRITES
    if row.access == "load":
        return Effect.READS
    return Effect.TOGETHER if row.together else Effect.PURE


def _changes(statement: Statement, row: Opcode) -> bool:
    words = frozenset(statement.instruction.opcode)
    return bool(
        row.access in ("store", "atomic")
        or row.ends
        or row.asynchronous
        or row.strong
        or row.fence
        or row.stack
        or row.registers
        or row.accumulates
        or row.tensor_map
        or row.polls == "always"
        or row.name in _HERE
        or words & _ORDERED
        # the carry is a register that no operand names (section 9.7.2)
        or "cc" in words
        or row.name.split(".")[0] in ("addc", "subc", "madc")
        or any(name.startswith(_CHANGING) for name in statement.special)
    )
