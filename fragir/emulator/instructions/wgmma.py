"""wgmma: asynchronous, with groups (PTX ISA 9.2, section 9.7.15).

A wgmma executes when a wait names its group: it reads its operands then. From issue to that moment
its accumulator and its A registers may not be touched by anything but wgmma with the same
accumulator. Registers that other instructions wrote must pass a `wgmma.fence` before a wgmma uses
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.common import EmulationError, Mask, Step
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.warp_matrix import operation, whole_warps
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.program.program import Register
from fragir.emulator.report import Finding
from fragir.emulator.tensor_cores import WgmmaOp
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.decode import Decoder
    from fragir.emulator.machine.state import Machine

WARPGROUP = 4


@dataclass(frozen=True, slots=True)
class Form:
    """What is constant in one wgmma of the text."""

    op: WgmmaOp
    d: npt.NDArray[np.intp]  # rows of the 32-bit register file
    a: npt.NDArray[np.intp] | None  # None: A is in shared memory
    options: dict[str, Any]
    place: tuple[str | None, int | None, int | None]  # file, line, column in the PTX
    instruction: tree.Instruction
    names: dict[int, str]  # row -> the register's name in the text

    def name(self, row: int) -> str:
        return self.names.get(row, "a register")


@dataclass(frozen=True, slots=True)
class Issue:
    """One wgmma of some warpgroups, not executed yet. Arrays run along the warpgroups."""

    form: Form
    warps: npt.NDArray[np.intp]  # the first warp of each warpgroup
    groups: npt.NDArray[np.int64]  # number of the commit group it belongs to
    a: npt.NDArray[np.uint64] | None
    b: npt.NDArray[np.uint64]
    scale: npt.NDArray[np.bool_]
    meta: npt.NDArray[np.uint32] | None

    def part(self, which: npt.NDArray[np.bool_]) -> Issue:
        return replace(
            self,
            warps=self.warps[which],
            groups=self.groups[which],
            a=None if self.a is None else self.a[which],
            b=self.b[which],
            scale=self.scale[which],
            meta=None if self.meta is None else self.meta[:, which],
        )


class Warpgroups:
    """Pending wgmma of the resident warps, and which registers they hold."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.file = machine.files[32]
        shape = (len(self.file), machine.warps)
        self.held: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        self.dirty: npt.NDArray[np.bool_] = np.ones(shape, np.bool_)
        self.committed: npt.NDArray[np.int64] = np.zeros(machine.warps, np.int64)
        self.pending: list[Issue] = []
        machine.on_wave.append(self.reset)

    def reset(self) -> None:
        self.held[...] = 0
        self.dirty[...] = True
        self.committed[...] = 0
        self.pending = []

    # -- instructions ------------------------------------------------------------------------

    def fence(self, warps: Any) -> None:
        self.dirty[:, warps] = False

    def issue(self, item: Issue) -> None:
        form = item.form
        every = expand(item.warps)
        for hook in self.machine.hooks:
            hook.on_wgmma_issue(item)
        if self.pending:
            self._check_order(form, every)
        used = form.d if form.a is None else np.concatenate([form.d, form.a])
        if self.dirty[used][:, every].any():
            self._report_fence(form, used, every)
        if self.machine.engine.retires_now():
            self.wait(every, -1)  # in order: everything issued before comes first
            self._execute(item)
            return
        self.held[used[:, None], every] += 1
        self.pending.append(item)

    def _check_order(self, form: Form, every: Any) -> None:
        """Registers held by earlier wgmma may only be used as the same accumulator."""
        if form.a is not None and self.held[form.a][:, every].any():
            for other in self._pending_of(every):
                if np.isin(form.a, other.form.d).any():
                    raise self._touched("its A registers are", form.a, other, every)
        if self.held[form.d][:, every].any():
            for other in self._pending_of(every):
                same = np.array_equal(other.form.d, form.d)
                if not same and np.isin(form.d, other.form.d).any():
                    raise self._touched("its accumulator overlaps", form.d, other, every)

    def _pending_of(self, warps: Any) -> list[Issue]:
        """What these warps have issued and not waited for."""
        return [item for item in self.pending if np.isin(expand(item.warps), warps).any()]

    @staticmethod
    def _touched(what: str, rows: Any, other: Issue, every: Any) -> EmulationError:
        form = other.form
        register = form.name(int(rows[np.isin(rows, form.d)][0]))
        error = EmulationError(
            f"{what} the accumulator of a wgmma that is still pending: {register} of the wgmma "
            f"of line {form.place[1]}",
            hint="wgmma.wait_group first",
            kind="wgmma-registers",
        )
        error.warp, error.lane = int(every[np.isin(every, expand(other.warps))][0]), 0
        return error

    def _report_fence(self, form: Form, used: Any, every: Any) -> None:
        report = self.machine.report
        dirty = self.dirty[used][:, every]
        warp = int(every[dirty.any(axis=0)][0])
        names = [form.name(int(row)) for row in used[dirty.any(axis=1)]]
        some = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
        block, local = self.machine.place(warp)
        report.findings.append(
            Finding(
                "wgmma-fence",
                f"registers of this wgmma were written without a wgmma.fence in between: {some} "
                f"(block {block} warp {local} lane 0)",
                *form.place,
                warp=local,
                lane=0,
                subject=names[0],
            )
        )
        self.dirty[used[:, None], every] = False  # say it once

    def commit(self, warps: Any) -> None:
        self.committed[warps] += 1

    def wait(self, warps: Any, newest: int) -> None:
        """Execute all but the `newest` committed groups of the warps' warpgroups, in order."""
        if not self.pending:
            return
        limit = np.full(self.machine.warps, -1, np.int64)
        limit[warps] = self.committed[warps] - newest
        limit = limit.reshape(-1, WARPGROUP).max(axis=1).repeat(WARPGROUP)
        kept: list[Issue] = []
        for item in self.pending:
            ready = item.groups < limit[item.warps]
            if ready.all():
                self._retire(item)
            elif ready.any():
                self._retire(item.part(ready))
                kept.append(item.part(~ready))
            else:
                kept.append(item)
        self.pending = kept

    def finish(self) -> None:
        """The wave is over: what nobody waited for is reported."""
        for item in self.pending:
            block, local = self.machine.place(int(item.warps[0]))
            self.machine.report.findings.append(
                Finding(
                    "unretired",
                    f"nothing waited for this wgmma (block {block} warp {local} lane 0)",
                    *item.form.place,
                    warp=local,
                    lane=0,
                )
            )
        self.pending = []

    # -- execution -----------------------------------------------------------------------------

    def _retire(self, item: Issue) -> None:
        form = item.form
        used = form.d if form.a is None else np.concatenate([form.d, form.a])
        self.held[used[:, None], expand(item.warps)] -= 1
        self._execute(item)

    def _execute(self, item: Issue) -> None:
        form, machine = item.form, self.machine
        for hook in machine.hooks:
            hook.on_wgmma_execute(item)
        every = expand(item.warps)
        count = len(item.warps)
        shape = (-1, count, WARPGROUP, 32)
        d = self.file[form.d[:, None], every].reshape(shape)
        a: Any = item.a
        if form.a is not None:
            a = self.file[form.a[:, None], every].reshape(shape)
        memory = machine.memory
        home = machine.block_of[item.warps].astype(np.int64) * memory.shared_stride

        def read(addresses: Any) -> Any:
            if addresses.size and int(addresses.max()) + 16 > memory.shared_size:
                beyond = addresses.astype(np.int64) + 16 > memory.shared_size
                text = (
                    f"the wgmma of line {form.place[1]} reads at {int(addresses.max())}; "
                    f"the block has {memory.shared_size}"
                )
                raise refuse(text, "out-of-bounds", addresses, int(np.flatnonzero(beyond)[0]))
            at = addresses.astype(np.int64) + home[:, None]
            if memory.poisoned:
                try:
                    memory.check_poison(memory.shared, at, 16)
                except AccessFault as fault:
                    text = f"the wgmma of line {form.place[1]} reads here: {fault.reason}"
                    raise refuse(text, fault.kind, addresses, fault.index) from None
            return memory.shared.bytes.reshape(-1, 16)[at >> 4]

        def refuse(text: str, kind: str, addresses: Any, index: int) -> EmulationError:
            error = EmulationError(text, kind=kind)
            error.warp, error.lane = int(item.warps[index // addresses.shape[-1]]), 0
            error.address = int(addresses.flat[index])
            return error

        options = dict(form.options)
        if item.meta is not None:
            options["e"] = item.meta
        result = form.op.execute(d, a, item.b, read, scale_d=item.scale, **options)
        self.file[form.d[:, None], every] = result.reshape(len(form.d), -1, 32)
        machine.report.statistics.mma += count

    # -- the registers that others touch -------------------------------------------------------

    def _touches(self, text: str, touched: Any, held: Any, sel: Any, mask: Mask) -> EmulationError:
        """The error of an instruction that uses a pending register in the rows `held` of `sel`."""
        row = next(int(w) for w in held if mask is None or mask[w].any())
        warp = int(np.arange(self.machine.warps)[sel][row])
        register = int(touched[self.held[touched, warp] != 0][0])
        owner = next(
            i
            for i in self.pending
            if warp in expand(i.warps)
            and (register in i.form.d or (i.form.a is not None and register in i.form.a))
        ).form
        lane = 0 if mask is None else int(np.argmax(mask[row]))
        part = "the accumulator" if register in owner.d else "A"
        error = EmulationError(
            f"{text} touches a register of a wgmma that is still pending: "
            f"{owner.name(register)}, in {part} of the wgmma of line {owner.place[1]}",
            hint="wgmma.wait_group first",
            kind="wgmma-registers",
        )
        error.warp, error.lane = warp, lane
        return error

    def watch(self, step: Step, touched: npt.NDArray[np.intp], written: Any, text: str) -> Step:
        """A step of another instruction that uses registers of some wgmma."""

        def run(sel: Any, mask: Mask) -> None:
            if self.pending and self.held[touched][:, sel].any():
                where = np.argwhere(self.held[touched][:, sel].any(axis=0))
                some = np.ones(1, np.bool_) if mask is None else mask[where[:, 0]].any(axis=1)
                if mask is None or some.any():
                    raise self._touches(text, touched, where[:, 0], sel, mask)
            step(sel, mask)
            if len(written):
                if mask is None:
                    self.dirty[written[:, None], np.arange(self.machine.warps)[sel]] = True
                else:
                    warps = np.arange(self.machine.warps)[sel][mask.any(axis=1)]
                    self.dirty[written[:, None], warps] = True

        return run


def expand(first: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """All warps of the warpgroups that begin at `first`."""
    return (first[:, None] + np.arange(WARPGROUP)).ravel()


def needs_warpgroup(ins: tree.Instruction) -> bool:
    """Whether the four warps of a warpgroup must come together."""
    return ins.opcode[:2] == ("wgmma", "mma_async")


def registers_of(d: Decoder, operands: Any) -> npt.NDArray[np.intp]:
    """The rows of the 32-bit file that operands name."""
    found: set[int] = set()
    stack: list[Any] = list(operands)
    while stack:
        node = stack.pop()
        if isinstance(node, tree.Name):
            register = d.program.find(d.scope, node.text)
            if isinstance(register, Register) and register.width == 32:
                found.add(register.index)
        elif isinstance(node, tree.Vector | tree.Parens):
            stack.extend(node.elements)
        elif isinstance(node, tree.Pair):
            stack += [node.first, node.second]
        elif isinstance(node, tree.Address):
            stack.append(node.base)
        elif isinstance(node, tree.Unary):
            stack.append(node.operand)
    return np.array(sorted(found), np.intp)


# -- decoding --------------------------------------------------------------------------------------


def _rows(d: Decoder, ins: tree.Instruction, elements: Any, count: int) -> npt.NDArray[np.intp]:
    if len(elements) != count:
        raise d.error(ins, f"{ins.mnemonic} has {count} registers here, not {len(elements)}")
    registers = [d.register(ins, e) for e in elements]
    if any(r.width != 32 for r in registers):
        raise d.error(ins, f"{ins.mnemonic} needs 32-bit registers here")
    return np.array([r.index for r in registers], np.intp)


def _mma(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, WgmmaOp)
    machine = d.machine
    if machine.warps_per_block % WARPGROUP:
        raise d.error(
            ins, f"wgmma needs whole warpgroups; the block has {machine.warps_per_block} warps"
        )
    a_operand = d.operand(ins, 1)
    a_rows = None
    if isinstance(a_operand, tree.Vector):
        a_rows = _rows(d, ins, a_operand.elements, op.a.count)
    rest = list(range(3, d.count(ins)))
    options: dict[str, Any] = {}
    meta = None
    immediates = (2 if op.scales_inputs else 0) + (
        0 if not op.transposes else 1 if a_rows is not None else 2
    )
    wanted = 1 + immediates + (2 if op.e is not None else 0)
    if len(rest) != wanted:
        raise d.error(ins, f"{ins.mnemonic} takes {3 + wanted} operands, not {d.count(ins)}")
    if op.e is not None:
        meta = d.source(ins, rest.pop(0), "u32")
        selector = d.literal(ins, rest.pop(0))
        if selector not in op.selectors:
            raise d.error(ins, f"the sparsity selector must be one of {list(op.selectors)}")
        options["selector"] = selector
    scale = d.source(ins, rest.pop(0), "pred")
    values = [d.literal(ins, i) for i in rest]
    if op.scales_inputs:
        for name, value in zip(("scale_a", "scale_b"), values, strict=False):
            if value not in (1, -1):
                raise d.error(ins, "imm-scale must be 1 or -1")
            options[name] = value
        values = values[2:]
    if op.transposes:
        names = ["transpose_b"] if a_rows is not None else ["transpose_a", "transpose_b"]
        for name, value in zip(names, values, strict=True):
            if value not in (0, 1):
                raise d.error(ins, "imm-trans must be 0 or 1")
            options[name] = bool(value)
    where = d.program.error("", ins.at)
    into = _rows(d, ins, d.vector(d.operand(ins, 0)), op.d.count)
    names = {
        d.register(ins, e).index: e.text
        for operand in ins.operands[:2]
        for e in (d.vector(operand) if operand is not a_operand or a_rows is not None else ())
        if isinstance(e, tree.Name)
    }
    form = Form(op, into, a_rows, options, (where.file, where.line, where.col), ins, names)
    a = None if a_rows is not None else d.source(ins, 1, "u64")
    b = d.source(ins, 2, "u64")

    def run(sel: Any, mask: Mask) -> None:
        warps = np.arange(machine.warps)[whole_warps(sel, mask)]
        first = warps[::WARPGROUP]
        if not np.array_equal(expand(first), warps) or (first % WARPGROUP).any():
            raise EmulationError(
                "the four warps of the warpgroup are not all here", kind="divergent"
            )

        def uniform(row: Any, what: str) -> Any:
            value = row[warps].reshape(len(first), -1)
            if (value != value[:, :1]).any():
                raise EmulationError(f"{what} must be the same in all threads of the warpgroup")
            return value[:, 0].copy()

        machine.wgmma.issue(
            Issue(
                form,
                first,
                machine.wgmma.committed[first].copy(),
                None if a is None else uniform(a, "the descriptor of A"),
                uniform(b, "the descriptor of B"),
                uniform(scale, "scale-d"),
                None if meta is None else meta[warps].reshape(1, len(first), WARPGROUP, 32).copy(),
            )
        )

    return run


def wgmma(d: Decoder, ins: tree.Instruction) -> Step:
    machine = d.machine
    match ins.opcode[1]:
        case "mma_async":
            return _mma(d, ins)
        case "fence":
            return lambda sel, mask: machine.wgmma.fence(whole_warps(sel, mask))
        case "commit_group":
            return lambda sel, mask: machine.wgmma.commit(whole_warps(sel, mask))
        case "wait_group":
            newest = d.literal(ins, 0)
            if newest is None or newest < 0:
                raise d.error(ins, "wgmma.wait_group needs a constant")
            number = newest
            return lambda sel, mask: machine.wgmma.wait(whole_warps(sel, mask), number)
        case _:
            raise d.error(ins, f"the instruction {ins.mnemonic} is not known")


TABLE: dict[str, Decode] = {"wgmma": wgmma}
