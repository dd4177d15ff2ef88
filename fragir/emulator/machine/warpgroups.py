"""wgmma in flight: which are pending, and which registers they hold (PTX ISA 9.2, 9.7.15).

A wgmma executes when a wait names its group: it reads its operands then. From issue to that moment
its accumulator and its A registers may not be touched by anything but wgmma with the same
accumulator. Registers that other instructions used must pass a `wgmma.fence` before a wgmma uses
them; where they were only read, no machine known does otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.transfers import WARPGROUP, Issue, WgmmaStatement, expand
from fragir.emulator.numbers.types import I64, U8, U32, U64, Array
from fragir.emulator.report import EmulationError, Finding
from fragir.emulator.tensor_cores import descriptor
from fragir.emulator.tensor_cores.compiled import CompiledWgmma, FileRows, wgmma_core

if TYPE_CHECKING:
    from fragir.emulator.machine.state import State


# -- wgmma execution -------------------------------------------------------------------------------
# What a wgmma does when it executes: it reads its operands, and adds their products.

#: Descriptors whose addresses a statement keeps: a loop comes back to the same stages.
_KEPT = 64


class WgmmaProduct:
    """One statement on one machine."""

    def __init__(self, machine: State, form: WgmmaStatement) -> None:
        self.machine, self.form = machine, form
        self.file = machine.files[32]
        options = form.options
        self.transposed = options.get("transpose_a", False), options.get("transpose_b", False)
        self.core: CompiledWgmma | None = None
        self.chosen = False
        self.kept: dict[tuple[bool, bytes, bytes], tuple[U32, int, I64]] = {}

    def choose(self) -> None:
        """What computes: decided when the statement is first executed."""
        form = self.form
        a = None if form.a is None else FileRows(self.file, form.a[:, None])
        d = FileRows(self.file, form.d[:, None])
        self.core = wgmma_core(form.op, d, a, **form.options)
        self.chosen = True

    def check_operands(self, item: Issue) -> None:
        """At its issue: from then on it may read, so no copy to its operands may be pending."""
        home = (
            self.machine.block_of[item.warps].astype(np.int64) * self.machine.memory.shared_stride
        )
        if item.a is not None:
            self._addresses(item, home, item.a, left=True)
        self._addresses(item, home, item.b, left=False)

    def execute(self, item: Issue) -> None:
        machine = self.machine
        if not self.chosen:
            self.choose()
        home = machine.block_of[item.warps].astype(np.int64) * machine.memory.shared_stride
        if self.core is None:
            self._by_numpy(item, home)
        else:
            a = None if item.a is None else self._addresses(item, home, item.a, left=True)
            b = self._addresses(item, home, item.b, left=False)
            shared = machine.memory.shared.bytes
            self.core(item.warps, shared, home, a, b, item.scale, item.meta, machine.jobs)
        machine.report.statistics.mma += len(item.warps)

    def _by_numpy(self, item: Issue, home: I64) -> None:
        form, machine = self.form, self.machine
        every = expand(item.warps)
        shape = (-1, len(item.warps), WARPGROUP, 32)
        d = self.file[form.d[:, None], every].reshape(shape)
        a: Any = item.a
        if form.a is not None:
            a = self.file[form.a[:, None], every].reshape(shape)

        def read(addresses: U32) -> U8:
            at = addresses.astype(np.int64) + home[:, None]
            self._check(item, addresses, int(addresses.max(initial=0)), at)
            return machine.memory.shared.bytes.reshape(-1, 16)[at >> 4]

        options = dict(form.options)
        if item.meta is not None:
            options["e"] = item.meta
        jobs = machine.jobs
        result = form.op.execute(d, a, item.b, read, scale_d=item.scale, jobs=jobs, **options)
        self.file[form.d[:, None], every] = result.reshape(len(form.d), -1, 32)

    def _addresses(self, item: Issue, home: I64, words: U64, *, left: bool) -> U32:
        """The chunks that an operand's descriptors name, checked: `[G, x]`."""
        key = left, words.tobytes(), home.tobytes()
        found = self.kept.get(key)
        if found is None:
            turned = self.transposed[0 if left else 1]
            addresses = self.form.op.addresses(words, left=left, transposed=turned)
            flat = np.ascontiguousarray(addresses.reshape(len(words), -1))
            if len(self.kept) >= _KEPT:
                self.kept.clear()
            at = flat.astype(np.int64) + home[:, None]
            found = self.kept[key] = flat, int(flat.max(initial=0)), at
        self._check(item, *found)
        return found[0]

    def _check(self, item: Issue, addresses: U32, most: int, at: I64) -> None:
        """EmulationError where chunks lie outside the block's memory, or are yet to be written."""
        memory, line = self.machine.memory, self.form.place[1]
        if addresses.size and most + 16 > memory.shared_size:
            beyond = addresses.astype(np.int64) + 16 > memory.shared_size
            index = int(np.flatnonzero(beyond)[0])
            text = f"the wgmma of line {line} reads at {most}; the block has {memory.shared_size}"
            text += f" ({self.operand(item, addresses, index, memory.shared_size)})"
            raise self._refuse(item, text, "out-of-bounds", addresses, index)
        if memory.poisoned:
            try:
                memory.check_poison(memory.shared, at, 16)
            except AccessFault as fault:
                text = f"the wgmma of line {line} reads here: {fault.reason}"
                text += f" ({self.operand(item, addresses, fault.index)})"
                raise self._refuse(item, text, fault.kind, addresses, fault.index) from None

    def operand(self, item: Issue, addresses: U32, index: int, size: int = 0) -> str:
        """Whose descriptor names the chunk `index`, its fields, and which lead beyond `size`."""
        group = index // addresses.shape[-1]
        for letter, words, turned in zip("AB", (item.a, item.b), self.transposed, strict=True):
            if words is None:
                continue
            chunks = partial(self.form.op.addresses, left=letter == "A", transposed=turned)
            if np.array_equal(chunks(words[group : group + 1]).ravel(), addresses[group].ravel()):
                word = int(words[group])
                fields = descriptor.leads_beyond(word, size, chunks) if size else []
                leads = f"; its {' or its '.join(fields)} leads there" if fields else ""
                return f"{letter}'s {descriptor.descriptor_text(word)}{leads}"
        return "an operand's descriptor"

    @staticmethod
    def _refuse(item: Issue, text: str, kind: str, addresses: U32, index: int) -> EmulationError:
        error = EmulationError(text, kind=kind)
        error.warp, error.lane = int(item.warps[index // addresses.shape[-1]]), 0
        error.address = int(addresses.flat[index])
        return error


FENCE = (
    '; PTX ISA, wgmma.fence: "wgmma.fence must be used to order register accesses between '
    'wgmma.mma_async and other operations."'
)
"""What an instruction breaks that only reads registers: no machine known does otherwise."""


class Warpgroups:
    """Pending wgmma of the resident warps, and which registers they hold."""

    def __init__(self, machine: State) -> None:
        self.machine = machine
        self.file = machine.files[32]
        shape = (len(self.file), machine.warps)
        self.held: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        self.dirty: npt.NDArray[np.bool_] = np.ones(shape, np.bool_)  # written since a fence
        self.used: npt.NDArray[np.bool_] = np.zeros(shape, np.bool_)  # or read
        self.committed: npt.NDArray[np.int64] = np.zeros(machine.warps, np.int64)
        self.pending: list[Issue] = []
        # by the statements, which live as long
        self.products: dict[int, WgmmaProduct] = {}
        self.conflicts: dict[tuple[int, int], tuple[bool, bool]] = {}
        machine.on_wave.append(self.reset)

    def reset(self) -> None:
        self.held[...] = 0
        self.dirty[...] = True
        self.used[...] = False
        self.committed[...] = 0
        self.pending = []

    def leave(self, gone: npt.NDArray[np.bool_]) -> None:
        """What these warps have issued does not happen here."""
        self.held[:, gone] = 0
        parts = [(item, ~gone[item.warps]) for item in self.pending]
        self.pending = [
            item if stays.all() else item.part(stays) for item, stays in parts if stays.any()
        ]

    # -- instructions ------------------------------------------------------------------------

    def fence(self, warps: Select) -> None:
        self.dirty[:, warps] = False
        self.used[:, warps] = False

    def issue(self, item: Issue) -> None:
        form = item.form
        every = expand(item.warps)
        if self.machine.memory.poisoned:
            self._product(item).check_operands(item)
        for hook in self.machine.hooks:
            hook.on_wgmma_issue(item)
        if self.pending:
            self._check_order(item, every)
        touched = form.touched
        used = touched[:, None], every
        if self.dirty[used].any():
            self._report_fence(form, touched, every, self.dirty, "written")
        elif self.used[used].any():
            self._report_fence(form, touched, every, self.used, "read", FENCE)
        if self.machine.retires_now():
            self.wait(every, -1)  # in order: everything issued before comes first
            self._execute(item)
            return
        self.held[used] += 1
        self.pending.append(item)

    def _check_order(self, item: Issue, every: Array) -> None:
        """Registers held by earlier wgmma may only be used as the same accumulator."""
        form = item.form
        met = [(other, self._conflict(form, other.form)) for other in self.pending]
        for which, rows in enumerate((form.a, form.d)):
            for other, found in met:
                if found[which] and rows is not None and np.isin(other.warps, item.warps).any():
                    what = ("its A registers are", "its accumulator overlaps")[which]
                    raise self._touch_error(what, rows, other, every)

    def _conflict(self, form: WgmmaStatement, earlier: WgmmaStatement) -> tuple[bool, bool]:
        """Whether a statement's A registers, and its accumulator, are in the way of another one's
        accumulator."""
        key = id(form), id(earlier)
        found = self.conflicts.get(key)
        if found is None:
            of_a = form.a is not None and bool(np.isin(form.a, earlier.d).any())
            same = np.array_equal(earlier.d, form.d)
            found = of_a, not same and bool(np.isin(form.d, earlier.d).any())
            self.conflicts[key] = found
        return found

    @staticmethod
    def _touch_error(what: str, rows: Array, other: Issue, every: Array) -> EmulationError:
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

    def _report_fence(
        self,
        form: WgmmaStatement,
        used: Array,
        every: Array,
        since: npt.NDArray[np.bool_],
        how: str,
        letter: str = "",
    ) -> None:
        report = self.machine.report
        dirty = since[used][:, every]
        warp = int(every[dirty.any(axis=0)][0])
        names = [form.name(int(row)) for row in used[dirty.any(axis=1)]]
        some = ", ".join(names[:4]) + (" ..." if len(names) > 4 else "")
        block, local = self.machine.place(warp)
        report.findings.append(
            Finding(
                "wgmma-fence",
                f"registers of this wgmma were {how} without a wgmma.fence in between: {some} "
                f"(block {block} warp {local} lane 0){letter}",
                *form.place,
                warp=local,
                lane=0,
                severity="letter" if letter else "error",
                subject=names[0],
            )
        )
        for noted in (self.dirty, self.used):
            noted[used[:, None], every] = False  # say it once

    def commit(self, warps: Select) -> None:
        self.committed[warps] += 1

    def wait(self, warps: Select, newest: int) -> None:
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
        self.held[form.touched[:, None], expand(item.warps)] -= 1
        self._execute(item)

    def _execute(self, item: Issue) -> None:
        for hook in self.machine.hooks:
            hook.on_wgmma_execute(item)
        self._product(item).execute(item)
        for hook in self.machine.hooks:
            hook.on_wgmma_complete(item)

    def _product(self, item: Issue) -> WgmmaProduct:
        found = self.products.get(id(item.form))
        if found is None:
            found = self.products[id(item.form)] = WgmmaProduct(self.machine, item.form)
        return found

    # -- the registers that others touch -------------------------------------------------------

    def _touches(
        self, text: str, touched: Array, held: Array, sel: Select, mask: Mask
    ) -> EmulationError:
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

    def watch(self, step: Step, touched: npt.NDArray[np.intp], written: Array, text: str) -> Step:
        """A step of another instruction that uses registers of some wgmma."""

        def run(sel: Select, mask: Mask) -> None:
            if self.pending and self.held[touched][:, sel].any():
                where = np.argwhere(self.held[touched][:, sel].any(axis=0))
                some = np.ones(1, np.bool_) if mask is None else mask[where[:, 0]].any(axis=1)
                if mask is None or some.any():
                    raise self._touches(text, touched, where[:, 0], sel, mask)
            step(sel, mask)
            self._note(self.used, touched, sel, mask)
            if len(written):
                self._note(self.dirty, written, sel, mask)

        return run

    def _note(
        self, where: npt.NDArray[np.bool_], registers: Array, sel: Select, mask: Mask
    ) -> None:
        """Notes registers of the warps that execute an instruction."""
        warps = np.arange(self.machine.warps)[sel]
        where[registers[:, None], warps if mask is None else warps[mask.any(axis=1)]] = True
