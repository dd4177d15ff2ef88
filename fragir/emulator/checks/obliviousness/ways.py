"""What may carry the contents of arrays to where they must not matter, as far as the text says.

Nodes are registers, whole memories, the carry, votes at barriers, and what calls hand over. An edge
goes from what an instruction reads to what it writes. A *sink* is what decides a branch, the guard
or the address of an access, or what a synchronisation or copy is told. Only nodes on a way from
data to a sink have to be followed while a kernel runs; mostly there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fragir.emulator.checks.definedness.registers import is_arithmetic
from fragir.emulator.program.dataflow import Roles, dataflow, registers
from fragir.emulator.program.entities import Placed, Register
from fragir.emulator.program.flow import split_call
from fragir.emulator.program.program import Program
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Opcode

#: Nodes that are no registers, one bit each.
GLOBAL, SHARED, LOCAL, CONST, CALL, CARRY, VOTE, TENSOR = (1 << i for i in range(8))
_FIRST = 8  # the bit of the first register
_ANYWHERE = GLOBAL | SHARED | LOCAL | CONST
#: The parameters of functions are variables of the lane; nothing of an array is in a kernel's.
_MEMORY = {
    **{"global": GLOBAL, "const": CONST, "local": LOCAL},
    **dict.fromkeys(("shared", "shared::cta", "shared::cluster"), SHARED),
    **dict.fromkeys(("param", "param::entry", "param::func"), LOCAL),
}
#: These read the carry; what writes it has the word cc.
CARRYING = frozenset(("addc", "subc", "madc"))
#: Whose operands beside addresses say how much, from where or for whom.
_TOLD = ("copy", "bulk copy", "mbarrier", "new mbarrier", "fill", "tensor")


class DataSink(NamedTuple):
    """Registers of an instruction that nothing of the arrays may reach, and what they are there."""

    what: str
    registers: tuple[Register, ...]


class Ways:
    """The edges and sinks of a program."""

    def __init__(self, program: Program) -> None:
        self.program, self.flow = program, dataflow(program)
        self._unsure = self.flow.maybe_undefined()
        code = list(zip(program.code, self.flow.roles, strict=True))
        self.sinks = [tuple(self._sinks(*each)) for each in code]
        self.guards = [self._guard_sink(*each) for each in code]
        self.edges = [edge for each in code for edge in self._edges(*each) if all(edge)]
        ends = 0
        for some, guard in zip(self.sinks, self.guards, strict=True):
            for sink in some:
                ends |= self.bits(sink.registers)
            if guard is not None:
                ends |= self.bits(guard.registers)
        if any(self._has_map_in_memory(*each) for each in code):
            ends |= GLOBAL
        if any(self.extern(placed.ins) for placed in program.code):
            ends |= LOCAL
        self._towards = _reached(ends, [(to, of) for of, to in reversed(self.edges)])

    @classmethod
    def of(cls, program: Program) -> Ways:
        return program.analyses.once(cls, lambda: cls(program))

    def bits(self, registers: Iterable[Register]) -> int:
        return self.flow.bits(registers) << _FIRST

    def reached(self, sources: int) -> int:
        """The nodes that something of the sources may come to."""
        return _reached(sources, self.edges)

    def followed(self, sources: int) -> int:
        """The nodes on a way from the sources to some sink."""
        return self.reached(sources) & self._towards

    # -- sinks -------------------------------------------------------------------------------------

    def _sinks(self, placed: Placed, each: Roles) -> Iterator[DataSink]:
        ins = placed.ins
        row = self.program.opcode(ins)
        if row.ends:
            yield from self._sinks_of_end(placed, row, each)
            return
        if each.addresses:
            yield DataSink("an address", each.addresses)
        data = tuple(r for r in each.read if r not in each.addresses)
        if row.bits in ("load fragment", "store fragment"):
            yield DataSink("an address", tuple(r for some in each.operands[2:] for r in some))
        elif row.bits in _TOLD:
            yield DataSink(f"an operand of {row.name}", data)
        elif row.bits == "wgmma":  # descriptors, and whether the sum begins anew
            words = (r for some in each.operands[1:] for r in some if r.width != 32)
            yield DataSink(f"an operand of {row.name}", tuple(words))
        elif row.tensor_map == "changes":
            yield DataSink("a tensor map", data)
        elif row.stack:
            yield DataSink("the stack", data)
        if row.together == "members":
            yield DataSink("a membermask", each.operands[-1])

    def _sinks_of_end(self, placed: Placed, row: Opcode, each: Roles) -> Iterator[DataSink]:
        ins = placed.ins
        match row.ends:
            case "branch":
                yield DataSink("a branch", each.read)
            case "call":
                _, name, _ = split_call(ins)
                if extern := self.extern(ins):
                    yield DataSink(f"an argument of {extern}", each.read)
                else:
                    called = tuple(registers(self.program, placed, name))
                    yield DataSink("which function is called", called)
            case "allocation":
                yield DataSink(f"an operand of {row.name}", each.read)
            case "barrier" | "cluster barrier":
                said = each.operands[1:-1] if "red" in ins.opcode else each.operands
                yield DataSink(f"an operand of {row.name}", tuple(r for some in said for r in some))
            case _:
                pass

    def _guard_sink(self, placed: Placed, each: Roles) -> DataSink | None:
        """A guard that does more than choose values; None where there is none."""
        if each.guard is None:
            return None
        ends = self.program.opcode(placed.ins).ends
        if ends:
            return DataSink("a branch" if ends == "branch" else "the guard", (each.guard,))
        if not is_arithmetic(self.program, placed.ins, each):
            return DataSink("the guard", (each.guard,))
        if self._unsure.intersection(each.written):
            return DataSink("whether a register is written", (each.guard,))
        return None

    def written_by(self, at: int) -> int:
        """What an instruction at a position writes to memory, as far as it depends on anything."""
        placed, each = self.program.code[at], self.flow.roles[at]
        into = GLOBAL | SHARED | LOCAL
        return sum(of for of, to in self._edges(placed, each) if to & into)

    def extern(self, ins: tree.Instruction) -> str:
        """The function without a body that a call is of."""
        if self.program.opcode(ins).ends != "call":
            return ""
        _, name, _ = split_call(ins)
        return name.text if name.text in self.program.externs else ""

    def _has_map_in_memory(self, placed: Placed, each: Roles) -> bool:
        """Whether the tensor map of a copy may lie elsewhere than among the parameters."""
        if self.program.opcode(placed.ins).tensor_map != "uses":
            return False
        the_map = map_of(placed.ins)
        assert the_map is not None
        start = registers(self.program, placed, the_map)
        named = self.flow.closure(start, lambda ins: True, backwards=True)
        return any(
            self.program.opcode(p.ins).access or self.program.opcode(p.ins).bits == "results"
            for p, roles in zip(self.program.code, self.flow.roles, strict=True)
            if named.intersection(roles.written)
        )

    # -- edges -------------------------------------------------------------------------------------

    def _edges(self, placed: Placed, each: Roles) -> Iterator[tuple[int, int]]:
        """(what is read, what is written)."""
        ins = placed.ins
        row = self.program.opcode(ins)
        written = self.bits(each.written)
        data = self.bits(r for r in each.read if r not in each.addresses)
        guard = 0 if each.guard is None else self.bits([each.guard])
        match row.bits:
            case "load" | "load fragment":
                yield memory_of(ins), written
            case "store" | "store fragment":
                yield data, memory_of(ins)
            case "atomic":
                yield data, memory_of(ins)
                yield data | memory_of(ins), written
            case "store later":
                yield data, SHARED
            case "copy" | "bulk copy":
                if (moved := moves(ins)) is not None:
                    yield moved
            case "wgmma":
                yield data | SHARED, written
            case "tensor":
                yield SHARED | TENSOR, TENSOR
            case "tensor load":
                yield TENSOR, written
            case "tensor store":
                yield data, TENSOR
            case "results":
                yield CALL | LOCAL, written
            case _ if row.ends == "call":
                yield data | LOCAL, CALL
                yield CALL, LOCAL
                for routine in self.program.routines.values():
                    taken = (r for r in routine.parameters if isinstance(r, Register))
                    yield CALL, self.bits(half for r in taken for half in r.halves)
            case _ if row.ends == "return":
                yield data, CALL
            case _ if row.ends == "barrier":
                yield data, VOTE
                yield VOTE, written
            case "mbarrier" | "new mbarrier" | "fill":
                return
            case _ if row.tensor_map == "changes":
                if ins.opcode[1] == "cp_fenceproxy":
                    yield SHARED, GLOBAL
            case _:
                read = data | guard
                if ins.opcode[0] in CARRYING:
                    read |= CARRY
                yield read, written | (CARRY if "cc" in ins.opcode else 0)


def _reached(start: int, edges: Sequence[tuple[int, int]]) -> int:
    reached = start
    while True:
        before = reached
        for when, then in edges:
            if reached & when:
                reached |= then
        if reached == before:
            return reached


def memory_of(ins: tree.Instruction) -> int:
    """The memories that an access may be of."""
    return next((_MEMORY[word] for word in ins.opcode if word in _MEMORY), _ANYWHERE)


def moves(ins: tree.Instruction) -> tuple[int, int] | None:
    """(from, to) of a copy between memories; None for what only waits, commits or prefetches."""
    if "prefetch" in ins.opcode:
        return None
    named = [_MEMORY[word] for word in ins.opcode if word in _MEMORY]
    return (named[1], named[0]) if len(named) > 1 else None


def map_of(ins: tree.Instruction) -> tree.Address | None:
    """The operand that is a tensor map with coordinates."""
    found = (o for o in ins.operands if isinstance(o, tree.Address) and o.rest)
    return next(found, None)


def cancels(program: Program, ins: tree.Instruction, each: Roles) -> bool:
    """Whether equal operands make the result the same, whatever they hold."""
    return facts(program.opcode(ins)).cancels and len({*each.operands[1:]}) == 1
