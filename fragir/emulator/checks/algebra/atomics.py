"""Elements that are added to memory: red and atom of floats, in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from fragir.algebra.fields import P, Q
from fragir.algebra.numpy_door import Values
from fragir.algebra.values import NONE
from fragir.emulator.checks.algebra.numbers import ElementNumbers, element_bits, size_of
from fragir.emulator.checks.located import address_of
from fragir.emulator.checks.planes import PlaneDecoder
from fragir.emulator.instructions.alu import sequence
from fragir.emulator.instructions.atomics import WORDS, operand_rows
from fragir.emulator.machine.arena import Arena
from fragir.emulator.machine.lanes import Mask, Select, Step, active
from fragir.emulator.numbers.types import I64, Array, count_of, kind_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.memory import DeviceMemory
    from fragir.emulator.machine.transfers import Transfer
    from fragir.ptx import tree

#: Elements of an atomic's operand: the format, and how many lie in one register.
_SUMS = {"f32": ("f32", 1), "f64": ("f64", 1), "f16": ("f16", 1), "bf16": ("bf16", 1)} | {
    f"{form}x2": (form, 2) for form in ("f16", "bf16")
}


class AtomicSums:
    def __init__(
        self,
        machine: Machine,
        numbers: ElementNumbers,
        says: Callable[[tree.Instruction | None], None],
    ) -> None:
        self.machine, self.numbers, self.says = machine, numbers, says

    def step(self, d: Decoder, ins: tree.Instruction, step: Step) -> Step:
        """Around an atomic: what is in memory afterwards is the sum of elements."""
        each = self.numbers.flow.of(ins)
        kind, word = kind_of(ins.opcode), next((w for w in ins.opcode[1:] if w in WORDS), "")
        cleared = self.numbers.cleared(each.written)
        if word != "add" or kind not in _SUMS:
            return sequence([*self._lost(d, ins), *cleared, step])
        form, parts = _SUMS[kind]
        size, count = size_of(form) * parts, count_of(ins.opcode)
        first = address_of(ins)
        space = d.space(ins)
        place = d.place(ins, first, space)
        real = operand_rows(d, ins, first + 1, kind, count)
        planes = [
            operand_rows(PlaneDecoder(d, p), ins, first + 1, kind, count)
            for p in self.numbers.planes
        ]
        memory = self.machine.memory

        def run(sel: Select, mask: Mask) -> None:
            on = active(sel, mask, self.machine.warps)
            address = place.at(sel, mask)
            found = memory.spaces(space, address, sel, mask, size * count)
            for index in range(count):
                bits = np.broadcast_to(real[index][sel], on.shape)
                words = [np.broadcast_to(p[index][sel], on.shape) for p in planes]
                for part in range(parts):
                    own = element_bits(bits, form, part)
                    looked = self.numbers.look(words, own, form, part)
                    if looked.broken is not None and (looked.broken & on).any():
                        self.says(ins)
                    values = looked.values.moved(lambda x: x[on])
                    offset = size * index + size_of(form) * part
                    for arena, at, which in found:
                        chosen = values if which is None else values.take(np.flatnonzero(which))
                        self._add(ins, arena, at.ravel() + offset, chosen, form)
            for one in cleared:
                one(sel, mask)
            step(sel, mask)
            self.numbers.collect()

        return run

    def _arenas(self, arena: Arena) -> list[Arena]:
        """Those of the planes that stand for one of the machine's."""
        memory = self.machine.memory
        name = "globals" if arena is memory.globals else "shared"
        return [getattr(plane.memory, name) for plane in self.numbers.planes]

    def _add(self, ins: tree.Instruction, arena: Arena, at: I64, values: Values, form: str) -> None:
        """Adds elements to those at byte positions, of which some may be the same."""
        size = size_of(form)
        cells, index = np.unique(at // size, return_inverse=True)
        sides = self._arenas(arena)
        words = [s.view(size)[cells] for s in sides]
        looked = self.numbers.look(words, arena.view(size)[cells], form)
        if looked.broken is not None:
            self.says(ins)
        old = looked.values
        none, doubt = old.q == NONE, old.doubt.copy()
        p, q = old.p.copy(), np.where(none, np.uint64(0), old.q)
        data = old.data.copy()
        np.add.at(p, index, values.p)
        np.add.at(q, index, np.where(values.q == NONE, np.uint64(0), values.q))
        np.logical_or.at(none, index, values.q == NONE)
        np.logical_or.at(doubt, index, values.doubt)
        np.logical_or.at(data, index, values.data)
        q = np.where(none, NONE, q % np.uint64(Q))
        total = Values(p % np.uint64(P), q, np.zeros(len(cells)), doubt, data)
        ids = self.numbers.name(total, form, np.ones(len(cells), np.bool_))
        words = self.numbers.words([ids], form, np.dtype(f"u{size}"))
        for side, word in zip(sides, words, strict=True):
            side.view(size)[cells] = word

    def _lost(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """An atomic that is no sum of floats: elements that it meets are lost, and that is said."""
        first = address_of(ins)
        place, space = d.place(ins, first, d.space(ins)), d.space(ins)
        each = self.numbers.flow.of(ins)
        rows = [
            [p.row(r) for p in self.numbers.planes]
            for r in each.read
            if r in self.numbers.tracked and r not in each.addresses
        ]
        memory = self.machine.memory

        def run(sel: Select, mask: Mask) -> None:
            on = active(sel, mask, self.machine.warps)
            met = any((p[sel][on] != 0).any() for planes in rows for p in planes)
            address = place.at(sel, mask)
            for arena, at, _ in memory.spaces(space, address, sel, mask, 4):
                for side in self._arenas(arena):
                    cells = side.view(4)
                    met = met or bool(cells[at >> 2].any())
                    cells[at >> 2] = 0
            if met:
                self.says(ins)

        return [run]

    # -- bulk copies -------------------------------------------------------------------------------

    def transfer(self, transfer: Transfer, reduction: tuple[str, str]) -> None:
        """A bulk copy that computes with what is there, before it does."""
        word, kind = reduction
        region = transfer.region
        form = _SUMS[kind][0] if word == "add" and kind in _SUMS else ""
        unit = size_of(form) if form else 1
        memories = [self.machine.memory, *(plane.memory for plane in self.numbers.planes)]
        if region is None:  # into shared memory
            assert transfer.into is not None
            target = np.arange(transfer.size) + int(transfer.into.min())
        else:
            target = (region.starts[:, None] + np.arange(region.size)).ravel()
        at = target[::unit] // unit
        space = "shared" if region is None else "globals"
        old = [getattr(m, space).view(unit)[at] for m in memories]
        new = self._terms(transfer, memories, at, unit)
        if form:
            total = self._sum(old, new, form)
        else:
            total = [np.zeros_like(x) for x in old[1:]]
            if any(x.any() for x in (*old[1:], *new[1:])):
                self.says(None)
        for m, words in zip(memories[1:], total, strict=True):
            getattr(m, space).view(unit)[at] = words
        self.numbers.collect()

    def _terms(
        self, transfer: Transfer, memories: Sequence[DeviceMemory], at: I64, unit: int
    ) -> list[Array]:
        """What is added, in the order of its places: real bits, then the numbers."""
        assert transfer.reads is not None
        if transfer.what != "cp.async.bulk.tensor":
            source = np.arange(0, unit * len(at), unit) + int(transfer.reads.min())
            return [m.shared.view(unit)[source // unit] for m in memories]
        # Of a tensor's the places are the copy's own: each is moved, and the sums come after.
        found: list[Array] = []
        for m in memories[1:]:
            transfer.move(m)
            found.append(m.globals.view(unit)[at])
        scratch = copy(memories[0])
        scratch.globals = Arena(memories[0].globals.bytes.size)
        transfer.move(scratch)
        return [scratch.globals.view(unit)[at], *found]

    def _sum(self, old: Sequence[Array], new: Sequence[Array], form: str) -> list[Array]:
        """Words of the planes for sums; of each term the real bits come first."""
        one, other = (self.numbers.look(x[1:], x[0], form) for x in (old, new))
        if one.broken is not None or other.broken is not None:
            self.says(None)
        total = one.values + other.values
        ids = self.numbers.name(total, form, np.isfinite(total.real))
        return self.numbers.words([ids], form, old[0].dtype)
