"""What instructions read and write, and which registers may be read before they are written.

Checks use it to leave alone what cannot matter: the registers of address arithmetic, mostly.
A set of registers is a Python integer, one bit each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fragir.emulator.program.entities import Placed, Register
from fragir.emulator.program.failure import statement
from fragir.emulator.program.flow import split_call, targets
from fragir.emulator.program.program import Program
from fragir.ptx import tree
from fragir.ptx.visit import walk


@dataclass(frozen=True, slots=True)
class Roles:
    """The registers of one instruction. `operands[i]`: those of operand i, in their order."""

    written: tuple[Register, ...]
    read: tuple[Register, ...]
    operands: tuple[tuple[Register, ...], ...]
    addresses: tuple[Register, ...]
    guard: Register | None


def registers(program: Program, placed: Placed, operand: tree.Operand) -> list[Register]:
    """The registers that an operand names, in their order."""
    return [register for _, register in named_registers(program, placed, operand)]


def named_registers(
    program: Program, placed: Placed, operand: tree.Operand
) -> list[tuple[str, Register]]:
    """The same with their names in the text."""
    found: list[tuple[str, Register]] = []
    for node in walk(operand):
        if isinstance(node, tree.Name):  # that of a component too: a part, in video instructions
            name = node.text
        elif isinstance(node, tree.Component):
            name = node.part
        else:
            continue
        entity = program.find(placed.scope, name)
        if isinstance(entity, Register):
            found += [(name, half) for half in entity.halves]
    return found


def roles(program: Program, placed: Placed) -> Roles:
    """Who is read and who is written by one instruction of the flat list."""
    ins = placed.ins
    row = program.opcode(ins)
    guard = None
    if ins.guard is not None:
        entity = program.find(placed.scope, ins.guard.register.text)
        guard = entity if isinstance(entity, Register) else None
    written: list[Register] = []
    read: list[Register] = []
    operands = [tuple(registers(program, placed, o)) for o in ins.operands]
    addresses = [
        r
        for o, found in zip(ins.operands, operands, strict=True)
        if isinstance(o, tree.Address)
        for r in found
    ]
    if row.ends == "call" or row.bits == "results":
        results, name, arguments = split_call(ins)
        for result in results if row.bits == "results" else ():
            written += registers(program, placed, result)
        for argument in arguments if row.ends == "call" else ():
            read += registers(program, placed, argument)
        read += registers(program, placed, name)
    elif row.ends == "return" and placed.scope.function is not None:
        returned = placed.scope.function.returns
        read += [half for r in returned if isinstance(r, Register) for half in r.halves]
    else:
        for index, (operand, found) in enumerate(zip(ins.operands, operands, strict=True)):
            if index == 0 and row.writes and not isinstance(operand, tree.Address):
                written += found
                if row.accumulates:
                    read += found
            else:
                read += found
    return Roles(tuple(written), tuple(read), tuple(operands), tuple(addresses), guard)


def dataflow(program: Program) -> Dataflow:
    """The dataflow of a program; it is found once."""
    return program.analyses.once(Dataflow, lambda: Dataflow(program))


class Dataflow:
    """The registers of a program as bits, and what every instruction does with them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.roles = [self._roles(placed) for placed in program.code]
        self._bits: dict[Register, int] = {}
        self.by_instruction = {id(p.ins): i for i, p in enumerate(program.code)}

    def _roles(self, placed: Placed) -> Roles:
        with statement(self.program, placed.ins):
            return roles(self.program, placed)

    def of(self, ins: tree.Instruction) -> Roles:
        return self.roles[self.by_instruction[id(ins)]]

    def name(self, ins: tree.Instruction, register: Register) -> str:
        """What the text of an instruction calls a register."""
        placed = self.program.code[self.by_instruction[id(ins)]]
        operands = [*ins.operands, *([ins.guard.register] if ins.guard is not None else [])]
        for operand in operands:
            for name, found in named_registers(self.program, placed, operand):
                if (found.width, found.index) == (register.width, register.index):
                    return name
        return f"a .{register.kind} register"

    def bit(self, register: Register) -> int:
        found = self._bits.get(register)
        if found is None:
            found = self._bits[register] = 1 << len(self._bits)
        return found

    def bits(self, some: Iterable[Register]) -> int:
        total = 0
        for register in some:
            total |= self.bit(register)
        return total

    def members(self, bits: int) -> set[Register]:
        return {r for r, bit in self._bits.items() if bits & bit}

    def _targets(self, placed: Placed) -> list[int]:
        with statement(self.program, placed.ins):
            return targets(self.program, placed.ins, placed.scope)

    def successors(self, at: int) -> list[int]:
        placed = self.program.code[at]
        ins = placed.ins
        after = [at + 1] if at + 1 < len(self.program.code) else []
        ends = self.program.opcode(ins).ends
        if ends == "branch":
            to = self._targets(placed)
            return to + (after if ins.guard is not None else [])
        if ends in ("return", "exit", "trap") and ins.guard is None:
            return []
        return after

    def blocks(self) -> dict[int, tuple[int, list[int]]]:
        """The straight pieces of the program: where each begins -> its end, and what follows it."""
        count = len(self.program.code)
        successors = [self.successors(at) for at in range(count)]
        starts = {r.start for r in self.program.routines.values()}
        leaders = set(starts)
        for at, to in enumerate(successors):
            if to != [at + 1]:
                leaders.update(to)
                leaders.add(at + 1)
        ordered = sorted(x for x in leaders if x < count)
        return {
            start: (end, [s for s in successors[end - 1] if s < count])
            for start, end in zip(ordered, [*ordered[1:], count], strict=True)
        }

    def maybe_undefined(self) -> set[Register]:
        """Registers that some path reads before it has written them."""
        everything = self.bits(r for each in self.roles for r in (*each.written, *each.read))
        everything |= self.bits(each.guard for each in self.roles if each.guard is not None)
        blocks: dict[int, tuple[int, int, list[int]]] = {}  # start -> end, written, successors
        starts = dict.fromkeys(r.start for r in self.program.routines.values())
        kills = [
            0 if p.ins.guard is not None else self.bits(r.written)
            for p, r in zip(self.program.code, self.roles, strict=True)
        ]
        for start, (end, after) in self.blocks().items():
            written = 0
            for at in range(start, end):
                written |= kills[at]
            blocks[start] = (end, written, after)
        incoming = dict.fromkeys(blocks, 0)
        work = [s for s in starts if s in blocks]
        for start in work:
            incoming[start] = everything
        while work:
            start = work.pop()
            _, written, after = blocks[start]
            out = incoming[start] & ~written
            for to in after:
                if out & ~incoming[to]:
                    incoming[to] |= out
                    work.append(to)
        found = 0
        for start, (end, _, _) in blocks.items():
            undefined = incoming[start]
            for at in range(start, end):
                each = self.roles[at]
                found |= undefined & self.bits(each.read)
                if each.guard is not None:
                    found |= undefined & self.bit(each.guard)
                undefined &= ~kills[at]
        return self.members(found)

    def closure(
        self,
        start: Iterable[Register],
        carries: Callable[[tree.Instruction], bool],
        *,
        backwards: bool = False,
        sources: Callable[[tree.Instruction, Roles], Iterable[Register]] | None = None,
    ) -> set[Register]:
        """Registers reached from `start` through instructions that `carries` names.

        Forwards: what is written from a reached register. Backwards: what a reached one is
        written from. `sources` names the registers that an instruction's result comes from.
        """
        edges: list[tuple[int, int]] = []
        for placed, each in zip(self.program.code, self.roles, strict=True):
            if not each.written or not carries(placed.ins):
                continue
            read = each.read if sources is None else sources(placed.ins, each)
            pair = self.bits(read), self.bits(each.written)
            edges.append(pair if not backwards else (pair[1], pair[0]))
        reached = self.bits(start)
        while True:
            before = reached
            for when, then in edges:
                if reached & when:
                    reached |= then
            if reached == before:
                return self.members(reached)
