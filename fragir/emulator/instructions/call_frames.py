"""Values that a call hands over: arguments to a function, results to its caller, frames.

Arguments and results are registers or variables in the lane's local memory, those of recursive
functions in the frame of the call (`calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fragir.emulator.instructions.operands import Decoder
from fragir.emulator.machine.lanes import Mask, Row, Select, store
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.numbers.types import UINT, Array
from fragir.emulator.program.entities import Entity, Register, Routine, Symbol
from fragir.ptx import tree

FRAME = 16  # what frames are aligned to

Fetch = Callable[[Select, Mask], Array]
Put = Callable[[Select, Mask, Array], None]
#: What a name stands for, or an operand that is no name.
Passed: TypeAlias = Entity | tree.Operand


@dataclass(slots=True)
class Handover:
    """Values that move at once: all are read before any is written."""

    pairs: list[tuple[Fetch, Put]]

    def fetch(self, sel: Select, mask: Mask) -> list[Array]:
        return [f(sel, mask) for f, _ in self.pairs]

    def put(self, sel: Select, mask: Mask, values: list[Array]) -> None:
        for (_, put), value in zip(self.pairs, values, strict=True):
            put(sel, mask, value)

    def run(self, sel: Select, mask: Mask) -> None:
        self.put(sel, mask, self.fetch(sel, mask))


class Handovers:
    """Reads and writes the operands of calls, on one machine or on a plane beside it."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.machine: Machine = decoder.machine
        self.program = decoder.program

    def moves(
        self,
        ins: tree.Instruction,
        sources: Sequence[Passed],
        places: Sequence[Passed],
        into: Routine | None = None,
        out_of: Routine | None = None,
    ) -> Handover:
        """Hand values over in order; `into`, `out_of`: the function whose frame one side is in."""
        if len(sources) != len(places):
            raise self.program.error(
                f"the call passes {len(sources)} values, {len(places)} are expected", ins.at
            )
        pairs: list[tuple[Fetch, Put]] = []
        for source, place in zip(sources, places, strict=True):
            a, b = self.require_entity(ins, source), self.require_entity(ins, place)
            if isinstance(b, tree.Sink):
                continue
            if not isinstance(b, Symbol | Register):
                raise self.program.error(
                    "a result of a call goes to a register, a variable or _", _at(place, ins)
                )
            self._check_sizes(ins, source, place, a, b)
            size = b.size if isinstance(b, Symbol) else max(b.width // 8, 1)
            if isinstance(a, Symbol) and isinstance(b, Symbol):
                size = min(a.size, b.size)
            pairs.append(
                (
                    self.fetch(ins, source, a, b, size, out_of is not None),
                    self.put(ins, b, size, into is not None),
                )
            )
        return Handover(pairs)

    def entity(self, value: Passed) -> Passed | None:
        """What a name stands for; anything else is itself."""
        if isinstance(value, tree.Name):
            return self.program.find(self.decoder.scope, value.text)
        return value

    def require_entity(self, ins: tree.Instruction, value: Passed) -> Passed | None:
        """As `entity`; an error where a name stands for nothing that a call can pass."""
        found = self.entity(value)
        if not isinstance(value, tree.Name):
            return found
        at = _at(value, ins)
        machine = getattr(self.decoder, "real", self.decoder).machine
        special = value.text.startswith("%") and machine.special(value.text[1:]) is not None
        if found is None and not special and value.text != "WARP_SZ":
            raise self.program.error(f"{value.text} is not declared", at)
        if isinstance(found, Symbol) and found.space != "local":
            raise self.program.error(f"{value.text} cannot be passed by a call", at)
        return value if found is None else found

    def _check_sizes(
        self,
        ins: tree.Instruction,
        source: Passed,
        place: Passed,
        a: Passed | None,
        b: Passed | None,
    ) -> None:
        """What is passed and what takes it have the same size (PTX ISA 9.2, section 9.7.12.5)."""
        sizes = [bits_of(entity) for entity in (a, b)]
        if None in sizes or sizes[0] == sizes[1] or sizes in ([16, 8], [8, 16]):
            return
        value = source if isinstance(source, tree.Name) else place
        raise self.program.error(
            f"a value of {sizes[0]} bits is passed where {sizes[1]} are expected", _at(value, ins)
        )

    def _base(self, symbol: Symbol, callee: bool) -> Fetch:
        """Positions of a variable in local memory: of this call's frame, or of the callee's."""
        machine = self.machine
        home = machine.memory.local_home
        offset = symbol.offset
        if symbol.space != "local":
            raise self.program.error(f"{symbol.name} cannot be passed by a call")
        if not symbol.framed:
            return lambda sel, mask: home[sel] + offset

        def framed(sel: Select, mask: Mask) -> Array:
            frame = next_frame(machine.stack_top[sel]) if callee else machine.frame[sel]
            if callee:
                check_stack(machine, frame + np.uint64(offset + symbol.size), mask)
            return home[sel] + frame.astype(np.int64) + offset

        return framed

    def fetch(
        self,
        ins: tree.Instruction,
        source: Any,
        a: Passed | None,
        b: Passed | None,
        size: int,
        callee: bool,
    ) -> Fetch:
        """Reads one operand (`source`, which is `a`) as `b` wants it, `size` bytes."""
        memory = self.machine.memory
        if isinstance(a, Symbol):
            base = self._base(a, callee)

            def of_memory(sel: Select, mask: Mask) -> Array:
                at = base(sel, mask)[..., None] + np.arange(size)
                return memory.local.bytes[np.minimum(at, memory.local.bytes.size - 1)]

            if isinstance(b, Symbol):
                return of_memory
            width = max(size, 1)

            def of_value(sel: Select, mask: Mask) -> Array:
                return of_memory(sel, mask).view(UINT[width])[..., 0]

            return of_value
        if isinstance(a, Register):
            row = self.machine.files[a.width][a.index] if a.width <= 64 else None
        elif isinstance(b, Register):
            row = self.decoder.row(ins, source, "pred" if b.width == 1 else f"u{b.width}")
        elif isinstance(b, Symbol) and size in UINT:
            row = self.decoder.row(ins, source, f"b{8 * size}")
        else:
            row = None
        if row is None:
            raise self.program.error("this argument of a call is not supported", ins.at)
        value: Row = row
        return lambda sel, mask: value[sel].copy()

    def put(self, ins: tree.Instruction, b: Passed | None, size: int, callee: bool) -> Put:
        """Writes one value to a register or variable."""
        memory = self.machine.memory
        if isinstance(b, Register):
            if b.width > 64:
                raise self.program.error("this argument of a call is not supported", ins.at)
            row = self.machine.files[b.width][b.index]

            def to_row(sel: Select, mask: Mask, value: Array) -> None:
                store(row, sel, mask, value.astype(row.dtype))

            return to_row
        if not isinstance(b, Symbol):
            raise self.program.error("this argument of a call is not supported", ins.at)
        base = self._base(b, callee)

        def to_memory(sel: Select, mask: Mask, value: Array) -> None:
            at = base(sel, mask)
            data = value if value.dtype == np.uint8 and value.ndim > at.ndim else None
            if data is None:
                data = np.ascontiguousarray(value)[..., None].view(np.uint8)
            part = at[..., None] + np.arange(min(size, data.shape[-1]))
            data = data[..., : part.shape[-1]]
            if mask is not None:
                part, data = part[mask], data[mask]
            memory.local.bytes[part] = data

        return to_memory


def _at(value: Passed, ins: tree.Instruction) -> int:
    """Where to point for an operand of a call."""
    return value.at if isinstance(value, tree.Name | tree.Integer | tree.Float) else ins.at


def bits_of(entity: object) -> int | None:
    """The size of a variable or register; None of a literal, which fits."""
    if isinstance(entity, Symbol):
        return 8 * entity.size
    return entity.width if isinstance(entity, Register) else None


def next_frame(top: Array) -> Array:
    """Where the next frame begins."""
    return (top + np.uint64(FRAME - 1)) & np.uint64(~(FRAME - 1) & (1 << 64) - 1)


def check_stack(machine: Machine, top: Array, mask: Mask) -> None:
    """Refuse stacks that grow beyond the lane's local memory."""
    highest = int(top.max() if mask is None else top[mask].max())
    if highest > machine.memory.local_size:
        where = top if mask is None else top[mask]
        index = int(np.argmax(where))
        reason = (
            f"the stack overflows: it has {machine.memory.local_size} bytes a lane "
            "(run(..., stack=...) gives more)"
        )
        fault = AccessFault(reason, highest, index)
        if mask is not None:
            fault.mask = mask  # pyright: ignore[reportAttributeAccessIssue]
        raise fault
