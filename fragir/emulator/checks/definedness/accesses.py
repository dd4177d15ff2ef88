"""Undefined bits that are loaded, stored, changed by atomics and copied; global memory has all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.definedness.causes import Causes
from fragir.emulator.checks.definedness.registers import Undefined, logic, ones_where
from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.checks.located import address_of, located_access
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.atomics import act, operand_rows, require_atomic
from fragir.emulator.instructions.operands import Decoder, MemoryOperand
from fragir.emulator.machine.lanes import LANES, Mask, Row, Select, Step, store
from fragir.emulator.machine.memory import GLOBAL_BASE, Arena, DeviceMemory
from fragir.emulator.numbers.types import (
    I64,
    U8,
    UINT,
    Array,
    DType,
    count_of,
    dtype_of,
    where,
    width_of,
)
from fragir.ptx import tree
from fragir.ptx.opcodes.row import LOGIC

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Copy, Transfer
    from fragir.emulator.program.dataflow import Roles
    from fragir.emulator.program.entities import Register


# -- atomics ---------------------------------------------------------------------------------------
# Undefined bits under atomics on shared memory.
#
# An atomic works on values and on the bits that say which of them are undefined, lane after lane,
# as the machine does: `and` with a zero, `or` with a one, an exchange and a comparison that fails
# in whatever way leave fewer of them.

#: (old value, its undefined bits, operands, their undefined bits) -> undefined bits of the new
#: value. Arrays `[access, part]`: a .b128 has two parts.
Rule = Callable[[Array, Array, list[Array], list[Array]], Array]


def rule(word: str, kind: str) -> Rule:
    """What an operation of `atom` or `red` leaves undefined."""
    if word == "exch":
        return lambda old, undefined, new, unknown: unknown[0]
    if word == "cas":
        return _compare_and_swap
    if word in LOGIC:
        table = LOGIC[word].table
        assert table is not None
        return lambda old, undefined, operands, unknown: logic(
            table, [old, *operands], [undefined, *unknown]
        )
    if kind[0] in "us" and word in ("min", "max"):
        return _extreme(word == "max", dtype_of(kind))
    if word in ("inc", "dec"):
        return _wrapping(word == "inc")
    return _anything


def _anything(old: Array, undefined: Array, operands: list[Array], unknown: list[Array]) -> Array:
    bad = undefined != 0
    for bits in unknown:
        bad = bad | (bits != 0)
    return ones_where(bad, old.dtype)


def _compare_and_swap(
    old: Array, undefined: Array, operands: list[Array], unknown: list[Array]
) -> Array:
    (compared, new), (vague, vague_new) = operands, unknown
    doubt = undefined | vague
    differs = ((old ^ compared) & ~doubt != 0).any(axis=-1, keepdims=True)
    equal = ~differs & (doubt == 0).all(axis=-1, keepdims=True)
    either = undefined | vague_new | (old ^ new)
    return where(differs, undefined, where(equal, vague_new, either))


def _range(value: Array, undefined: Array, dtype: DType) -> tuple[Array, Array]:
    """The lowest and the highest value that undefined bits allow."""
    low, high = value & ~undefined, value | undefined
    if dtype.kind != "i":
        return low, high
    sign = undefined & undefined.dtype.type(1 << (8 * undefined.dtype.itemsize - 1))
    return (low | sign).view(dtype), (high & ~sign).view(dtype)


def _extreme(largest: bool, dtype: DType) -> Rule:
    def left(old: Array, undefined: Array, operands: list[Array], unknown: list[Array]) -> Array:
        low, high = _range(old, undefined, dtype)
        other_low, other_high = _range(operands[0], unknown[0], dtype)
        if largest:
            stays, replaced = low >= other_high, high <= other_low
        else:
            stays, replaced = high <= other_low, low >= other_high
        some = _anything(old, undefined, operands, unknown)
        return where(replaced, unknown[0], where(stays, undefined, some))

    return left


def _wrapping(up: bool) -> Rule:
    """inc and dec: an old value above the limit, whichever it is, gives one result."""

    def left(old: Array, undefined: Array, operands: list[Array], unknown: list[Array]) -> Array:
        low = old & ~undefined
        limit = operands[0] | unknown[0]
        if up:
            return where(low >= limit, 0, _anything(old, undefined, operands, unknown))
        certain = (low > limit) | (limit == 0)
        return where(certain, unknown[0], _anything(old, undefined, operands, unknown))

    return left


class Shadowed:
    """One atomic on shared memory: what it does to the undefined bits, before it happens."""

    def __init__(self, d: Decoder, ins: tree.Instruction, plane: Plane, outs: list[Row]) -> None:
        word, kind, _, self.function = require_atomic(d, ins)
        self.rule = rule(word, kind)
        self.parts, self.width = (2, 8) if kind == "b128" else (1, width_of(kind) // 8)
        beside = PlaneDecoder(d, plane)
        beside.placed = d.placed
        first = address_of(ins)
        count = 2 if word == "cas" else 1
        self.sources = [
            (operand_rows(d, ins, i, kind, 1), operand_rows(beside, ins, i, kind, 1))
            for i in range(first + 1, first + 1 + count)
        ]
        self.outs = outs
        self.plane, self.real = plane, d.machine
        #: Whether it has met anything undefined: values have decided what is left of it.
        self.decided = False

    def run(self, place: MemoryOperand, sel: Select, mask: Mask) -> None:
        """Act on what of the addresses lies in shared memory; other lanes get defined values."""
        for out in self.outs:
            store(out, sel, mask, 0)
        size = self.width * self.parts
        address = place.at(sel, mask)
        memory: DeviceMemory = self.real.memory
        for arena, at, which in memory.spaces(place.space, address, sel, mask, size):
            if arena is memory.shared:
                self._on_shared(at, which, address.shape, sel, mask)

    def _on_shared(
        self, at: Array, which: Array | None, shape: tuple[int, ...], sel: Select, mask: Mask
    ) -> None:
        parts, shift = self.parts, (self.width * self.parts).bit_length() - 1

        def values(rows: list[Array]) -> Array:
            each = np.stack([get(r, sel, mask) for r in rows], axis=-1)
            return (each if which is None else each[which]).reshape(-1, parts)

        unknown = [values(beside) for _, beside in self.sources]
        flat = (at >> shift).ravel()
        bits = self.plane.memory.shared.view(self.width, parts).reshape(-1, parts)
        if not bits[flat].any() and not any(u.any() for u in unknown):
            return
        self.decided = True
        operands = [values(real) for real, _ in self.sources]
        cells, index = np.unique(flat, return_inverse=True)
        words = self.real.memory.shared.view(self.width, parts).reshape(-1, parts)
        both = np.concatenate([words[cells], bits[cells]], axis=1)

        def step(before: Array, *given: Array) -> Array:
            old, undefined = before[:, :parts], before[:, parts:]
            new = [g[:, :parts] for g in given]
            vague = [g[:, parts:] for g in given]
            plain = [old, *new] if parts == 2 else [x[:, 0] for x in (old, *new)]
            after = self.function(*plain).reshape(old.shape)
            return np.concatenate([after, self.rule(old, undefined, new, vague)], axis=1)

        given = [np.concatenate(pair, axis=1) for pair in zip(operands, unknown, strict=True)]
        before = act(both, index.reshape(-1), 0, given, step, self.plane.machine)
        bits[cells] = both[:, parts:]
        chosen = np.ones(shape, np.bool_) if which is None else which
        where_ = chosen if mask is None else np.zeros(mask.shape, np.bool_)
        if mask is not None:
            where_[mask] = chosen
        for part, out in enumerate(self.outs):
            value = np.zeros(where_.shape, UINT[self.width])
            value[where_] = before[:, parts + part]
            store(out, sel, where_, value)


class AccessedBits:
    """Every method: the steps of an instruction, before it happens."""

    def __init__(self, machine: Machine, undefined: Undefined, uses: Uses) -> None:
        self.machine, self.undefined, self.uses = machine, undefined, uses
        self.plane = undefined.plane

    def _beside(self, arena: Arena) -> Arena | None:
        """The bits of a space that may hold undefined ones."""
        memory = self.machine.memory
        if arena is memory.shared:
            return self.plane.memory.shared
        return self.plane.memory.local if arena is memory.local else None

    def load(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        if not any(r in self.undefined.tracked for r in each.written):
            return []
        if d.place(ins, 1, d.space(ins)).space == "global":
            return self.undefined.clear(each.written)
        repeat, found = self.undefined.repeat(d, ins), located_access(d, ins)
        undefined, look = self.undefined, self.undefined.settle(each.written)
        written = undefined.bits(each.written)
        if found is None:
            return [self._looked_at(repeat, each.written)]

        def run(sel: Select, mask: Mask) -> None:
            access = found.of(sel, mask)
            for arena, at, _ in access.parts():
                beside = self._beside(arena)
                if beside is not None and cells(beside, access.size, at).any():
                    break
            else:
                if not undefined.doubtful & written:
                    return
            repeat(sel, mask)
            look()

        return [run]

    def _looked_at(self, step: Step, written: Sequence[Register]) -> Step:
        """A step that writes registers' bits, whatever they are."""
        look = self.undefined.settle(written)

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            look()

        return run

    def matrix(self, d: Decoder, ins: tree.Instruction, each: Roles) -> list[Step]:
        """wmma.load and wmma.store; their stride counts as an address."""
        stride = [r for found in each.operands[2:] for r in found]
        steps = self.uses.checks(ins, stride, "an address")
        load = d.program.opcode(ins).access == "load"
        place = d.place(ins, 1 if load else 0, d.space(ins))
        if load and place.space == "global":
            return steps + self.undefined.clear(each.written)
        if load:
            repeat = self.undefined.repeat(d, ins, (2,))
            return [*steps, self._looked_at(repeat, each.written)]
        checks = self.uses.checks(ins, each.operands[1], "stored to global memory", place)
        if place.space == "global":
            return steps + checks
        repeat = self.undefined.repeat(d, ins, (2,))

        def run(sel: Select, mask: Mask) -> None:
            if place.space == "generic" and (place.at(sel, mask) >= GLOBAL_BASE).all():
                for check in checks:
                    check(sel, mask)
            else:
                repeat(sel, mask)

        return [*steps, run]

    def stored(self, d: Decoder, ins: tree.Instruction, data: list[Register]) -> list[Step]:
        place = d.place(ins, 0, d.space(ins))
        what = "stored to global memory"
        if place.space == "global":
            return self.uses.checks(ins, data, what, place)
        repeat = self.undefined.repeat(d, ins)
        if place.space != "generic":
            return [self._defined_store(d, ins, data, repeat)]
        checks = self.uses.checks(ins, data, what, place)
        memory, causes = self.machine.memory, self.undefined.causes

        def run(sel: Select, mask: Mask) -> None:
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
                planes = (self.plane, causes.plane) if causes.known else (self.plane,)
                for bytes_ in (plane.memory.globals.bytes for plane in planes):
                    for offset in range(32):  # global memory counts as defined
                        bytes_[np.minimum(at + offset, bytes_.size - 1)] = 0
                return
            repeat(sel, mask)

        return [self._defined_store(d, ins, data, run)]

    def _defined_store(
        self, d: Decoder, ins: tree.Instruction, data: list[Register], step: Step
    ) -> Step:
        """The step of a store; where all that it stores is defined, something simpler."""
        found, undefined, bits = located_access(d, ins), self.undefined, self.undefined.bits(data)
        if found is None or found.rows:
            return step

        def run(sel: Select, mask: Mask) -> None:
            if undefined.doubtful & bits:
                step(sel, mask)
                return
            access = found.of(sel, mask)
            for arena, at, _ in access.parts():
                beside = self._beside(arena)
                if beside is not None:
                    view, shift = cells_of(beside, access.size)
                    view[at >> shift] = 0

        return run

    def atomic(
        self, d: Decoder, ins: tree.Instruction, each: Roles, data: list[Register]
    ) -> list[Step]:
        place = d.place(ins, address_of(ins), d.space(ins))
        what = "an operand of an atomic on global memory"
        checks = self.uses.checks(ins, data, what, place)
        if place.space == "global" or count_of(ins.opcode) > 1:
            return checks + self.undefined.clear(each.written)
        outs = self.undefined.rows(each.written)
        shadowed = Shadowed(d, ins, self.plane, outs)
        causes = self.undefined.causes
        found, undefined = located_access(d, ins), self.undefined
        involved = undefined.bits([*data, *each.written])
        look = undefined.settle(each.written)
        memory, beside = self.machine.memory, self.plane.memory.shared

        def run(sel: Select, mask: Mask) -> None:
            if found is not None and not undefined.doubtful & involved:
                access = found.of(sel, mask)
                if not any(
                    cells(beside, access.size, at).any()
                    for arena, at, _ in access.parts()
                    if arena is memory.shared
                ):
                    return
            shadowed.run(place, sel, mask)
            if shadowed.decided:
                undefined.note_decided(ins, each.read)
            look()
            if causes.known:
                for register in each.written:
                    store(causes.row(register), sel, mask, 0)
            if (
                place.space == "generic"
                and (lanes := self._on_global(place, sel, mask)) is not None
            ):
                for check in checks:
                    check(sel, lanes)

        return [run]

    def _on_global(self, place: MemoryOperand, sel: Select, mask: Mask) -> Mask:
        """Which lanes address global memory; None where none does."""
        lanes = np.ones((len(np.arange(self.machine.warps)[sel]), LANES), np.bool_)
        lanes = lanes if mask is None else mask.copy()
        lanes[lanes] = place.at(sel, mask).ravel() >= GLOBAL_BASE
        return lanes if lanes.any() else None


