"""Where control goes: branches, calls, and loops that poll (PTX ISA 9.2, section 9.7.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fragir.emulator.program.failure import statement
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.program.entities import Scope


def targets(program: Program, ins: tree.Instruction, scope: Scope) -> list[int]:
    """Where a branch can go: to a label, or with an index to one of a list."""

    def position(name: tree.Name) -> int:
        found = program.label(scope, name.text)
        if found is None:
            raise program.error(f"the label {name.text} is not declared", name.at)
        return found

    *index, to = ins.operands
    if not index:
        if not isinstance(to, tree.Name):
            raise program.error(f"{ins.mnemonic} takes one label", ins.at)
        return [position(to)]
    if isinstance(to, tree.Name):
        for s in scope.chain():
            if to.text in s.targets:
                return [position(n) for n in s.targets[to.text]]
    if isinstance(to, tree.Vector):
        return [position(n) for n in to.elements if isinstance(n, tree.Name)]
    raise program.error(f"{ins.mnemonic} needs the label of a .branchtargets", ins.at)


#: Words of loads that can see what another thread will do.
_ORDERED = frozenset(("volatile", "acquire", "relaxed", "mmio"))


def is_polling(program: Program, ins: tree.Instruction) -> bool:
    """Whether an instruction can see what another thread will do."""
    how = program.opcode(ins).polls
    return how == "always" or (how == "ordered" and not _ORDERED.isdisjoint(ins.opcode))


@dataclass(frozen=True, slots=True)
class Branches:
    """Where branches lead, and the positions of those whose loop polls; not to be changed."""

    leaders: set[int]
    polling: set[int]


def branches(program: Program) -> Branches:
    """Those of a program, found once; FragirError for one that names no label."""
    return program.analyses.once(Branches, lambda: _branches(program))


def _branches(program: Program) -> Branches:
    leaders: set[int] = set()
    for placed in program.code:
        if program.opcode(placed.ins).ends == "branch":
            with statement(program, placed.ins):
                leaders.update(targets(program, placed.ins, placed.scope))
    return Branches(leaders, polling_edges(program))


def is_exit(program: Program, at: int) -> bool:
    """Whether from a position there is nothing to do any more but to exit."""
    seen = set[int]()
    while at < len(program.code) and at not in seen:
        seen.add(at)
        placed = program.code[at]
        ends = program.opcode(placed.ins).ends
        if placed.ins.guard is not None or ends not in ("branch", "return", "exit"):
            return False
        if ends != "branch":
            return True
        to = targets(program, placed.ins, placed.scope)
        if len(to) != 1:
            return False
        (at,) = to
    return False


def polling_edges(program: Program) -> set[int]:
    """Positions of backward branches whose loop polls, not counting the loops inside it."""
    edges: list[tuple[int, int]] = []
    waiting: list[int] = []
    for at, placed in enumerate(program.code):
        if program.opcode(placed.ins).ends == "branch":
            edges += [(to, at) for to in targets(program, placed.ins, placed.scope) if to <= at]
        elif is_polling(program, placed.ins):
            waiting.append(at)
    found: set[int] = set()
    for at in waiting:
        around = [e for e in edges if e[0] <= at <= e[1]]
        for start, end in around:
            inner = any(
                start <= s and e <= end and (s, e) != (start, end) and e - s < end - start
                for s, e in around
            )
            if not inner:
                found.add(end)
    return found


def split_call(
    ins: tree.Instruction,
) -> tuple[tuple[tree.Operand, ...], tree.Name, tuple[tree.Operand, ...]]:
    """(results, function, arguments) of a call."""
    operands = list(ins.operands)
    results: tuple[tree.Operand, ...] = ()
    if operands and isinstance(operands[0], tree.Parens):
        results = operands[0].elements
        del operands[0]
    name = operands.pop(0) if operands else None
    if not isinstance(name, tree.Name):
        raise EmulationError("a call names a function, or a register with its address")
    arguments: tuple[tree.Operand, ...] = ()
    if operands and isinstance(operands[0], tree.Parens):
        arguments = operands[0].elements
    return results, name, arguments
