"""Where data comes from: every byte of a register or of shared memory knows its byte in a buffer.

The number of a byte is its place in global memory plus one; zero: computed, or not known. Planes
(`planes.py`) hold one byte of these numbers each, so that instructions that move bytes move their
numbers too. Bytes of global memory always stand for themselves. Only registers that lie on a way
from memory to a tensor-core instruction are followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.checks.located import address_of
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.instructions.calls import Calls
from fragir.emulator.machine.lanes import Mask, Select, Step, store
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.numbers.types import I64, Array, kind_of, width_of
from fragir.emulator.program.dataflow import Roles, dataflow
from fragir.emulator.program.entities import Register, constant_or_none
from fragir.emulator.program.program import Program
from fragir.emulator.values.facts import facts
from fragir.ptx import tree
from fragir.ptx.opcodes.row import LOGIC, Logic, Moves

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand

#: The operands that choose the lane of a shuffle.
_SHUFFLED = (2, 3)
_CHUNK = 1 << 20
_UNSIGNED = {f"s{n}": f"u{n}" for n in (8, 16, 32, 64)}


class ByteOrigins:
    """The origins of all bytes of a launch, as `planes`: byte k of every number."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine, self.program = machine, program
        self.flow = dataflow(program)
        self.planes = self._make_planes()
        self.tracked = self._relevant()

    #: Whether stores change what bytes of global memory stand for; else they stand for themselves.
    changes_global = False

    def _make_planes(self) -> list[Plane]:
        memory = self.machine.memory
        size = memory.globals.bytes.size
        planes: list[Plane] = []
        while not planes or size >> 8 * len(planes):
            planes.append(Plane(self.machine, 0))
        for start in range(0, size, _CHUNK):  # 64-bit numbers of all memory at once are too many
            numbers = np.arange(start + 1, min(start + _CHUNK, size) + 1, dtype=np.int64)
            for k, plane in enumerate(planes):
                plane.memory.globals.bytes[start : start + len(numbers)] = numbers >> 8 * k & 0xFF
        for buffer in memory.buffers:
            if buffer.name == "the parameters":
                for plane in planes:
                    plane.memory.globals.bytes[buffer.start : buffer.start + buffer.size] = 0
        return planes

    def reset(self) -> None:
        for plane in self.planes:
            plane.reset()

    def buffer(self, position: int) -> tuple[str, int]:
        """(name, offset) of the buffer that holds a byte of global memory, or the nearest one."""
        found = min(
            self.machine.memory.buffers,
            key=lambda b: max(b.start - position, position - (b.start + b.size) + 1, 0),
        )
        return found.name, position - found.start

    # -- which registers ---------------------------------------------------------------------------

    def _relevant(self) -> set[Register]:
        loads: set[Register] = set()
        wanted: set[Register] = set()
        stored: set[Register] = set()
        shared = False
        for placed, each in zip(self.program.code, self.flow.roles, strict=True):
            row = self.program.opcode(placed.ins)
            if row.bits in ("load", "results"):
                loads.update(each.written)
            elif row.ends == "call":
                stored.update(each.read)
            elif row.bits in ("store", "store later", "fill"):
                stored.update(r for r in each.read if r not in each.addresses)
            elif row.fuses:
                wanted.update(r for operand in each.operands[1:] for r in operand)
            elif row.accumulates:
                shared = True
                wanted.update(r for operand in each.operands[:2] for r in operand)

        def back(start: Iterable[Register]) -> set[Register]:
            return self.flow.closure(start, self._carries, backwards=True, sources=self._sources)

        reached = back(wanted)
        if shared or reached & loads:
            reached = back(wanted | stored)
        forward = self.flow.closure(loads, self._carries, sources=self._sources)
        return reached & forward

    def _steering(self, ins: tree.Instruction) -> tuple[int, ...] | None:
        """The operands that steer a moving instruction; None where bytes do not stay whole."""
        bits = facts(self.program.opcode(ins)).bits
        if bits == "shuffle":
            return _SHUFFLED
        if isinstance(bits, Moves) and bits.whole(
            ins.opcode, lambda index: constant_or_none(ins.operands[index])
        ):
            return bits.steering
        return None

    def _carries(self, ins: tree.Instruction) -> bool:
        return self._logical(ins) or self._steering(ins) is not None

    def _logical(self, ins: tree.Instruction) -> bool:
        """Whether it is a mask or a union of bytes."""
        bits = facts(self.program.opcode(ins)).bits
        return isinstance(bits, Logic) and bits.operands == 2 and "pred" not in ins.opcode

    def _sources(self, ins: tree.Instruction, each: Roles) -> list[Register]:
        steering = self._steering(ins) or ()
        return [
            r for i, found in enumerate(each.operands) if i and i not in steering for r in found
        ]

    # -- decoding ----------------------------------------------------------------------------------

    def steps(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """What one instruction does to the numbers, before it runs itself."""
        each = self.flow.of(ins)
        bits = self.program.opcode(ins).bits
        if bits == "results":
            return self._results(d, ins)
        if bits in ("store", "fill"):
            return self._store(d, ins, fills=bits == "fill")
        if bits == "store fragment":
            return self._store_fragment(d, ins)
        if bits == "atomic":
            return self._lose(d, ins) + self._clear(each.written)
        if not any(r in self.tracked for r in each.written):
            return []
        if bits == "load":
            if any(w.startswith(("b6x16", "b4x16")) for w in ins.opcode):
                return self._clear(each.written)  # elements that are no whole bytes
            return self._repeat(d, ins, ())
        if self._logical(ins):
            return [self._logic(d, ins)]
        steering = self._steering(ins)
        sources = self._sources(ins, each)
        if steering is None or not any(r in self.tracked for r in sources):
            return self._clear(each.written)
        return self._repeat(d, ins, steering)

    # -- calls -----------------------------------------------------------------------------------

    def arguments(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """What a call hands over, before it happens."""
        return [Calls(PlaneDecoder(d, plane)).begin(ins) for plane in self.planes]

    def _results(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        return [Calls(PlaneDecoder(d, plane)).end(ins) for plane in self.planes]

    def _repeat(self, d: Decoder, ins: tree.Instruction, steering: Sequence[int]) -> list[Step]:
        plain = replace(ins, opcode=tuple(_UNSIGNED.get(w, w) for w in ins.opcode))
        return [PlaneDecoder(d, plane).repeat(plain, steering) for plane in self.planes]

    def _clear(self, registers: Iterable[Register]) -> list[Step]:
        rows = [p.row(r) for r in registers if r in self.tracked for p in self.planes]

        def run(sel: Select, mask: Mask) -> None:
            for row in rows:
                store(row, sel, mask, 0)

        return [run] if rows else []

    def _store(self, d: Decoder, ins: tree.Instruction, fills: bool) -> list[Step]:
        place = d.place(ins, 0, d.space(ins))
        if place.space == "global" and not self.changes_global:
            return []
        steps = self._repeat(d, ins, (1,) if fills else ())
        if self.changes_global:
            return steps
        if place.space == "generic" and not fills and not self.program.opcode(ins).together:
            steps.append(self._restore(place))
        return steps

    def _store_fragment(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """wmma.store: accumulators come from nowhere; global memory stands for itself."""
        place = d.place(ins, 0, d.space(ins))
        if place.space == "global" and not self.changes_global:
            return []
        steps = [PlaneDecoder(d, plane).repeat(ins, (2,)) for plane in self.planes]
        if self.changes_global:
            return steps

        def run(sel: Select, mask: Mask) -> None:
            if place.space == "generic" and (place.at(sel, mask) >= GLOBAL_BASE).all():
                return
            for step in steps:
                step(sel, mask)

        return [run]

    def _restore(self, place: MemoryOperand) -> Step:
        """Bytes of global memory stand for themselves, also after a generic store."""
        memory = self.machine.memory

        def run(sel: Select, mask: Mask) -> None:
            address = place.at(sel, mask)
            for arena, at, _ in memory.spaces("generic", address, sel, mask, 1):
                if arena is memory.globals:
                    for offset in range(32):
                        where = np.minimum(at + offset, arena.bytes.size - 1)
                        for k, plane in enumerate(self.planes):
                            plane.memory.globals.bytes[where] = (where + 1) >> 8 * k & 0xFF

        return run

    def _lose(self, d: Decoder, ins: tree.Instruction) -> list[Step]:
        """Atomics compute: what lies in shared memory afterwards comes from nowhere."""
        place = d.place(ins, address_of(ins), d.space(ins))
        if place.space != "shared":
            return []
        size = width_of(kind_of(ins.opcode)) // 8
        width, count = min(size, 8), max(size // 8, 1)

        def run(sel: Select, mask: Mask) -> None:
            address = place.at(sel, mask)
            shape = address.shape if count == 1 else (*address.shape, count)
            zero = np.zeros(shape, np.dtype(f"u{width}"))
            for plane in self.planes:
                plane.memory.save("shared", address, sel, mask, width, count, zero)

        return [run]

    def _logic(self, d: Decoder, ins: tree.Instruction) -> Step:
        """Masks and unions keep the bytes that the other operand leaves as they are."""
        kind = ins.opcode[-1]
        values = [d.source(ins, i, kind) for i in (1, 2)]
        decoders = [PlaneDecoder(d, plane) for plane in self.planes]
        numbers = [[p.source(ins, i, kind) for p in decoders] for i in (1, 2)]
        outs = [p.target(ins, 0, kind) for p in decoders]
        neutral = 0xFF if facts(self.program.opcode(ins)).bits == LOGIC["and"] else 0

        def whole(sel: Select, index: int) -> Array:
            value = np.ascontiguousarray(
                np.broadcast_to(values[index][sel], values[index][sel].shape)
            )
            return value.view(np.uint8) == neutral

        def run(sel: Select, mask: Mask) -> None:
            keeps = whole(sel, 1), whole(sel, 0)  # bytes that the other operand leaves alone
            known = [
                np.any([np.ascontiguousarray(p[sel]).view(np.uint8) != 0 for p in n], axis=0)
                for n in numbers
            ]
            first = keeps[0] & known[0] & ~known[1]
            second = keeps[1] & known[1] & ~known[0]
            for a, b, out in zip(*numbers, outs, strict=True):
                if out is None:
                    continue
                left = np.ascontiguousarray(a[sel]).view(np.uint8)
                right = np.ascontiguousarray(b[sel]).view(np.uint8)
                store(out, sel, mask, (left * first + right * second).view(out.dtype))

        return run


def numbers_of(words: Sequence[Array], byte: int) -> I64:
    """The numbers of byte `byte` of registers, from their words in every plane."""
    total: I64 = np.zeros((), np.int64)
    for k, word in enumerate(words):
        part = (word >> word.dtype.type(8 * byte)) & word.dtype.type(0xFF)
        total = total + (part.astype(np.int64) << 8 * k)
    return total
