"""For which contents of the arrays a run speaks.

What depends on the contents of arrays is marked, and the marks follow it beside the run, where the
program's text (`ways`) has any way from them to a *sink*: a branch, the guard or the address of an
access, what a synchronisation or copy is told. A mark that comes to a sink is said in the report.
Where none does, every other content has the same branches taken, and the same accesses made and
barriers passed. What is chosen by values alone (guarded arithmetic, selects, the lanes of a
shuffle) needs no branch to be followed; marks only ever cover too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.definedness import Definedness
from fragir.emulator.checks.hooks import Hooks, with_steps_ahead
from fragir.emulator.checks.located import located_access
from fragir.emulator.checks.obliviousness.marks import (
    Marks,
    even_out,
    folded,
    joined,
    over_warps,
    spread,
)
from fragir.emulator.checks.obliviousness.ways import (
    CALL,
    CARRY,
    CARRYING,
    CONST,
    GLOBAL,
    LOCAL,
    SHARED,
    TENSOR,
    VOTE,
    DataSink,
    Ways,
    cancels,
    map_of,
    memory_of,
    moves,
)
from fragir.emulator.checks.planes import PlaneDecoder, later
from fragir.emulator.checks.races.context import Excuses
from fragir.emulator.checks.races.races import Races
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.calls import Calls
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, active, store
from fragir.emulator.machine.tensor_map import SIZE
from fragir.emulator.machine.transfers import expand
from fragir.emulator.numbers.types import Array
from fragir.emulator.program.entities import Register
from fragir.emulator.report import ArrayValues, OpenValue

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import TensorWork
    from fragir.emulator.machine.transfers import Copy, Issue, Transfer
    from fragir.emulator.program.dataflow import Roles
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


class Obliviousness(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        memory = machine.memory
        windows = memory.buffers[: memory.windowed]
        end = max((buffer.start + buffer.size for buffer in windows), default=0)
        sources = 0
        for one in memory.data if memory.structure is not None else ():
            sources |= CONST if one.start < end else GLOBAL
        self.ways = ways = Ways.of(program)
        self.flow, self._sources = ways.flow, sources
        self.followed = ways.followed(sources)
        self._found: dict[tuple[int, str], int] = {}  # by position and what: marks
        if not self.followed:
            return
        self.marks = Marks(machine, memory.data)
        self.plane = self.marks.plane
        self._current: Instruction | None = None
        self._reducing: dict[int, Transfer] = {}
        voting = (
            r
            for (row, _), each in zip(program.rows(), self.flow.roles, strict=True)
            if row.ends == "barrier"
            for r in each.written
        )
        self._votes = self._rows(voting)
        self._voted = np.zeros(machine.warps, np.uint8)  # by block of the wave
        self._tensor = np.zeros(machine.blocks, np.uint8)

    def overrides(self, name: str) -> bool:
        """Mostly there is nothing to follow, and nothing to be told."""
        idle = not self.followed and name not in ("on_launch_end", "partial", "merge")
        return not idle and super().overrides(name)

    # -- what is found -----------------------------------------------------------------------------

    def _note(self, ins: Instruction, what: str, marks: int) -> None:
        key = self.flow.by_instruction[id(ins)], what
        self._found[key] = self._found.get(key, 0) | marks

    def partial(self) -> Any:
        found, self._found = self._found, {}
        return found

    def merge(self, partial: Any) -> None:
        for key, marks in partial.items():
            self._found[key] = self._found.get(key, 0) | marks

    def on_launch_end(self) -> None:
        structure = self.machine.memory.structure
        if structure is None:
            return
        found = [
            OpenValue(self._line(at), what, name)
            for (at, what), marks in sorted(self._found.items())
            for name in self.marks.of(marks)
        ]
        for at in self._decided_positions():
            found.append(OpenValue(self._line(at), "whether bits are initialised", None))
        for at in self._excused_positions():
            found.append(
                OpenValue(self._line(at), "whether the bytes of two stores are equal", None)
            )
        self.machine.report.data = ArrayValues(found, structure)

    def _line(self, at: int) -> int | None:
        return self.program.error("", self.program.code[at].ins.at).line

    def _decided_positions(self) -> list[int]:
        """Where what is undefined was decided by values that may be of an array."""
        definedness = next((h for h in self.machine.hooks if isinstance(h, Definedness)), None)
        if definedness is None or not definedness.undefined.decided:
            return []
        reached = self.ways.reached(self._sources)
        found: set[int] = set()
        for at, register in definedness.undefined.decided:  # any order
            ins = self.program.code[at].ins
            old = memory_of(ins) if self.program.opcode(ins).access == "atomic" else 0
            is_sink = any(register in sink.registers for sink in self.ways.sinks[at])
            if reached & (old if is_sink else self.ways.bits([register]) | old):
                found.add(at)
        return sorted(found)

    def _excused_positions(self) -> list[int]:
        """Stores that would race, had not both stored the same, where that may be an array's."""
        races = next((h for h in self.machine.hooks if isinstance(h, Races)), None)
        if races is None or not races.excuses.excused.any():
            return []
        reached = self.ways.reached(self._sources)
        *sites, last = np.flatnonzero(races.excuses.excused).tolist()
        if last != Excuses.FOUND:
            sites.append(last)
        stores = [
            at for at in sites if self.program.opcode(self.program.code[at].ins).access != "load"
        ]
        if last == Excuses.FOUND and reached & GLOBAL:
            return stores
        return [at for at in stores if reached & self.ways.written_by(at)]

    # -- what happens ------------------------------------------------------------------------------

    def on_wave_start(self) -> None:
        if self.followed:
            self.marks.start_wave()
            self._voted[...] = 0
            self._tensor[...] = 0

    def on_tensor_execute(self, work: TensorWork) -> None:
        """All words of a block's tensor memory have the same marks."""
        if not self.followed & TENSOR:
            return
        chunks = self.plane.memory.shared.bytes.reshape(-1, 16)[work.shared >> 4]
        marks = int(np.bitwise_or.reduce(chunks, axis=None)) if chunks.size else 0
        for region in work.reads:
            marks |= int(self._tensor[region.block])
        for region in work.writes:
            self._tensor[region.block] |= marks

    def on_tensor_address(self, access: Access) -> None:
        for arena, at, _ in access.parts() if self.followed else ():
            self.marks.beside(arena).bytes[at.reshape(-1, 1) + np.arange(access.size)] = 0

    def on_copy_complete(self, copy: Copy) -> None:
        if self.followed & SHARED:
            copy.move(self.plane.memory)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        if self.followed and self._current is not None and "reduce" in self._current.opcode:
            self._reducing[id(transfer)] = transfer

    def on_transfer_complete(self, transfer: Transfer) -> None:
        if not self.followed & (SHARED | GLOBAL) or transfer.generic:
            return  # st.async has been followed when it was issued
        if self._reducing.pop(id(transfer), None) is None:
            transfer.move(self.plane.memory)
            return
        self.marks.join_transfer(transfer)

    def on_wgmma_execute(self, item: Issue) -> None:
        roles = self.flow.of(item.form.instruction)
        out = self._rows(roles.written)
        if not out:
            return
        warps = expand(item.warps)
        rows = self._rows(roles.read)
        marks = np.zeros(len(item.warps), np.uint8)
        for row in rows:
            each = folded(row[warps]).reshape(len(item.warps), -1)
            marks |= np.bitwise_or.reduce(each, axis=1)
        stride, shared = self.plane.memory.shared_stride, self.plane.memory.shared.bytes
        for index, block in enumerate(self.machine.block_of[item.warps].tolist()):
            marks[index] |= np.bitwise_or.reduce(shared[block * stride : (block + 1) * stride])
        every = np.repeat(marks, len(warps) // len(marks))[:, None]
        for row in out:
            row[warps] = spread(every, row)

    # -- decoding ----------------------------------------------------------------------------------

    def _has(self, registers: Sequence[Register]) -> bool:
        return bool(self.followed & self.ways.bits(registers))

    def _rows(self, registers: Iterable[Register]) -> list[Row]:
        """The rows of marks of those registers that are followed."""
        some = dict.fromkeys(registers)
        return [self.plane.row(r) for r in some if self.followed & self.ways.bits([r])]

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        if not self.followed:
            return step
        before = [one for ins in group for one in self._before(d, ins)]
        if not before:
            return step
        return sequence([*before, step])

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        each = self.flow.of(instruction)
        if not self.followed or each.guard is None or not self._has([each.guard]):
            return step
        before, after = self._guard_checks(instruction), self._results(instruction, each)
        guard = self.plane.row(each.guard)

        def run(sel: Select, mask: Mask) -> None:
            marks = folded(guard[sel])
            for check in before:
                check(sel, mask)
            step(sel, mask)
            if marks.any():
                for row in after:
                    store(row, sel, mask, row[sel] | spread(marks, row))

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if not self.followed:
            return terminator
        ends = d.program.opcode(instruction).ends
        within = [*self._checks(instruction)]
        if ends == "call":
            within += self._call(d, instruction)
        elif ends == "barrier" and self.followed & VOTE and "red" in instruction.opcode:
            within.append(self._vote(instruction))
        return with_steps_ahead(
            [*self._guard_checks(instruction), *_guarded(d, instruction, within)], terminator
        )

    # -- sinks -------------------------------------------------------------------------------------

    def _guard_checks(self, ins: Instruction) -> list[Step]:
        sink = self.ways.guards[self.flow.by_instruction[id(ins)]]
        return [] if sink is None else self._check(ins, sink)

    def _checks(self, ins: Instruction) -> list[Step]:
        sinks = self.ways.sinks[self.flow.by_instruction[id(ins)]]
        return [step for sink in sinks for step in self._check(ins, sink)]

    def _check(self, ins: Instruction, sink: DataSink) -> list[Step]:
        """What says where marks come to a sink."""
        rows = self._rows(sink.registers)
        if not rows:
            return []

        def run(sel: Select, mask: Mask) -> None:
            marks = joined(rows, sel)
            assert marks is not None
            self._see(ins, sink.what, marks if mask is None else marks[mask])

        return [run]

    def _see(self, ins: Instruction, what: str, marks: Array) -> None:
        found = int(np.bitwise_or.reduce(marks, axis=None))
        if found:
            self._note(ins, what, found)

    # -- where marks go ----------------------------------------------------------------------------

    def _before(self, d: Decoder, ins: Instruction) -> list[Step]:
        """Everything that an instruction does to marks, before it happens itself."""
        each = self.flow.of(ins)
        row = d.program.opcode(ins)
        steps = self._checks(ins)
        memory = self.followed & memory_of(ins)
        match row.bits:
            case "load":
                return [*steps, *self._load(d, ins, each)]
            case "load fragment":
                return [*steps, *self._load(d, ins, each, (2,))]
            case "store":
                return [*steps, *([self._repeat(d, ins)] if memory else [])]
            case "store fragment":
                return [*steps, *([self._repeat(d, ins, (2,))] if memory else [])]
            case "fill":
                return [*steps, *([self._repeat(d, ins, (1,))] if memory else [])]
            case "atomic":
                return [*steps, *([self._atomic(d, ins, each)] if memory else [])]
            case "store later":
                rows = self._rows(r for r in each.read if r not in each.addresses)
                return [*steps, *([self._store_later(rows)] if rows else [])]
            case "copy" | "bulk copy":
                if moves(ins) is None or not self.followed & (SHARED | GLOBAL):
                    return steps
                return [*steps, *self._map(d, ins), self._remember(ins)]
            case "wgmma" | "tensor":
                return steps
            case "tensor load" | "tensor store":
                return [*steps, *self._through_tensor(row.bits == "tensor load", each)]
            case "results":
                moved = Calls(PlaneDecoder(d, self.plane)).end(ins)
                return [*steps, moved, self._even(each.written)] if self._calls else steps
            case "mbarrier" | "new mbarrier":
                return [*steps, *self._clear(each)]
            case _ if row.tensor_map == "changes":
                copied = ins.opcode[1] == "cp_fenceproxy" and self.followed & GLOBAL
                return [*steps, *([self._repeat(d, ins)] if copied else [])]
            case _:
                return [*steps, *self._compute(d, ins, each, together=bool(row.together))]

    def _through_tensor(self, loads: bool, each: Roles) -> list[Step]:
        """ld and st of tensor memory."""
        rows = self._rows(each.written if loads else each.read)
        if not rows:
            return []

        def run(sel: Select, mask: Mask) -> None:
            blocks = self.machine.block_of[np.arange(self.machine.warps)[sel]]
            if loads:
                for row in rows:
                    row[sel] = spread(self._tensor[blocks][:, None], row)
            elif (marks := joined(rows, sel)) is not None:
                marks = marks if mask is None else np.where(mask, marks, 0)
                np.bitwise_or.at(self._tensor, blocks, np.bitwise_or.reduce(marks, axis=1))

        return [run]

    @property
    def _calls(self) -> int:
        return self.followed & (CALL | LOCAL)

    def _repeat(self, d: Decoder, ins: Instruction, steering: tuple[int, ...] = ()) -> Step:
        return later(d, lambda: PlaneDecoder(d, self.plane).repeat(ins, steering))

    def _results(self, ins: Instruction, each: Roles) -> list[Row]:
        """The rows that an instruction writes, the carry among them."""
        carry = [self.marks.carry] if self.followed & CARRY and "cc" in ins.opcode else []
        return [*self._rows(each.written), *carry]

    def _load(
        self, d: Decoder, ins: Instruction, each: Roles, steering: tuple[int, ...] = ()
    ) -> list[Step]:
        if not self._has(each.written) or not self.followed & memory_of(ins):
            return self._clear(each)
        return [self._repeat(d, ins, steering), self._even(each.written)]

    def _even(self, registers: Iterable[Register]) -> Step:
        rows = self._rows(registers)

        def run(sel: Select, mask: Mask) -> None:
            for row in rows:
                even_out(row, sel)

        return run

    def _clear(self, each: Roles) -> list[Step]:
        rows = self._rows(each.written)

        def run(sel: Select, mask: Mask) -> None:
            for row in rows:
                store(row, sel, mask, 0)

        return [run] if rows else []

    def _compute(self, d: Decoder, ins: Instruction, each: Roles, *, together: bool) -> list[Step]:
        """Results have the marks of all operands, and of all lanes where lanes come together."""
        out, read = self._results(ins, each), self._rows(each.read)
        if cancels(d.program, ins, each):
            read = []
        if self.followed & CARRY and ins.opcode[0] in CARRYING:
            read = [*read, self.marks.carry]
        if not out:
            return []

        def run(sel: Select, mask: Mask) -> None:
            marks = joined(read, sel)
            if marks is not None and together:
                marks = over_warps(marks)
            for row in out:
                store(row, sel, mask, 0 if marks is None else spread(marks, row))

        return [run]

    def _atomic(self, d: Decoder, ins: Instruction, each: Roles) -> Step:
        """The old value has the marks of the place, which also gets those of the operands."""
        found = located_access(d, ins)
        assert found is not None
        rows = self._rows(r for r in each.read if r not in each.addresses)
        out, warps = self._rows(each.written), self.machine.warps

        def run(sel: Select, mask: Mask) -> None:
            access = found.of(sel, mask)
            marks = np.zeros((warps, LANES), np.uint8)
            if (given := joined(rows, sel)) is not None:
                marks[sel] = given
            old = np.zeros(warps * LANES, np.uint8)
            for arena, at, lanes in access.parts():
                beside = self.marks.beside(arena).bytes
                cells = at.reshape(-1, 1) + np.arange(access.size)
                flat = lanes.ravel()
                np.bitwise_or.at(beside, cells, marks.reshape(-1)[flat][:, None])
                old[flat] = np.bitwise_or.reduce(beside[cells], axis=1)
            for row in out:
                store(row, sel, mask, spread(old.reshape(warps, LANES)[sel], row))

        return run

    def _store_later(self, rows: Sequence[Row]) -> Step:
        """st.async and red.async: anywhere in shared memory, by now."""

        def run(sel: Select, mask: Mask) -> None:
            marks = joined(rows, sel)
            assert marks is not None
            self.plane.memory.shared.bytes[...] |= np.bitwise_or.reduce(marks, axis=None)

        return run

    def _remember(self, ins: Instruction) -> Step:
        """What is issued next is this instruction's."""

        def run(sel: Select, mask: Mask) -> None:
            self._current = ins

        return run

    def _map(self, d: Decoder, ins: Instruction) -> list[Step]:
        """The tensor map of a copy, where it lies in memory."""
        operand = map_of(ins)
        if operand is None or not self.followed & GLOBAL:
            return []
        place, memory = d.place_of(ins, operand, "generic"), self.machine.memory

        def run(sel: Select, mask: Mask) -> None:
            address = place.at(sel, mask)
            for arena, at, _ in memory.spaces(place.space, address, sel, mask, 1):
                bytes_ = self.marks.beside(arena).bytes
                cells = at.reshape(-1, 1) + np.arange(SIZE)
                self._see(ins, "a tensor map", bytes_[np.minimum(cells, bytes_.size - 1)])

        return [run]

    # -- calls and votes ---------------------------------------------------------------------------

    def _call(self, d: Decoder, ins: Instruction) -> list[Step]:
        if self.ways.extern(ins):
            return self._extern(d, ins)
        if not self._calls:
            return []
        routines = self.program.routines.values()
        taken = [p for each in routines for p in each.parameters if isinstance(p, Register)]
        even = self._even(half for register in taken for half in register.halves)
        return [Calls(PlaneDecoder(d, self.plane)).begin(ins), even]

    def _extern(self, d: Decoder, ins: Instruction) -> list[Step]:
        """A function without a body: nothing of an array may be in its arguments."""
        calls = Calls(PlaneDecoder(d, self.plane))
        name = self.ways.extern(ins)
        forget = [calls.begin(ins)] if self._calls else []
        if not self.followed & LOCAL:
            return forget
        fetches = calls.passed(ins)

        def run(sel: Select, mask: Mask) -> None:
            for fetch in fetches:
                marks = fetch(sel, mask)
                marks = np.ascontiguousarray(marks if mask is None else marks[mask])
                self._see(ins, f"an argument of {name}", marks.view(np.uint8))

        return [run, *forget]

    def _vote(self, ins: Instruction) -> Step:
        """bar.red: all results of a block have what any of its lanes has ever voted with."""
        rows = self._rows(self.flow.of(ins).operands[-1])

        def run(sel: Select, mask: Mask) -> None:
            warps = np.arange(self.machine.warps)[sel]
            blocks = self.machine.block_of[warps]
            marks = joined(rows, sel)
            if marks is not None:
                marks = marks if mask is None else np.where(mask, marks, 0)
                np.bitwise_or.at(self._voted, blocks, np.bitwise_or.reduce(marks, axis=1))
            every = self._voted[self.machine.block_of[: self.machine.warps]][:, None]
            if every.any():
                for row in self._votes:
                    row |= spread(every, row)

        return run


def _guarded(d: Decoder, ins: Instruction, steps: Sequence[Step]) -> list[Step]:
    """Steps for the lanes alone for which a guard holds."""
    if ins.guard is None or not steps:
        return list(steps)
    holds, negated = d.row(ins, ins.guard.register, "pred"), ins.guard.negated
    inner: Callable[[Select, Mask], None] = sequence(steps)

    def run(sel: Select, mask: Mask) -> None:
        inner(sel, active(sel, mask, d.machine.warps) & (holds[sel] != negated))

    return [run]
