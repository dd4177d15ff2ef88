"""Which variable an address comes from: what every register holds, found before the kernel runs.

A register holds a number that no variable is known to be in, or an address within one of some
variables, or something of which nothing is said. An address stays one of its variables when a
number is added to it or taken away, when it is aligned, converted to another space or mapped to
another block. Where ways of the program meet it is one of the variables of all of them. What is
loaded from memory, comes from a call or a parameter counts as a number: an index,
mostly. So nothing is said of a register that is a variable's address here and loaded there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fragir.emulator.program.dataflow import dataflow
from fragir.emulator.program.entities import Placed, Register, Symbol
from fragir.emulator.program.expressions import constant_or_none
from fragir.emulator.program.program import Program
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.visit import walk

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Origin:
    """`variables`: those that the address is in, by space and offset; None: it may be anything.

    `encoded`: without its lowest 4 bits, as in a descriptor of a matrix in shared memory.
    """

    variables: frozenset[tuple[str, int]] | None
    encoded: bool = False


NUMBER = Origin(frozenset())
ANYTHING = Origin(None)

#: Masks up to this keep no more of an address than where it is in a swizzle.
SMALL = 4096


def place_of(symbol: Symbol) -> tuple[str, int]:
    """The name of a variable's address: its space and offset there."""
    return symbol.space, symbol.offset


def placed(program: Program) -> tuple[tuple[str, int, bool], ...]:
    """Where the variables of a program lie."""
    return tuple((s.space, s.offset, s.framed) for s in program.symbols)


def _key(register: Register) -> Key:
    return register.width, register.index


def join(one: Origin | None, other: Origin | None) -> Origin | None:
    """What is known of a register that holds either."""
    if one is None or other is None:
        return one or other
    if one == other:
        return one
    if not one.variables or not other.variables or one.encoded != other.encoded:
        return ANYTHING
    return Origin(one.variables | other.variables, one.encoded)


def total(parts: list[Origin | None]) -> Origin | None:
    """The sum: one address and numbers make an address."""
    if any(p is None for p in parts):
        return None
    addresses = [p for p in parts if p is not None and p != NUMBER]
    if not addresses:
        return NUMBER
    return addresses[0] if len(addresses) == 1 else ANYTHING


