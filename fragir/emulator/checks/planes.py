"""Planes: copies of all registers and memory in which every bit or byte stands for the machine's.

An instruction that only moves data does the same to a plane as to the machine: its step is decoded
a second time, with the plane's registers and memory in place of the data and the machine's own
registers for what steers it (addresses, predicates, shift amounts, lanes).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.operands import Decoder, MemoryOperand
from fragir.emulator.instructions.table import decode_step
from fragir.emulator.machine.lanes import Mask, Row, Select, Step
from fragir.emulator.machine.machine import Machine
from fragir.emulator.machine.memory import Arena
from fragir.emulator.program.entities import Register, Symbol
from fragir.emulator.report import Report
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.state import Clock


class Plane:
    """Registers and memory beside a machine's. `fill`: what new shared and local memory holds.

    Global memory is zero until somebody writes to `memory.globals`.
    """

    def __init__(self, machine: Machine, fill: int) -> None:
        self.fill = fill
        self.machine = copy(machine)
        self.machine.hooks = []
        self.machine.report = Report()
        self.machine.files = {width: np.zeros_like(f) for width, f in machine.files.items()}
        self.machine.carry = np.zeros_like(machine.carry)
        self.machine.kept = {}
        self.memory = self.machine.memory = copy(machine.memory)
        self.memory.globals = Arena(machine.memory.globals.bytes.size)
        self.memory.shared = Arena(machine.memory.shared.bytes.size)
        self.memory.local = Arena(machine.memory.local.bytes.size)
        self.tensor = self.machine.tensor = machine.tensor.beside(self.machine)

    def reset(self) -> None:
        """New blocks: registers are zero, shared and local memory as `fill` says."""
        for rows in self.machine.files.values():
            rows[...] = 0
        self.memory.shared.bytes[...] = self.fill
        self.memory.local.bytes[...] = self.fill
        self.tensor.forget()

    def row(self, register: Register) -> Row:
        return self.machine.files[register.width][register.index]


class PlaneDecoder(Decoder):
    """Decodes for a plane. `steering`: operands of the current instruction that stay real."""

    def __init__(self, real: Decoder, plane: Plane) -> None:
        self.__dict__.update(real.__dict__)  # all that a decoder knows, but for the machine
        self.machine = plane.machine
        self._constants = {}
        self.real = real
        self.steering: Collection[int] = ()

    def source(self, ins: tree.Instruction, index: int, kind: str, wide: bool = False) -> Row:
        if index in self.steering:
            return self.real.source(ins, index, kind, wide)
        return super().source(ins, index, kind, wide)

    def row(
        self, ins: tree.Instruction, operand: tree.Operand, kind: str, wide: bool = False
    ) -> Row:
        if isinstance(operand, tree.Unary) and operand.operator == "!":
            return super().row(ins, operand.operand, kind, wide)
        while isinstance(operand, tree.Binary | tree.Parens):  # a register and a constant
            operand = operand.left if isinstance(operand, tree.Binary) else operand.elements[0]
        if not isinstance(operand, tree.Name | tree.Component):
            return self.constant(kind, 0)
        return super().row(ins, operand, kind, wide)

    def _named_row(
        self, ins: tree.Instruction, operand: tree.Name, kind: str, wide: bool = False
    ) -> Row:
        found = self.program.find(self.scope, operand.text)
        if isinstance(found, Register):
            return self.register_row(ins, found, kind, wide)
        return self.constant(kind, 0)

    def _narrow_row(self, ins: tree.Instruction, row: Row | Clock, kind: str, name: str) -> Row:
        return self.constant(kind, 0)

    def constant(self, kind: str, value: int) -> Row:
        return super().constant(kind, 0)

    def symbol_row(self, symbol: Symbol, kind: str) -> Row:
        return self.constant(kind, 0)

    def place_of(self, ins: tree.Instruction, operand: tree.Address, space: str) -> MemoryOperand:
        return self.real.place_of(ins, operand, space)

    def repeat(self, ins: tree.Instruction, steering: Collection[int] = ()) -> Step:
        """The step of an instruction that moves data, on this plane."""
        self.placed = self.real.placed
        self.steering = steering
        try:
            return decode_step(self, ins)
        finally:
            self.steering = ()


def later(d: Decoder, build: Callable[[], Step]) -> Step:
    """A step that is built when it is first called, of the instruction at which `d` is now.

    Mostly nothing undefined ever comes to it.
    """
    placed, built = d.placed, None

    def run(sel: Select, mask: Mask) -> None:
        nonlocal built
        if built is None:
            now, d.placed = d.placed, placed
            try:
                built = build()
            finally:
                d.placed = now
        built(sel, mask)

    return run
