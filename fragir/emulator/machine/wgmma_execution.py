"""What a wgmma does when it executes: it reads its operands, and adds their products."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.machine.issues import WARPGROUP, Issue, WgmmaStatement, expand
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.numbers.types import I64, U8, U32, U64
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores import descriptor
from fragir.emulator.tensor_cores.compiled import FileRows
from fragir.emulator.tensor_cores.cores import WgmmaCore, wgmma_core

if TYPE_CHECKING:
    from fragir.emulator.machine.state import State

#: Descriptors whose addresses a statement keeps: a loop comes back to the same stages.
_KEPT = 64


class WgmmaProduct:
    """One statement on one machine."""

    def __init__(self, machine: State, form: WgmmaStatement) -> None:
        self.machine, self.form = machine, form
        self.file = machine.files[32]
        options = form.options
        self.transposed = options.get("transpose_a", False), options.get("transpose_b", False)
        self.core: WgmmaCore | None = None
        self.chosen = False
        self.kept: dict[tuple[bool, bytes], tuple[U32, int]] = {}

    def choose(self) -> None:
        """What computes: decided when the statement is first executed."""
        form = self.form
        a = None if form.a is None else FileRows(self.file, form.a[:, None])
        d = FileRows(self.file, form.d[:, None])
        self.core = wgmma_core(form.op, d, a, **form.options)
        self.chosen = True

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
            self._check(item, home, addresses, int(addresses.max(initial=0)))
            at = addresses.astype(np.int64) + home[:, None]
            return machine.memory.shared.bytes.reshape(-1, 16)[at >> 4]

        options = dict(form.options)
        if item.meta is not None:
            options["e"] = item.meta
        jobs = machine.jobs
        result = form.op.execute(d, a, item.b, read, scale_d=item.scale, jobs=jobs, **options)
        self.file[form.d[:, None], every] = result.reshape(len(form.d), -1, 32)

    def _addresses(self, item: Issue, home: I64, words: U64, *, left: bool) -> U32:
        """The chunks that an operand's descriptors name, checked: `[G, x]`."""
        key = left, words.tobytes()
        found = self.kept.get(key)
        if found is None:
            turned = self.transposed[0 if left else 1]
            addresses = self.form.op.addresses(words, left=left, transposed=turned)
            flat = np.ascontiguousarray(addresses.reshape(len(words), -1))
            if len(self.kept) >= _KEPT:
                self.kept.clear()
            found = self.kept[key] = flat, int(flat.max(initial=0))
        self._check(item, home, *found)
        return found[0]

    def _check(self, item: Issue, home: I64, addresses: U32, most: int) -> None:
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
                at = addresses.astype(np.int64) + home[:, None]
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
                return f"{letter}'s {descriptor.said(word)}{leads}"
        return "an operand's descriptor"

    @staticmethod
    def _refuse(item: Issue, text: str, kind: str, addresses: U32, index: int) -> EmulationError:
        error = EmulationError(text, kind=kind)
        error.warp, error.lane = int(item.warps[index // addresses.shape[-1]]), 0
        error.address = int(addresses.flat[index])
        return error