class Origins:
    """The origins of the addresses of a program's memory operands.

    A register that one instruction writes holds the same everywhere; of the others it is known at
    the beginning of every straight piece of the program what they hold.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.places = placed(program)
        self.flow = dataflow(program)
        #: By file and row; what nothing has written yet is missing.
        self.known: dict[Key, Origin] = {}
        #: Of memory operands and descriptors, by instruction and operand.
        self.addresses: dict[tuple[int, int], Origin] = {}
        self._solve()

    @classmethod
    def of_program(cls, program: Program) -> Origins:
        """Those of a program; found anew only where its variables lie elsewhere than before."""
        places = placed(program)
        found = program.analyses.get(cls)
        if not isinstance(found, cls) or found.places != places:
            found = program.analyses[cls] = cls(program)
        return found

    def of(self, placed: Placed, operand: tree.Operand) -> Origin | None:
        """What an operand or the base of an address is; None where nothing writes its register."""
        if isinstance(operand, tree.Address):
            return self.of(placed, operand.base)
        if isinstance(operand, tree.Name):
            entity = self.program.find(placed.scope, operand.text)
            if isinstance(entity, Register):
                key = _key(entity)
                return self.known.get(key) if key in self._reached else NUMBER
            if isinstance(entity, Symbol):
                plain = entity.space != "function" and not entity.framed
                return Origin(frozenset((place_of(entity),))) if plain else ANYTHING
            return NUMBER
        if isinstance(operand, tree.Vector | tree.Parens):
            return total([self.of(placed, e) for e in operand.elements])
        if isinstance(operand, tree.Pair):
            return self.of(placed, operand.first)
        if isinstance(operand, tree.Binary):
            parts = [self.of(placed, operand.left), self.of(placed, operand.right)]
            return self._difference(parts) if operand.operator == "-" else total(parts)
        if isinstance(operand, tree.Apply):
            return self.of(placed, operand.argument)
        return NUMBER

    # -- one instruction ---------------------------------------------------------------------------

    def _difference(self, parts: list[Origin | None]) -> Origin | None:
        """An address less a number is one; what an address is taken from is a number, or nothing
        that can be told."""
        if len(parts) == 2 and parts[1] is not None and parts[1] != NUMBER:
            return ANYTHING
        return total(parts)

    def _shifted(self, ins: tree.Instruction, origin: Origin | None) -> Origin | None:
        """Right by 4 bits an address is encoded; by another number it is an address no more."""
        if origin is None or not origin.variables:
            return origin
        by = constant_or_none(ins.operands[2])
        return Origin(origin.variables, True) if by == 4 and not origin.encoded else NUMBER

    def _result(self, placed: Placed) -> Origin | None:
        ins = placed.ins
        parts = [self.of(placed, o) for o in ins.operands[1:]]
        match facts(self.program.opcode(ins)).address:
            case "number":
                return NUMBER
            case "sum":
                return total(parts)
            case "difference":
                return self._difference(parts)
            case "product":
                product = ANYTHING if any(p not in (None, NUMBER) for p in parts[:2]) else NUMBER
                return total([product, *parts[2:]])
            case "same":
                return parts[0]
            case "shifted":
                return self._shifted(ins, parts[0])
            case "either":
                return join(parts[0], parts[1])
            case "masked":
                masks = [constant_or_none(o) for o in ins.operands[1:]]
                if any(m is not None and 0 <= m < SMALL for m in masks):
                    return NUMBER
                return total(parts)
            case "unknown":
                pass
        if any(p is None for p in parts):
            return None
        return NUMBER if all(p == NUMBER for p in parts) else ANYTHING

    # -- all of them -------------------------------------------------------------------------------

    def _solve(self) -> None:
        """Go through the pieces until nothing changes: what is known only grows."""
        self._reached = {_key(r) for r in self._from_variables()}
        often = self._written_often() & self._reached
        blocks = self.flow.blocks()
        readers: dict[Key, set[int]] = {}
        for start, (end, _) in blocks.items():
            for each in self.flow.roles[start:end]:
                for register in each.read:
                    if _key(register) in self._reached:
                        readers.setdefault(_key(register), set()).add(start)
        given = {_key(r): NUMBER for r in self._given()}
        self.known |= given
        entry: dict[int, dict[Key, Origin]] = {start: {} for start in blocks}
        for routine in self.program.routines.values():
            if routine.start in entry:
                entry[routine.start] = {k: v for k, v in given.items() if k in often}
        stale = set(blocks)
        while stale:
            for start in sorted(stale):
                stale.discard(start)
                end, after = blocks[start]
                for key in often & self.known.keys():  # any order
                    del self.known[key]
                self.known |= entry[start]
                for key in self._through(start, end, often):
                    stale |= readers.get(key, set())
                left = {key: self.known[key] for key in often & self.known.keys()}  # any order
                for to in after:
                    if self._merge(entry[to], left):
                        stale.add(to)

    def _through(self, start: int, end: int, often: set[Key]) -> Iterator[Key]:
        """Apply the rules of a piece in order; the registers of one writer that have changed."""
        for at in range(start, end):
            placed, each = self.program.code[at], self.flow.roles[at]
            described = self.program.opcode(placed.ins).accumulates  # its operands are descriptors
            for index, operand in enumerate(placed.ins.operands):
                if isinstance(operand, tree.Address) or (described and index in (1, 2)):
                    base = self.of(placed, operand)
                    if base is not None:
                        self.addresses[id(placed.ins), index] = base
            keys = [key for key in map(_key, each.written) if key in self._reached]
            if not keys:
                continue
            found = self._result(placed)
            for key in keys:
                before = self.known.get(key)
                certain = key in often and placed.ins.guard is None
                after = found if certain else join(before, found)
                if after is None:
                    self.known.pop(key, None)
                elif after != before:
                    self.known[key] = after
                    if key not in often:
                        yield key

    @staticmethod
    def _merge(into: dict[Key, Origin], new: dict[Key, Origin]) -> bool:
        """Join what another way here knows; whether that says more."""
        more = False
        for key, origin in new.items():
            before = into.get(key)
            after = join(before, origin)
            if after is not None and after != before:
                into[key] = after
                more = True
        return more

    def _written_often(self) -> set[Key]:
        """Registers that several instructions write, or one that is not the first to do so."""
        times: dict[Key, int] = {}
        for each in self.flow.roles:
            for register in each.written:
                times[_key(register)] = times.get(_key(register), 0) + 1
        given = {_key(r) for r in self._given()}
        return {key for key, count in times.items() if count > 1 or key in given}

    def _from_variables(self) -> set[Register]:
        """Registers that the address of a variable can reach."""
        named: list[Register] = []
        for placed, each in zip(self.program.code, self.flow.roles, strict=True):
            if each.written and self._carries(placed.ins):
                if any(self._names_variable(placed, o) for o in placed.ins.operands[1:]):
                    named += each.written
        return self.flow.closure(named, self._carries)

    def _carries(self, ins: tree.Instruction) -> bool:
        """Whether an address may come out of it."""
        return facts(self.program.opcode(ins)).address != "number"

    def _names_variable(self, placed: Placed, operand: tree.Operand) -> bool:
        names = (node for node in walk(operand) if isinstance(node, tree.Name))
        return any(isinstance(self.program.find(placed.scope, n.text), Symbol) for n in names)

    def _given(self) -> Iterator[Register]:
        """What a call writes: registers that are parameters of functions."""
        for routine in self.program.routines.values():
            for parameter in routine.parameters:
                if isinstance(parameter, Register):
                    yield from parameter.halves