def cells_of(arena: Arena, size: int) -> tuple[Array, int]:
    """An arena as cells of accesses of `size` bytes, and how far positions are shifted."""
    return arena.view(min(size, 8), max(size >> 3, 1)), size.bit_length() - 1


def cells(arena: Arena, size: int, at: I64) -> Array:
    """What accesses of `size` bytes at positions find."""
    view, shift = cells_of(arena, size)
    return view[at >> shift]


# -- copies ----------------------------------------------------------------------------------------
# Undefined bytes of shared memory under asynchronous copies.


class Copies:
    def __init__(self, plane: Plane, causes: Causes, uses: Uses) -> None:
        self.memory, self.causes, self.uses = plane.memory, causes, uses
        self._issuers: dict[int, tree.Instruction] = {}
        self._current: tree.Instruction | None = None

    def remember(self, ins: tree.Instruction) -> Step:
        """The instruction runs: what is issued next is its."""

        def run(sel: Select, mask: Mask) -> None:
            self._current = ins

        return run

    def note_copied(self, copy: Copy) -> None:
        copy.move(self.memory)
        if self.causes.known:
            copy.move(self.causes.plane.memory)

    def note_issued(self, transfer: Transfer) -> None:
        if transfer.reads is not None and self._current is not None:
            self._issuers[id(transfer)] = self._current

    def note_transferred(self, transfer: Transfer) -> None:
        memory = self.memory
        issuer = self._issuers.pop(id(transfer), None)
        if transfer.into is not None and not transfer.atomic:
            transfer.move(memory)
            if self.causes.known:
                transfer.move(self.causes.plane.memory)
        if transfer.reads is None or (transfer.into is not None and not transfer.atomic):
            return
        at = transfer.reads if transfer.exact is None else transfer.exact
        cells = (at >> 4, 16) if transfer.exact is None else (at, 1)
        bad = _cells(memory, *cells) != 0
        if not bad.any() or issuer is None:
            return
        what = "reduced" if transfer.atomic else "stored to global memory"
        if self.causes.known:
            found = _cells(self.causes.plane.memory, *cells) - np.uint8(1)
            self.uses.blame(found[bad], issuer, what)
            bad &= found >= len(self.causes.known)
        if bad.any():
            offset = int(at[bad.any(axis=1)][0]) % max(memory.shared_stride, 1)
            warp, lane = divmod(int(transfer.lanes[0]), LANES)
            name = f"shared memory at {offset}"
            self.uses.complain(issuer, name, what, warp, lane, 1, offset)


def _cells(memory: DeviceMemory, cells: Array, size: int) -> U8:
    """Cells of `size` bytes of shared memory: `[cells, size]`."""
    return memory.shared.bytes.reshape(-1, size)[cells]
