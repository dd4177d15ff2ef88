"""Whether an instruction is one of the table: its words, how many operands it has, its results.

Whether each operand is one that the instruction can take is known to who executes it
(`fragir/emulator/launch/legality.py`).
"""

from __future__ import annotations

from fragir.ptx import tree
from fragir.ptx.opcodes.row import Opcodes
from fragir.ptx.opcodes.syntax import Line


def problem_of(opcodes: Opcodes, instruction: tree.Instruction) -> tuple[str, str | None] | None:
    """What a table has against an instruction, and a way out; None: nothing."""
    found = opcodes.find(instruction.opcode, len(instruction.operands))
    if found.opcode is None or found.line is None:
        return found.problem, found.hint
    return _misuse(found.line, instruction)


# -- results ---------------------------------------------------------------------------------------
# Results that an instruction leaves out, and second ones: `_`, `d|p`, `{a, _}`.
#
# The ISA names the opcodes whose result may be `_`; ptxas takes `d|_` for `d` nearly everywhere,
# and no vector of nothing but `_`.


def plain_operand(operand: tree.Operand) -> tree.Operand:
    """`d|_` is `d`."""
    if isinstance(operand, tree.Pair) and isinstance(operand.second, tree.Sink):
        return operand.first
    return operand


def _misuse(line: Line, instruction: tree.Instruction) -> tuple[str, str] | None:
    """What is wrong with the first operand of an instruction as a result, and a way out."""
    first = instruction.operands[0] if instruction.operands else None
    if isinstance(first, tree.Vector):
        if first.elements and all(isinstance(e, tree.Sink) for e in first.elements):
            text = f"{instruction.mnemonic} needs a register among its results"
            return text, "only some elements of a vector can be `_`"
        return None
    if not isinstance(first, tree.Pair | tree.Sink) and not line.pairs:
        return None
    syntax = line.operands[0] if line.operands else None
    if syntax is None or not syntax.is_written:
        return None
    result = plain_operand(first) if first is not None else None
    if syntax.second == "must" and not isinstance(result, tree.Pair):
        return f"{instruction.mnemonic} has two results", "they are written d|p"
    if isinstance(result, tree.Pair):
        if not syntax.second:
            return f"{instruction.mnemonic} has one result", f"it is written {line}"
        result = result.first
    if isinstance(result, tree.Sink) and not syntax.spare:
        return f"{instruction.mnemonic} needs a register for its result", "`_` is none"
    return None
