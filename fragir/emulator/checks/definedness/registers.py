"""The registers that can hold undefined bits, and these bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.definedness.causes import Causes
from fragir.emulator.checks.planes import Plane, PlaneDecoder, later
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, store
from fragir.emulator.numbers.types import Array
from fragir.emulator.program.dataflow import Dataflow, Roles, dataflow
from fragir.emulator.program.entities import Register
from fragir.emulator.program.flow import targets
from fragir.emulator.program.program import Program
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.opcodes.row import Logic, Moves
from fragir.ptx.tree import Instruction

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine


# -- choices ---------------------------------------------------------------------------------------
# Branches and guards that only choose what registers hold.
#
# Where the ways of a branch come together again, further down, with nothing between but
# arithmetic on registers, it is a choice of values: `if (x == 0) y = 1;`. The same is a guard
# before such an instruction. Where the condition is made of undefined results of a tensor core,
# as in the rows behind a tile's residue, it is no error then, but what is written on the way is
# undefined.

#: So many instructions are looked at behind a branch.
_FAR = 256


def is_arithmetic(program: Program, ins: tree.Instruction, each: Roles) -> bool:
    """Whether an instruction only computes registers from those of its lane."""
    row = program.opcode(ins)
    bits = facts(row).bits
    if not (isinstance(bits, Moves | Logic) or bits in ("mixed", "halves")):
        return False
    elsewhere = (
        *(row.ends, row.together, row.access, row.asynchronous, row.polls, row.fence, row.apart),
        *(row.registers, row.takes_cluster, row.tensor_map, row.stack, each.addresses),
    )
    return bool(each.written) and not any(elsewhere)


class Choices:
    """Those of a program: found once, whatever may be undefined."""

    def __init__(self, program: Program, flow: Dataflow) -> None:
        self.program, self.flow = program, flow
        #: By instruction (its id): the conditions on which it depends whether it is executed.
        self._conditions: dict[int, list[Register]] = {}
        #: By branch: what is written until its ways come together again.
        self._written: dict[int, tuple[Register, ...]] = {}
        for at, (placed, each) in enumerate(zip(program.code, flow.roles, strict=True)):
            if each.guard is None:
                continue
            if program.opcode(placed.ins).name == "bra":
                self._branch(at, each.guard)
            elif is_arithmetic(program, placed.ins, each):
                self._conditions.setdefault(id(placed.ins), []).append(each.guard)

    @classmethod
    def of(cls, program: Program, flow: Dataflow) -> Choices:
        return program.analyses.once(cls, lambda: cls(program, flow))

    def conditions(self, ins: tree.Instruction) -> list[Register]:
        return self._conditions.get(id(ins), [])

    def written(self, branch: tree.Instruction) -> tuple[Register, ...] | None:
        """None where a branch is more than a choice of values."""
        return self._written.get(id(branch))

    def _branch(self, at: int, condition: Register) -> None:
        code, roles = self.program.code, self.flow.roles
        end = self._to(at)
        between: list[int] = []
        now = at + 1
        while now < end:
            if now - at > _FAR or now >= len(code):
                return
            ins = code[now].ins
            if self.program.opcode(ins).name == "bra":
                if (to := self._to(now)) <= now:
                    return
                end = max(end, to)
            elif (
                not is_arithmetic(self.program, ins, roles[now]) or condition in roles[now].written
            ):
                return
            else:
                between.append(now)
            now += 1
        if end <= at:
            return
        self._written[id(code[at].ins)] = tuple({r: 0 for n in between for r in roles[n].written})
        for n in between:
            self._conditions.setdefault(id(code[n].ins), []).append(condition)

    def _to(self, at: int) -> int:
        placed = self.program.code[at]
        return targets(self.program, placed.ins, placed.scope)[0]


# -- spreading -------------------------------------------------------------------------------------
# How undefined bits spread through single instructions.
#
# A row of undefined bits has a one where the register's bit is not known. Functions here take and
# give such rows; `values` are what the machine's own registers hold.

_PAIRS = {"f16x2", "bf16x2", "u16x2", "s16x2"}


def logic(table: int, values: Sequence[Array], undefined: Sequence[Array]) -> Array:
    """Bits of the result that depend on an undefined bit."""
    ones = [v | u for v, u in zip(values, undefined, strict=True)]
    zeros = [~v | u for v, u in zip(values, undefined, strict=True)]
    count = len(values)
    possible: list[Array | None] = [None, None]
    for row in range(1 << count):
        # Operand i is bit count-1-i of the row; tables are written for three operands.
        minterm = row << (3 - count)
        bit = table >> minterm & 1
        sides = (ones if row >> (count - 1 - i) & 1 else zeros for i in range(count))
        term: Array = reduce(np.bitwise_and, (side[i] for i, side in enumerate(sides)))
        before = possible[bit]
        possible[bit] = term if before is None else before | term
    if possible[0] is None or possible[1] is None:
        return np.zeros_like(undefined[0])
    return possible[0] & possible[1]


def lanes_of(ins: Instruction, widths: Sequence[int]) -> int:
    """Independent parts of an arithmetic instruction: 2 where it works on halves."""
    return 2 if ins.opcode[-1] in _PAIRS and all(w == 32 for w in widths) else 1


def spread_to_parts(rows: Sequence[Array], parts: int, dtype: npt.DTypeLike) -> Array:
    """All ones in every part of the result for which any operand has an undefined bit there."""
    if parts == 2:
        total = rows[0]
        for row in rows[1:]:
            total = total | row
        low = (total & np.uint32(0xFFFF)) != 0
        high = (total >> np.uint32(16)) != 0
        return low * np.uint32(0xFFFF) | high * np.uint32(0xFFFF0000)
    bad = rows[0] != 0
    for row in rows[1:]:
        bad = bad | (row != 0)
    return ones_where(bad, dtype)


def ones_where(bad: Array, dtype: npt.DTypeLike) -> Array:
    """All ones where `bad`, else zero."""
    dtype = np.dtype(dtype)
    return bad if dtype == np.bool_ else bad * dtype.type((1 << 8 * dtype.itemsize) - 1)


#: What comes from elsewhere than registers: from memory, another lane, a call.
_ELSEWHERE = ("load", "load fragment", "tensor load", "atomic", "shuffle", "results", "wgmma")
#: Words of loads and atomics on memory that counts as defined.
_DEFINED = frozenset(("global", "const", "param::entry"))
#: What gives defined registers, or those of memory, whatever its operands are.
_OWN = ("load", "load fragment", "tensor load", "atomic")


class FollowedRegisters:
    """Which registers of a program can hold undefined bits: found once."""

    def __init__(self, program: Program, flow: Dataflow) -> None:
        #: Those that some path reads before it has written them.
        self.unwritten = flow.maybe_undefined()
        read_from_elsewhere = {
            r
            for placed, each in zip(program.code, flow.roles, strict=True)
            if program.opcode(placed.ins).bits in _ELSEWHERE
            and _DEFINED.isdisjoint(placed.ins.opcode)
            for r in each.written
        }
        #: All of them.
        choices = Choices.of(program, flow)
        self.tracked = flow.closure(
            self.unwritten | read_from_elsewhere,
            lambda ins: program.opcode(ins).bits not in _OWN,
            sources=lambda ins, each: (*each.read, *choices.conditions(ins)),
        )

    @classmethod
    def of(cls, program: Program, flow: Dataflow) -> FollowedRegisters:
        return program.analyses.once(cls, lambda: cls(program, flow))


class Undefined:
    """A plane in which ones are undefined bits, of registers and of memory."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.flow = dataflow(program)
        self.plane = Plane(machine, 0xFF)
        #: Of undefined bits: what in a tensor core they come from.
        self.causes = Causes(machine, self.plane)
        followed = FollowedRegisters.of(program, self.flow)
        self._unwritten = followed.unwritten
        #: Registers that can hold undefined bits.
        self.tracked = followed.tracked
        #: Registers, as bits of `Dataflow`, that may hold undefined bits at this moment: no other
        #: row of the plane has a one.
        self.doubtful = 0
        #: What `if_doubtful` has made: the registers, and the step without the question.
        self._doubtful_steps: dict[Step, tuple[int, Step]] = {}
        #: (position, register): where its value has decided which bits are undefined.
        self.decided: set[tuple[int, Register]] = set()
        self._everything = self.bits(sorted(self.tracked, key=lambda r: (r.width, r.index)))

    def start_wave(self) -> None:
        self.plane.reset()
        self.causes.start_wave()
        for register in self._unwritten:
            row = self.plane.row(register)
            row[...] = ones_where(np.ones((), np.bool_), row.dtype)
        self.doubtful = self.bits(self._unwritten)

    def row(self, register: Register) -> Row:
        return self.plane.row(register)

    def note_decided(self, ins: Instruction, registers: Iterable[Register]) -> None:
        """With other values of an instruction's registers other bits may be undefined."""
        at = self.flow.by_instruction[id(ins)]
        self.decided.update((at, register) for register in registers)

    def repeat(self, d: Decoder, ins: tree.Instruction, steering: Sequence[int] = ()) -> Step:
        """The step of an instruction that moves data, on undefined bits and their causes."""
        bits = later(d, lambda: PlaneDecoder(d, self.plane).repeat(ins, steering))
        causes = self.causes.repeat(d, ins, steering)

        def run(sel: Select, mask: Mask) -> None:
            bits(sel, mask)
            causes(sel, mask)

        return run

    def rows(self, registers: Iterable[Register]) -> list[Row]:
        """Those of the registers that are followed."""
        return [self.plane.row(r) for r in registers if r in self.tracked]

    # -- which registers are in doubt --------------------------------------------------------------

    def bits(self, registers: Iterable[Register]) -> int:
        """Those of the registers that are followed, as bits of `doubtful`."""
        return self.flow.bits(r for r in registers if r in self.tracked)

    def doubt_all(self) -> None:
        """Anything may have been written: calls move what frames hold."""
        self.doubtful = self._everything

    def settle(self, registers: Iterable[Register]) -> Callable[[], None]:
        """What looks, after some registers were written, whether they hold undefined bits."""
        rows = [(self.bits([r]), self.plane.row(r)) for r in registers if r in self.tracked]

        def look() -> None:
            doubtful = self.doubtful
            for bit, row in rows:
                doubtful = doubtful | bit if row.any() else doubtful & ~bit
            self.doubtful = doubtful

        return look

    def if_doubtful(
        self, steps: Sequence[Step], read: Iterable[Register], written: Iterable[Register]
    ) -> list[Step]:
        """Steps that change nothing where neither what they read nor what they write is in doubt.

        With defined operands they give defined results.
        """
        if not steps:
            return []
        involved = self.bits([*read, *written])
        look, inner = self.settle(written), sequence(steps)
        if not self.bits(written):

            def check(sel: Select, mask: Mask) -> None:
                if self.doubtful & involved:
                    inner(sel, mask)

            self._doubtful_steps[check] = involved, inner
            return [check]

        def followed(sel: Select, mask: Mask) -> None:
            inner(sel, mask)
            look()

        def run(sel: Select, mask: Mask) -> None:
            if self.doubtful & involved:
                followed(sel, mask)

        self._doubtful_steps[run] = involved, followed
        return [run]

    def before(self, steps: Sequence[Step], step: Step) -> Step:
        """A step with others ahead of it."""
        if not steps:
            return step
        first = sequence(steps)
        if (known := self._doubtful_steps.get(first)) is not None:
            involved, inner = known

            def run(sel: Select, mask: Mask) -> None:
                if self.doubtful & involved:
                    inner(sel, mask)
                step(sel, mask)

            return run

        def both(sel: Select, mask: Mask) -> None:
            first(sel, mask)
            step(sel, mask)

        return both

    def clear(self, registers: Iterable[Register]) -> list[Step]:
        """Make registers defined in the lanes that take part."""
        some = list(registers)
        rows = self.rows(some)

        def run(sel: Select, mask: Mask) -> None:
            for row in rows:
                store(row, sel, mask, 0)

        return self.if_doubtful([run] if rows else [], (), some)
