"""Use of uninitialised registers and shared memory.

Every bit of registers, shared and local memory has a bit beside it that says whether it is
undefined. These bits follow the data; what is reported is only a use that matters: a branch or
guard, an address, a store to global memory, a shuffle, an operand of a tensor-core instruction.
What was reported counts as defined from there on. Registers that no path reads before it writes
them, and that nothing undefined can reach, cost nothing.

`Definedness` is the check. Its parts: `registers` (which are followed, and their bits), `uses`
(what is said), and what single instructions do to the bits: `accesses`, `atomics`, `computing` with
`spreading`, `shuffles`, `matrices`, `copies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fragir.emulator.checks.definedness.accesses import AccessedBits, Copies
from fragir.emulator.checks.definedness.computing import Computing, chosen_steps
from fragir.emulator.checks.definedness.matrices import Matrices, TensorBits
from fragir.emulator.checks.definedness.registers import Choices, Undefined
from fragir.emulator.checks.definedness.shuffles import Shuffles
from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.checks.hooks import Hooks, with_steps_ahead
from fragir.emulator.checks.located import located_access
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.calls import Calls
from fragir.emulator.instructions.collective import names_all
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.program.dataflow import Roles
from fragir.emulator.program.entities import Register
from fragir.emulator.program.flow import split_call
from fragir.emulator.program.program import Program
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import TensorWork
    from fragir.emulator.machine.transfers import Copy, Issue, Transfer

#: What is looked at by steps of its own, whatever is in doubt.
_ELSEWHERE = (
    *("results", "store later", "fill", "load fragment", "store fragment", "atomic", "matrix"),
    *("wgmma", "mbarrier", "new mbarrier", "copy", "bulk copy"),
    *("tensor", "tensor load", "tensor store"),
)


class Definedness(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.undefined = undefined = Undefined(machine, program)
        self.flow, self.plane = undefined.flow, undefined.plane
        self.choices = Choices.of(program, undefined.flow)
        self.shuffles = Shuffles(self.plane, undefined.causes)
        self.uses = Uses(machine, program, undefined, self.shuffles, self.found)
        self.accesses = AccessedBits(machine, undefined, self.uses)
        self.computing = Computing(undefined)
        self.matrices = Matrices(machine, undefined)
        self.copies = Copies(self.plane, undefined.causes, self.uses)
        self.tensor = TensorBits(machine, undefined)

    def partial(self) -> Any:
        decided, self.undefined.decided = self.undefined.decided, set()
        return decided

    def merge(self, partial: Any) -> None:
        self.undefined.decided |= partial

    # -- what happens ----------------------------------------------------------------------------

    def on_wave_start(self) -> None:
        self.undefined.start_wave()
        self.shuffles.clear()

    def on_wgmma_execute(self, item: Issue) -> None:
        self.matrices.wgmma(item)

    def on_copy_complete(self, copy: Copy) -> None:
        self.copies.note_copied(copy)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        self.copies.note_issued(transfer)

    def on_transfer_complete(self, transfer: Transfer) -> None:
        self.copies.note_transferred(transfer)

    def on_tensor_allocate(self, block: int, first: int, count: int, lane: int) -> None:
        self.tensor.allocate(block, first, count)

    def on_tensor_address(self, access: Access) -> None:
        self.tensor.define(access)

    def on_tensor_execute(self, work: TensorWork) -> None:
        self.tensor.execute(work)

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        bits = d.program.opcode(group[0]).bits
        if bits == "matrix":
            before = self.matrices.mma(d, group)
        else:
            before = self._chosen_steps(group[0], self._shadow(d, group[0]))
        if bits in ("copy", "bulk copy"):
            before.append(self.copies.remember(group[0]))
        return self.undefined.before(before, step)

    def wrap_guard(self, d: Decoder, instruction: tree.Instruction, step: Step) -> Step:
        each = self.flow.of(instruction)
        guard = [each.guard] if each.guard is not None else []
        choice = each.guard in self.choices.conditions(instruction)
        before = self.uses.checks(instruction, guard, "the guard", spared=choice)
        step = self.undefined.before(before, step)
        after = self._choice(guard, each.written) if choice else []
        return sequence([step, *after]) if after else step

    def _chosen_steps(self, instruction: tree.Instruction, before: list[Step]) -> list[Step]:
        """What happens to undefined bits, also where branches do not say whether it does."""
        each = self.flow.of(instruction)
        conditions = [c for c in self.choices.conditions(instruction) if c != each.guard]
        after = self._choice(conditions, each.written)
        if not after:
            return before
        read = (*each.read, *conditions)
        return self.undefined.if_doubtful([*before, *after], read, each.written)

    def _choice(self, conditions: list[Register], written: Sequence[Register]) -> list[Step]:
        steps = chosen_steps(self.undefined, conditions, written)
        return self.undefined.if_doubtful(steps, conditions, written)

    def wrap_terminator(
        self, d: Decoder, instruction: tree.Instruction, terminator: Terminator
    ) -> Terminator:
        each = self.flow.of(instruction)
        guard = [each.guard] if each.guard is not None else []
        row = d.program.opcode(instruction)
        index = [r for operand in each.operands[:1] for r in operand]
        what = "the condition of a branch" if row.ends == "branch" and not index else "the guard"
        between = self.choices.written(instruction)
        before = self.uses.checks(instruction, guard, what, spared=between is not None)
        if between is not None:
            before += self._choice(guard, between)
        if row.ends == "call":
            before += self._arguments(d, instruction)
        elif row.ends != "return":
            what = "the index of a branch" if row.ends == "branch" else "an operand"
            before += self.uses.checks(instruction, each.read, what)
            before += self.undefined.clear(each.written)
        return with_steps_ahead(before, terminator)

    def compiled(self, d: Decoder, instruction: tree.Instruction) -> bool:
        """What does nothing where no register involved is in doubt, and no byte that is loaded."""
        row = d.program.opcode(instruction)
        if row.bits == "shuffle":
            return names_all(d, instruction)
        if row.bits in ("load", "store"):
            return located_access(d, instruction) is not None
        return row.ends != "call" and row.bits not in _ELSEWHERE

    def involved(self, instruction: tree.Instruction) -> int:
        """Those of an instruction's registers that are followed, as bits."""
        each = self.flow.of(instruction)
        guard = () if each.guard is None else (each.guard,)
        conditions = self.choices.conditions(instruction)
        some = (*each.read, *each.written, *each.addresses, *guard, *conditions)
        return self.undefined.bits(some)

    def _arguments(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        _, name, _ = split_call(ins)
        calls = [Calls(PlaneDecoder(d, plane)) for plane in self._planes()]
        checks: list[Step] = []
        if d.program.routine(name.text) is None and calls[0].extern(name) is None:
            called = d.registers(name)
            checks = self.uses.checks(ins, called, "the function that is called")
        return [*checks, self._moving(sequence([each.begin(ins) for each in calls]))]

    def _results(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        ends = [Calls(PlaneDecoder(d, plane)).end(ins) for plane in self._planes()]
        return [self._moving(sequence(ends))]

    def _planes(self) -> list[Plane]:
        """What calls move: the causes too where there can be any."""
        products = any(row.bits in ("matrix", "wgmma") for row, _ in self.program.rows())
        return [self.plane, self.undefined.causes.plane] if products else [self.plane]

    def _moving(self, step: Step) -> Step:
        """A step that may write any register of a function."""

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            self.undefined.doubt_all()

        return run

    def _shadow(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """What happens to the undefined bits at one instruction, before it happens itself."""
        each = self.flow.of(ins)
        row = d.program.opcode(ins)
        if row.bits == "results":
            return self._results(d, ins)
        steps: list[Step] = []
        for operand in ins.operands:
            if isinstance(operand, tree.Address):
                place = d.place_of(ins, operand, d.space(ins))
                used = [r for r in each.addresses if r in self.undefined.tracked]
                steps += self.uses.checks(ins, used, "an address", place)
                break
        data = [r for r in each.read if r not in each.addresses]
        match row.bits:
            case "load":
                return steps + self.accesses.load(d, ins, each)
            case "store later":
                return steps + self.uses.checks(ins, data, f"an operand of {row.name}")
            case "fill":
                steps += self.uses.checks(ins, data, f"an operand of {row.name}")
                return [*steps, PlaneDecoder(d, self.plane).repeat(ins, (1,))]
            case "store":
                return steps + self.accesses.stored(d, ins, data)
            case "load fragment" | "store fragment":
                return steps + self.accesses.matrix(d, ins, each)
            case "atomic":
                return steps + self.accesses.atomic(d, ins, each, data)
            case "shuffle":
                return steps + self._shuffle(d, ins, each)
            case "wgmma":
                descriptors = [r for f in each.operands[1:] for r in f if r.width != 32]
                return steps + self.uses.checks(ins, descriptors, "an operand of a wgmma")
            case "mbarrier" | "new mbarrier":
                steps += self.uses.checks(ins, data, "an operand of an mbarrier")
                if row.bits == "new mbarrier":
                    steps.append(PlaneDecoder(d, self.plane).repeat(ins))
                return steps + self.undefined.clear(each.written)
            case "copy" | "bulk copy":
                return steps + self.uses.checks(ins, data, "an operand of a copy")
            case "tensor":
                return steps + self.uses.checks(ins, data, f"an operand of {row.name}")
            case "tensor load" | "tensor store":
                return [*steps, self.tensor.moved(d, ins, each.written)]
            case _:
                return steps + self.computing.steps(d, ins, each, data)

    def _shuffle(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        steering = [r for operand in each.operands[2:] for r in operand]
        steps = self.uses.checks(ins, steering, "an operand of a shuffle")
        moved = [r for r in each.operands[1] if r in self.undefined.tracked]
        name = self.flow.name(ins, moved[0]) if moved else ""
        of = moved[0] if moved else None
        step = self.shuffles.step(d, ins, each.written[0], of, name)
        involved = self.undefined.bits([*moved, each.written[0]])
        look = self.undefined.settle(each.written[:1])
        whole = names_all(d, ins)

        def run(sel: Select, mask: Mask) -> None:
            if whole and mask is None and not self.undefined.doubtful & involved:
                return  # every lane gives something defined
            self.undefined.note_decided(ins, steering)
            step(sel, mask)
            look()

        return [*steps, run, *self.undefined.clear(each.written[1:])]
