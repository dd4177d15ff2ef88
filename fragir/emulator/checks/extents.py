"""Accesses beyond one variable into its neighbour, in any space.

Bounds of memory are the machine's to check: of a block's shared memory, of a buffer. Here an
address that comes from a variable must stay within it. PTX says nothing of where variables
lie, so whatever lies behind one is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import address_of
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import LANES, Mask, Select, Step
from fragir.emulator.machine.memory import CLUSTER_SHIFT, GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from fragir.emulator.native.straight import SPACES
from fragir.emulator.numbers.types import I64, Array, count_of, kind_of, width_of
from fragir.emulator.program.dataflow import dataflow
from fragir.emulator.program.entities import Placed, Register, Symbol, constant_or_none
from fragir.emulator.program.program import Program
from fragir.emulator.tensor_cores import descriptor
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.visit import walk

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Issue, Transfer


# -- address origins -------------------------------------------------------------------------------
# Which variable an address comes from: what every register holds, found before the kernel runs.
#
# A register holds a number that no variable is known to be in, or an address within one of some
# variables, or something of which nothing is said. An address stays one of its variables when a
# number is added to it or taken away, when it is aligned, converted to another space or mapped to
# another block. Where ways of the program meet it is one of the variables of all of them. What is
# loaded from memory, comes from a call or a parameter counts as a number: an index,
# mostly. So nothing is said of a register that is a variable's address here and loaded there.

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


def placed_variables(program: Program) -> tuple[tuple[str, int, bool], ...]:
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
        self.places = placed_variables(program)
        self.flow = dataflow(program)
        #: By file and row; what nothing has written yet is missing.
        self.known: dict[Key, Origin] = {}
        #: Of memory operands and descriptors, by instruction and operand.
        self.addresses: dict[tuple[int, int], Origin] = {}
        self._solve()

    @classmethod
    def of_program(cls, program: Program) -> Origins:
        """Those of a program; found anew only where its variables lie elsewhere than before."""
        places = placed_variables(program)
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

    def _shifted_origin(self, ins: tree.Instruction, origin: Origin | None) -> Origin | None:
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
                return self._shifted_origin(ins, parts[0])
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
        given = {_key(r): NUMBER for r in self._given_registers()}
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
        given = {_key(r) for r in self._given_registers()}
        return {key for key, count in times.items() if count > 1 or key in given}

    def _from_variables(self) -> set[Register]:
        """Registers that the address of a variable can reach."""
        named: list[Register] = []
        for placed, each in zip(self.program.code, self.flow.roles, strict=True):
            if each.written and self._carries_address(placed.ins):
                if any(self._names_variable(placed, o) for o in placed.ins.operands[1:]):
                    named += each.written
        return self.flow.closure(named, self._carries_address)

    def _carries_address(self, ins: tree.Instruction) -> bool:
        """Whether an address may come out of it."""
        return facts(self.program.opcode(ins)).address != "number"

    def _names_variable(self, placed: Placed, operand: tree.Operand) -> bool:
        names = (node for node in walk(operand) if isinstance(node, tree.Name))
        return any(isinstance(self.program.find(placed.scope, n.text), Symbol) for n in names)

    def _given_registers(self) -> Iterator[Register]:
        """What a call writes: registers that are parameters of functions."""
        for routine in self.program.routines.values():
            for parameter in routine.parameters:
                if isinstance(parameter, Register):
                    yield from parameter.halves


#: Where a space begins among generic addresses, and which of a kernel's variables are there.
_BASES = {
    "shared": SHARED_WINDOW,
    "dynamic": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "global": GLOBAL_BASE,
    "const": GLOBAL_BASE,
    "param": GLOBAL_BASE,
}
_RANK = ((1 << CLUSTER_SHIFT) - 1) ^ ((1 << 32) - 1)  # bits of an address that name the block
_MBARRIER = 8  # bytes
#: Instructions whose addresses are looked at before they run.
_TOLD = ("copy", "mbarrier", "new mbarrier")


@dataclass(frozen=True, slots=True)
class VariableExtent:
    """A variable: generic addresses [start, end)."""

    name: str
    start: int
    end: int


class Extents(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.origins = Origins.of_program(program)
        self.extents: dict[tuple[str, int], VariableExtent] = {}
        for symbol in program.symbols:
            self._add(symbol)
        #: Of what is looked at, by instruction and operand: the variables it may touch.
        self.allowed: dict[tuple[int, int], list[VariableExtent]] = {}
        #: Of loads, stores and atomics: which operand is looked at.
        self._looked_at: dict[int, int] = {}
        self._current: tree.Instruction | None = None  # the asynchronous one that runs
        self._said: set[int] = set()

    @classmethod
    def concerns(cls, program: Program) -> bool:
        """Whether there is a variable with neighbours."""
        return sum(s.space in _BASES for s in program.symbols) > 1

    def _add(self, symbol: Symbol) -> None:
        if symbol.space not in _BASES or symbol.framed or symbol.offset < 0:
            return
        start = _BASES[symbol.space] + symbol.offset
        end = start + symbol.size
        if symbol.space == "dynamic":
            end = SHARED_WINDOW + self.machine.memory.shared_size
        place = place_of(symbol)
        known = self.extents.get(place)
        if known is None or known.end < end:
            self.extents[place] = VariableExtent(symbol.name, start, end)

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        ins = group[0]
        row = d.program.opcode(ins)
        for index, operand in enumerate(ins.operands):
            origin = self.origins.addresses.get((id(ins), index))
            if origin is not None and origin.encoded != isinstance(operand, tree.Address):
                found = self._variables(origin)
                if found and not self._is_safe(d, ins, index, found):
                    self.allowed[id(ins), index] = found
                    if row.access and index == address_of(ins):
                        self._looked_at[id(ins)] = index
        if row.bits in _TOLD:
            return self._around(d, ins, step)
        if row.bits in ("bulk copy", "store later"):

            def remember(sel: Select, mask: Mask) -> None:
                self._current = ins
                step(sel, mask)

            return remember
        return step

    def _variables(self, origin: Origin | None) -> list[VariableExtent]:
        """The variables of an origin; none where one has no size, or nothing is known."""
        if origin is None or not origin.variables:
            return []
        found = [self.extents.get(place) for place in sorted(origin.variables)]
        known = [e for e in found if e is not None and e.end > e.start]
        return known if len(known) == len(found) else []

    def _is_safe(
        self, d: Decoder, ins: tree.Instruction, index: int, found: list[VariableExtent]
    ) -> bool:
        """Whether nothing can go wrong: a constant place within the variable, or one that has all
        of the shared memory, whose bounds the machine looks after."""
        whole = SHARED_WINDOW, SHARED_WINDOW + self.machine.memory.shared_size
        if any((e.start, e.end) == whole for e in found):
            return True
        operand = ins.operands[index]
        row = d.program.opcode(ins)
        if len(found) > 1 or not row.access or row.together:
            return False
        assert isinstance(operand, tree.Address)
        if not isinstance(operand.base, tree.Name) or row.bits == "fill":
            return False
        if isinstance(d.program.find(d.scope, operand.base.text), Register):
            return False
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
        offset = 0 if operand.offset is None else constant_or_none(operand.offset)
        return offset is not None and 0 <= offset <= found[0].end - found[0].start - size

    def _around(self, d: Decoder, ins: tree.Instruction, step: Step) -> Step:
        """mbarriers and cp.async: their address operands, before the step."""
        checks: list[tuple[int, MemoryOperand, int]] = []
        copies = d.program.opcode(ins).bits == "copy"
        for index, operand in enumerate(ins.operands):
            if (id(ins), index) in self.allowed and isinstance(operand, tree.Address):
                size, space = _MBARRIER, d.space(ins)
                if copies:
                    size = d.literal(ins, 2) or 4
                    space = "global" if index == 1 else "shared"
                checks.append((index, d.place(ins, index, space), size))
        if not checks:
            return step
        lane_ids = self.machine.lane_ids

        def run(sel: Select, mask: Mask) -> None:
            lanes = lane_ids[sel] if mask is None else lane_ids[sel][mask]
            for index, place, size in checks:
                self._look(ins, index, place.space, place.at(sel, mask), size, lanes)
            step(sel, mask)

        return run

    def compiled(self, d: Decoder, instruction: tree.Instruction) -> bool:
        """Accesses that it does not look at, or that have bounds."""
        row = self.program.opcode(instruction)
        if row.bits not in ("load", "store"):
            return False
        return id(instruction) not in self._looked_at or self.bounds(d, instruction) is not None

    def bounds(self, d: Decoder, ins: tree.Instruction) -> tuple[int, int, int] | None:
        """Where the accesses of an instruction may begin: space, first and last byte.

        The space is its index in `native.straight.SPACES`; bytes are counted from the first of the
        lane's shared or local memory, or of all global memory. None: it is not looked at, or may
        touch several variables.
        """
        index = self._looked_at.get(id(ins))
        if index is None or d.space(ins) not in SPACES or "const" in ins.opcode:
            return None
        allowed = self.allowed[id(ins), index]
        if len(allowed) != 1:
            return None
        size = width_of(kind_of(ins.opcode)) // 8 * count_of(ins.opcode)
        start, end = allowed[0].start, allowed[0].end
        space = "shared" if start < LOCAL_WINDOW else "local" if start < GLOBAL_BASE else "global"
        base = _BASES[space]
        return SPACES.index(space), start - base, end - base - size

    # -- running ---------------------------------------------------------------------------------

    def on_access(self, access: Access) -> None:
        ins = access.instruction
        index = self._looked_at.get(id(ins))
        if index is None:
            return
        address = access.address
        if self.program.opcode(ins).bits == "fill":  # positions, not addresses
            address = address % max(self.machine.memory.shared_stride, 1)
        self._look(ins, index, access.space, address, access.size, access.lanes)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        ins = self._current
        if ins is None:
            return
        stride = max(self.machine.memory.shared_stride, 1)
        for index, cells, size in ((0, transfer.into, transfer.grain), (1, transfer.reads, 16)):
            if cells is not None and (id(ins), index) in self.allowed:
                lanes = np.broadcast_to(transfer.lanes[:1], cells.shape)
                self._look(ins, index, "shared", cells % stride, size, lanes)

    def on_wgmma_issue(self, item: Issue) -> None:
        ins, form = item.form.instruction, item.form
        options = {k: v for k, v in form.options.items() if k.startswith("transpose")}
        b = form.op.shared_addresses(None, item.b, **options)
        operands = [(2, b, item.b)]
        if item.a is not None:
            both = form.op.shared_addresses(item.a, item.b, **options)
            operands.append((1, both[:, : both.shape[1] - b.shape[1]], item.a))
        for index, cells, words in operands:
            inside = int(cells.max()) + 16 <= self.machine.memory.shared_size
            if inside and (id(ins), index) in self.allowed:
                lanes = np.broadcast_to(item.warps[:, None] * LANES, cells.shape)
                notes = [
                    f" ({' AB'[index]}'s {descriptor.descriptor_text(int(word))})" for word in words
                ]
                self._look(ins, index, "shared", cells, 16, lanes, notes)

    def _look(
        self,
        ins: tree.Instruction,
        index: int,
        space: str,
        address: Array,
        size: int,
        lanes: I64,
        notes: Sequence[str] = ("",),
    ) -> None:
        """Report lanes whose `size` bytes are not all in one of the variables.

        `notes`: what else is to be said of each row of `address`, or of all.
        """
        base = _BASES.get(space, 0) if space in ("shared", "local") else 0
        allowed = self.allowed[id(ins), index]
        if not address.size or id(ins) in self._said:
            return
        at = address.astype(np.int64)
        if self.machine.cluster_size > 1:
            at = np.where(self._is_in_shared(at + base), at & ~_RANK, at)
        low, high = int(at.min()) + base, int(at.max()) + base + size
        if any(e.start <= low and high <= e.end for e in allowed):
            return
        at = at.ravel() + base
        bad = np.ones(at.shape, np.bool_)
        for extent in allowed:
            bad &= (at < extent.start) | (at + size > extent.end)
        bad &= self._is_mapped(at, size)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            note = notes[first * len(notes) // at.size]
            self._tell(ins, int(at[first]), size, allowed, int(lanes.ravel()[first]), note)

    @staticmethod
    def _is_in_shared(at: Array) -> npt.NDArray[np.bool_]:
        return (at >= SHARED_WINDOW) & (at < LOCAL_WINDOW)

    def _is_mapped(self, at: Array, size: int) -> npt.NDArray[np.bool_]:
        """Where the machine has memory: what lies outside is its own error."""
        memory = self.machine.memory
        shared = self._is_in_shared(at) & (at + size <= SHARED_WINDOW + memory.shared_size)
        local = (at >= LOCAL_WINDOW) & (at + size <= LOCAL_WINDOW + memory.local_size)
        inside = np.zeros(at.shape, np.bool_)
        for buffer in memory.places:
            inside |= (at >= buffer.address) & (at + size <= buffer.address + buffer.size)
        return shared | local | inside

    def _tell(
        self,
        ins: tree.Instruction,
        at: int,
        size: int,
        allowed: list[VariableExtent],
        lane: int,
        note: str,
    ) -> None:
        self._said.add(id(ins))
        near = min(allowed, key=lambda e: max(e.start - at, at + size - e.end))
        there = [e.name for e in self.extents.values() if at < e.end and e.start < at + size]
        there += [
            b.name
            for b in self.machine.memory.places
            if not there and at < b.address + b.size and b.address < at + size
        ]
        offset = at - near.start
        where = f"at offset {offset} of" if offset >= 0 else f"{-offset} bytes before"
        text = f"{size} bytes {where} {near.name}, which has {near.end - near.start}"
        if others := [name for name in there if name != near.name]:
            text += f"; {others[0]} lies there"
        address = at
        for space in (LOCAL_WINDOW, SHARED_WINDOW):
            if space <= at < GLOBAL_BASE:
                address = at - space
                break
        message = f"{ins.mnemonic}: {text}{note}"
        lane = lane if lane < self.machine.warps * LANES else 0
        self.found(self.program, ins.at, "out-of-bounds", message, lane=lane, address=address)
