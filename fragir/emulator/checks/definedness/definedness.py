"""Use of uninitialised registers and shared memory.

Every bit of registers, shared and local memory has a bit beside it that says whether it is
undefined. These bits follow the data; what is reported is only a use that matters: a branch or
guard, an address, a store to global memory, a shuffle, an operand of a tensor-core instruction.
What was reported counts as defined from there on. Registers that no path reads before it writes
them, and that nothing undefined can reach, cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.atomics import Shadowed
from fragir.emulator.checks.definedness.rules import (
    MOVES,
    full,
    lanes_of,
    logic,
    moves,
    pairs,
    spread,
    truth_table,
)
from fragir.emulator.checks.definedness.shuffles import Shuffles
from fragir.emulator.checks.hooks import Hooks, later
from fragir.emulator.checks.shadow import Plane, PlaneDecoder
from fragir.emulator.instructions.calls import Calls
from fragir.emulator.instructions.warp_matrix import whole_warps
from fragir.emulator.machine.issues import WARPGROUP, Issue, expand
from fragir.emulator.machine.lanes import LANES, Mask, Step, store
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.numbers.types import Bools, count_of
from fragir.emulator.program.dataflow import Roles, dataflow, registers
from fragir.emulator.program.flow import split_call
from fragir.emulator.program.program import RESULTS, Program, Register
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.code import Terminator
    from fragir.emulator.machine.transfers import Copy, Transfer

KIND = "uninitialised"

_MATRIX = {"mma", "wmma", "wgmma"}
_VOTES = {"vote", "match", "redux"}
_LOADS = {"ld", "ldu", "ldmatrix", "atom"}


class Definedness(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.flow = dataflow(program)
        self.plane = Plane(machine, 0xFF)
        self._unwritten = self.flow.maybe_undefined()
        read_from_elsewhere = {
            r
            for placed, each in zip(program.code, self.flow.roles, strict=True)
            if placed.ins.opcode[0] in ("ld", "ldmatrix", "wmma", "atom", "shfl", RESULTS)
            for r in each.written
        }
        #: Registers that can hold undefined bits.
        self.tracked = self.flow.closure(
            self._unwritten | read_from_elsewhere,
            lambda ins: ins.opcode[0] not in _MATRIX and ins.opcode[0] not in _LOADS,
        )
        self._said: set[tuple[int, str]] = set()
        self._shuffles = Shuffles(self.plane)
        self._issuers: dict[int, tuple[Decoder, tree.Instruction]] = {}
        self._current: tuple[Decoder, tree.Instruction] | None = None
        self._decoder: Decoder | None = None

    def on_wave(self) -> None:
        self.plane.reset()
        self._shuffles.clear()
        for register in self._unwritten:
            row = self.plane.row(register)
            row[...] = full(np.ones((), np.bool_), row.dtype)

    # -- findings --------------------------------------------------------------------------------

    def _complain(
        self,
        d: Decoder,
        ins: tree.Instruction,
        name: str,
        what: str,
        warp: int,
        lane: int,
        count: int,
        address: int | None = None,
    ) -> None:
        key = (id(ins), name)
        if key in self._said:
            return
        self._said.add(key)
        self._suspects_of(d, ins, warp)
        some = "1 lane" if count == 1 else f"{count} lanes"
        self.report(
            d,
            ins,
            KIND,
            f"{name} is not initialised in {some}; it is {what}",
            lane=warp * LANES + lane,
            address=address,
            subject=name,
        )

    def _suspects_of(self, d: Decoder, use: tree.Instruction, warp: int) -> None:
        """Undefined values matter in a warp: so do those that it has shuffled."""
        line = d.program.error("", use.at).line
        for suspect in self._shuffles.of(warp):
            ins, name = suspect.ins, suspect.subject
            if (id(ins), name) in self._said:
                continue
            self._said.add((id(ins), name))
            text = f"{suspect.message}, and what comes of it is used at line {line}"
            self.report(d, ins, KIND, text, lane=warp * LANES + suspect.lane, subject=name)

    def _check(
        self,
        d: Decoder,
        ins: tree.Instruction,
        registers: Iterable[Register],
        what: str,
        place: MemoryOperand | None = None,
    ) -> list[Step]:
        """Steps that report undefined bits of registers in the lanes that take part."""
        rows = [
            (self.plane.row(r), self.flow.name(ins, r))
            for r in dict.fromkeys(registers)
            if r in self.tracked
        ]
        if not rows:
            return []

        def run(sel: Any, mask: Mask) -> None:
            for row, name in rows:
                bad = row[sel] != 0
                if mask is not None:
                    bad = bad & mask
                if bad.any():
                    warp, lane = (int(x) for x in np.argwhere(bad)[0])
                    warp = int(np.arange(self.machine.warps)[sel][warp])
                    address = None
                    if place is not None:
                        at = place.at(slice(None), None)
                        address = int(at[warp, lane])
                    count = int(bad.sum())
                    self._complain(d, ins, name, what, warp, lane, count, address)

        return [run]

    # -- decoding --------------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[tree.Instruction], step: Step) -> Step:
        self._decoder = d
        if group[0].opcode[0] == "mma" or group[0].opcode[:2] == ("wmma", "mma"):
            before = self._mma(d, group)
        else:
            before = self._shadow(d, group[0])
        if group[0].opcode[0] == "cp":
            before.append(self._remember(d, group[0]))
        if not before:
            return step

        def run(sel: Any, mask: Mask) -> None:
            for one in before:
                one(sel, mask)
            step(sel, mask)

        return run

    def wrap_guard(self, d: Decoder, instruction: tree.Instruction, step: Step) -> Step:
        guard = self.flow.of(instruction).guard
        before = self._check(d, instruction, [guard] if guard else [], "the guard")
        if not before:
            return step
        (check,) = before

        def run(sel: Any, mask: Mask) -> None:
            check(sel, mask)
            step(sel, mask)

        return run

    def wrap_terminator(
        self, d: Decoder, instruction: tree.Instruction, terminator: Terminator
    ) -> Terminator:
        each = self.flow.of(instruction)
        guard = [each.guard] if each.guard is not None else []
        branch = instruction.opcode[0] == "bra"
        before = self._check(
            d, instruction, guard, "the condition of a branch" if branch else "the guard"
        )
        if instruction.opcode[0] == "call":
            before += self._arguments(d, instruction)
        elif instruction.opcode[0] != "ret":
            what = {"brx": "the index of a branch"}.get(instruction.opcode[0], "an operand")
            before += self._check(d, instruction, each.read, what)
            before += self._clear(each.written)
        if not before:
            return terminator

        def run(sel: Any, mask: Mask) -> int | None:
            for one in before:
                one(sel, mask)
            return terminator(sel, mask)

        return run

    def _arguments(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        _, name, _ = split_call(ins)
        calls = Calls(PlaneDecoder(d, self.plane))
        checks: list[Step] = []
        if d.program.routine(name.text) is None and calls.extern(name) is None:
            called = registers(d.program, d.placed, name)
            checks = self._check(d, ins, called, "the function that is called")
        return [*checks, calls.begin(ins)]

    def _results(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        return [Calls(PlaneDecoder(d, self.plane)).end(ins)]

    def _clear(self, registers: Iterable[Register]) -> list[Step]:
        """Make registers defined in the lanes that take part."""
        rows = [self.plane.row(r) for r in registers if r in self.tracked]

        def run(sel: Any, mask: Mask) -> None:
            for row in rows:
                store(row, sel, mask, 0)

        return [run] if rows else []

    def _shadow(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """What happens to the undefined bits at one instruction, before it happens itself."""
        each = self.flow.of(ins)
        name = ins.opcode[0]
        if name == RESULTS:
            return self._results(d, ins)
        steps: list[Step] = []
        for operand in ins.operands:
            if isinstance(operand, tree.Address):
                place = d.place_of(ins, operand, d.space(ins))
                used = [r for r in each.addresses if r in self.tracked]
                steps += self._check(d, ins, used, "an address", place)
                break
        data = [r for r in each.read if r not in each.addresses]
        match name:
            case "ld" | "ldu" | "ldmatrix":
                return steps + self._load(d, ins, each)
            case "st" | "red" if later(ins):
                return steps + self._check(d, ins, data, f"an operand of {name}.async")
            case "st" if ins.opcode[1] == "bulk":
                steps += self._check(d, ins, data, "an operand of st.bulk")
                return [*steps, PlaneDecoder(d, self.plane).repeat(ins, (1,))]
            case "st" | "stmatrix":
                return steps + self._store(d, ins, data)
            case "wmma":
                return steps + self._fragment(d, ins, each)
            case "atom" | "red":
                return steps + self._atomic(d, ins, each, data)
            case "shfl":
                return steps + self._shuffle(d, ins, each)
            case "wgmma":
                descriptors = [r for f in each.operands[1:] for r in f if r.width != 32]
                return steps + self._check(d, ins, descriptors, "an operand of a wgmma")
            case "mbarrier":
                steps += self._check(d, ins, data, "an operand of an mbarrier")
                if ins.opcode[1] == "init":
                    steps.append(PlaneDecoder(d, self.plane).repeat(ins))
                return steps + self._clear(each.written)
            case "cp":
                return steps + self._check(d, ins, data, "an operand of a copy")
            case _:
                return steps + self._compute(d, ins, each, data)

    def _load(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        if not any(r in self.tracked for r in each.written):
            return []
        if d.place(ins, 1, d.space(ins)).space == "global":
            return self._clear(each.written)
        return [PlaneDecoder(d, self.plane).repeat(ins)]

    def _fragment(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        """wmma.load and wmma.store; their stride counts as an address."""
        stride = [r for found in each.operands[2:] for r in found]
        steps = self._check(d, ins, stride, "an address")
        load = ins.opcode[1] == "load"
        place = d.place(ins, 1 if load else 0, d.space(ins))
        if load and place.space == "global":
            return steps + self._clear(each.written)
        if load:
            return [*steps, PlaneDecoder(d, self.plane).repeat(ins, (2,))]
        checks = self._check(d, ins, each.operands[1], "stored to global memory", place)
        if place.space == "global":
            return steps + checks
        repeat = PlaneDecoder(d, self.plane).repeat(ins, (2,))

        def run(sel: Any, mask: Mask) -> None:
            if place.space == "generic" and (place.at(sel, mask) >= GLOBAL_BASE).all():
                for check in checks:
                    check(sel, mask)
            else:
                repeat(sel, mask)

        return [*steps, run]

    def _store(self, d: Decoder, ins: tree.Instruction, data: list[Register]) -> list[Step]:
        place = d.place(ins, 0, d.space(ins))
        what = "stored to global memory"
        if place.space == "global":
            return self._check(d, ins, data, what, place)
        repeat = PlaneDecoder(d, self.plane).repeat(ins)
        if place.space != "generic":
            return [repeat]
        checks = self._check(d, ins, data, what, place)
        memory, globals_ = self.machine.memory, self.plane.memory.globals

        def run(sel: Any, mask: Mask) -> None:
            address = place.at(sel, mask)
            for arena, at, which in memory.spaces("generic", address, sel, mask, 1):
                if arena is not memory.globals:
                    continue
                lanes = mask
                if which is not None:
                    lanes = which
                    if mask is not None:
                        lanes = mask.copy()
                        lanes[mask] = which
                for check in checks:
                    check(sel, lanes)
                repeat(sel, mask)
                for offset in range(32):  # global memory counts as defined
                    globals_.bytes[np.minimum(at + offset, globals_.bytes.size - 1)] = 0
                return
            repeat(sel, mask)

        return [run]

    def _atomic(
        self, d: Decoder, ins: tree.Instruction, each: Roles, data: list[Register]
    ) -> list[Step]:
        place = d.place(ins, 1 if ins.opcode[0] == "atom" else 0, d.space(ins))
        what = "an operand of an atomic on global memory"
        checks = self._check(d, ins, data, what, place)
        if place.space == "global" or count_of(ins.opcode) > 1:
            return checks + self._clear(each.written)
        outs = [self.plane.row(r) for r in each.written if r in self.tracked]
        shadowed = Shadowed(d, ins, self.plane, outs)

        def run(sel: Any, mask: Mask) -> None:
            shadowed.run(place, sel, mask)
            if (
                place.space == "generic"
                and (lanes := self._on_global(place, sel, mask)) is not None
            ):
                for check in checks:
                    check(sel, lanes)

        return [run]

    def _on_global(self, place: MemoryOperand, sel: Any, mask: Mask) -> Mask:
        """Which lanes address global memory; None where none does."""
        lanes = np.ones((len(np.arange(self.machine.warps)[sel]), LANES), np.bool_)
        lanes = lanes if mask is None else mask.copy()
        lanes[lanes] = place.at(sel, mask).ravel() >= GLOBAL_BASE
        return lanes if lanes.any() else None

    def _shuffle(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        steering = [r for operand in each.operands[2:] for r in operand]
        steps = self._check(d, ins, steering, "an operand of a shuffle")
        first, _ = d.pair(d.operand(ins, 0))
        if isinstance(first, tree.Sink):
            return steps + self._clear(each.written)
        moved = [r for r in each.operands[1] if r in self.tracked]
        name = self.flow.name(ins, moved[0]) if moved else ""
        row = self.plane.row(moved[0]) if moved else None
        out = self.plane.row(each.written[0])
        step = self._shuffles.step(d, ins, out, row, name)
        return [*steps, step, *self._clear(each.written[1:])]

    # -- computing -------------------------------------------------------------------------------

    def _compute(
        self, d: Decoder, ins: tree.Instruction, each: Roles, data: list[Register]
    ) -> list[Step]:
        outs = [r for r in each.written if r in self.tracked]
        sources = [r for r in data if r in self.tracked]
        same = ins.opcode[0] in ("xor", "sub") and len({*each.operands[1:]}) == 1
        if not outs:
            return []
        if not sources or same:
            return self._clear(outs)
        plane = PlaneDecoder(d, self.plane)
        if moves(ins):
            return self._move(d, plane, ins, each, outs)
        found = truth_table(ins, d.literal(ins, 4) if len(ins.operands) == 5 else None)
        if found is not None and len(each.written) == 1:
            return [self._logic(d, plane, ins, *found)]
        rows = [self.plane.row(r) for r in sources]
        targets = [self.plane.row(r) for r in outs]
        if pairs(ins):
            return [self._pair(ins, each)]
        parts = lanes_of(ins, [r.width for r in (*each.read, *each.written)])
        together = ins.opcode[0] in _VOTES

        def run(sel: Any, mask: Mask) -> None:
            chosen: list[Any] = [row[sel] for row in rows]
            if together:
                bad = spread(chosen, 1, np.bool_)
                bad = bad if mask is None else bad & mask
                chosen = [np.repeat(bad.any(axis=1, keepdims=True), LANES, axis=1)]
            for target in targets:
                store(target, sel, mask, spread(chosen, parts, target.dtype))

        return [run]

    def _move(
        self,
        d: Decoder,
        plane: PlaneDecoder,
        ins: tree.Instruction,
        each: Roles,
        outs: list[Register],
    ) -> list[Step]:
        steering = MOVES.get(ins.opcode[0], ())
        repeat = plane.repeat(ins, steering)
        controls = [
            self.plane.row(r) for i in steering for r in each.operands[i] if r in self.tracked
        ]
        if not controls:
            return [repeat]
        targets = [self.plane.row(r) for r in outs]

        def run(sel: Any, mask: Mask) -> None:
            bad: Bools = spread([row[sel] for row in controls], 1, np.bool_)
            repeat(sel, mask)
            if bad.any():
                for target in targets:
                    ones = full(bad, target.dtype)
                    store(target, sel, bad if mask is None else bad & mask, ones)

        return [run]

    def _logic(
        self, d: Decoder, plane: PlaneDecoder, ins: tree.Instruction, table: int, count: int
    ) -> Step:
        kind = ins.opcode[-1]
        values = [d.source(ins, i, kind) for i in range(1, count + 1)]
        undefined = [plane.source(ins, i, kind) for i in range(1, count + 1)]
        out = plane.target(ins, 0, kind)
        assert out is not None

        def run(sel: Any, mask: Mask) -> None:
            parts = [u[sel] for u in undefined]
            if not any(p.any() for p in parts):
                store(out, sel, mask, 0)
                return
            store(out, sel, mask, logic(table, [v[sel] for v in values], parts))

        return run

    def _pair(self, ins: tree.Instruction, each: Roles) -> Step:
        target = self.plane.row(each.written[0])
        half = target.dtype.itemsize * 4
        sides: list[Callable[[Any], Any]] = []
        for operand in each.operands[1:3]:
            rows = [self.plane.row(r) for r in operand if r in self.tracked]

            def bad(sel: Any, rows: Any = rows) -> Any:
                return spread([r[sel] for r in rows], 1, np.bool_) if rows else np.False_

            sides.append(bad)
        dtype = target.dtype.type
        ones = (1 << half) - 1

        def run(sel: Any, mask: Mask) -> None:
            high, low = (side(sel) for side in sides)
            value = high * dtype(ones << half) | low * dtype(ones)
            store(target, sel, mask, value)

        return run

    # -- matrices --------------------------------------------------------------------------------

    def _mma(self, d: Decoder, group: Sequence[tree.Instruction]) -> list[Step]:
        read = [(i, r) for i in group for r in self.flow.of(i).read if r in self.tracked]
        written = [r for i in group for r in self.flow.of(i).written if r in self.tracked]
        if not read and not written:
            return []
        checks = [
            c
            for i in group
            for c in self._check(d, i, self.flow.of(i).read, f"an operand of {i.opcode[0]}")
        ]
        files = self.plane.machine.files
        by_width = {
            width: np.array(sorted({r.index for _, r in read if r.width == width}), np.intp)
            for width in sorted({r.width for _, r in read})
        }
        clear = {
            width: np.array(sorted({r.index for r in written if r.width == width}), np.intp)
            for width in sorted({r.width for r in written})
        }

        def run(sel: Any, mask: Mask) -> None:
            if any(files[w][rows][:, sel].any() for w, rows in by_width.items()):
                for check in checks:
                    check(sel, mask)
            warps = np.arange(self.machine.warps)[whole_warps(sel, mask)]
            for width, rows in clear.items():
                files[width][rows[:, None], warps] = 0

        return [run]

    def on_wgmma_execute(self, item: Issue) -> None:
        form, d = item.form, self._decoder
        assert d is not None
        every = expand(item.warps)
        file = self.plane.machine.files[32]
        added = np.repeat(item.scale, WARPGROUP)
        used = [(int(r), every[added]) for r in form.d] if added.any() else []
        used += [(int(r), every) for r in (form.a if form.a is not None else ())]
        for index, warps in used:
            bad = file[index][warps] != 0
            if bad.any():
                warp, lane = (int(x) for x in np.argwhere(bad)[0])
                name = self.flow.name(form.instruction, Register(32, index, ""))
                what = "an operand of wgmma"
                count = int(bad.sum())
                self._complain(d, form.instruction, name, what, int(warps[warp]), lane, count)
        self._shared_operands(d, item)
        file[form.d[:, None], every] = 0

    def _shared_operands(self, d: Decoder, item: Issue) -> None:
        form = item.form
        transposes = {k: v for k, v in form.options.items() if k.startswith("transpose")}
        at = form.op.shared_addresses(item.a, item.b, **transposes).astype(np.int64)
        memory = self.plane.memory
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        at = at + home[:, None]
        if at.size and int((at - home[:, None]).max()) + 16 > memory.shared_size:
            return  # the wgmma itself reports it
        bad = memory.shared.bytes.reshape(-1, 16)[at >> 4].any(axis=-1)
        if bad.any():
            group, chunk = (int(x) for x in np.argwhere(bad)[0])
            address = int(at[group, chunk] - home[group])
            name = f"shared memory at {address}"
            warp = int(item.warps[group])
            self._complain(
                d, form.instruction, name, "an operand of wgmma", warp, 0, LANES * 4, address
            )

    # -- asynchronous copies ---------------------------------------------------------------------

    def _remember(self, d: Decoder, ins: tree.Instruction) -> Step:
        def run(sel: Any, mask: Mask) -> None:
            self._current = (d, ins)

        return run

    def on_copy_complete(self, copy: Copy) -> None:
        copy.move(self.plane.memory)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        if transfer.reads is not None and self._current is not None:
            self._issuers[id(transfer)] = self._current

    def on_transfer_complete(self, transfer: Transfer) -> None:
        memory = self.plane.memory
        issuer = self._issuers.pop(id(transfer), None)
        if transfer.into is not None and not transfer.atomic:
            transfer.move(memory)
        if transfer.reads is None or (transfer.into is not None and not transfer.atomic):
            return
        if transfer.exact is not None:
            at, bad = transfer.exact, memory.shared.bytes[transfer.exact] != 0
        else:
            at = transfer.reads
            bad = memory.shared.bytes.reshape(-1, 16)[at >> 4].any(axis=1)
        if bad.any() and issuer is not None:
            offset = int(at[bad][0]) % max(memory.shared_stride, 1)
            warp, lane = divmod(int(transfer.lanes[0]), LANES)
            what = "reduced" if transfer.atomic else "stored to global memory"
            self._complain(*issuer, f"shared memory at {offset}", what, warp, lane, 1, offset)
