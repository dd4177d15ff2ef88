"""Operands of straight-line runs, and operations made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

import numpy as np

from fragir.emulator.instructions.operands import Decoder, Negated
from fragir.emulator.machine.lanes import LANES, Row
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import (
    DIRECT,
    INVERTED,
    NO_ROW,
    RowOperand,
    address_of,
    row_operand,
)
from fragir.emulator.numbers.types import Array, dtype_of, width_of
from fragir.emulator.program.entities import Register
from fragir.ptx import tree


class NoStraightCode(Exception):
    """An instruction that no operation of the library is; its own step runs."""


class StraightDecoder(Decoder):
    """Reads operands of instructions that have been decoded before, as addresses of their rows."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder.program, decoder.machine, decoder.target_name, decoder.settings)
        self.wrapped = decoder.wrapped  # checks look at these: their steps have to run
        self.watched = decoder.watched
        self._files = {
            width: (address_of(file), max(width // 8, 1))
            for width, file in self.machine.files.items()
        }
        self._read: dict[int, tuple[Array, RowOperand]] = {}  # of constants, by their rows
        self._known: dict[tuple[int, str, str], RowOperand | None] = {}

    def _register(self, operand: tree.Operand, kind: str) -> RowOperand | None:
        """A register of just that width, without an array for it."""
        if type(operand) is not tree.Name:
            return None
        key = (id(self.placed.scope), operand.text, kind)
        if key not in self._known:
            self._known[key] = self._find(operand.text, kind)
        return self._known[key]

    def _find(self, name: str, kind: str) -> RowOperand | None:
        found = self.program.find(self.scope, name)
        width = width_of(kind)
        if not isinstance(found, Register) or found.width != width or width not in self._files:
            return None
        base, size = self._files[width]
        warp = LANES * size
        fields = (base + found.index * self.machine.warps * warp, warp, size, size, DIRECT)
        return RowOperand(fields, None, width)

    def read(self, row: object, inverted: bool = False) -> RowOperand:
        """A row that is read; `inverted`: a predicate of which the other value counts."""
        if isinstance(row, Negated):
            row, inverted = row.row, not inverted
        if not isinstance(row, np.ndarray):  # a clock, or an address in the frame of a call
            raise NoStraightCode
        found = self._read.get(id(cast("object", row)))
        if found is not None and not inverted:
            return found[1]
        array = cast("Array", row)
        operand = row_operand(array, self.machine.warps, inverted)
        if not inverted and not any(array.strides):
            self._read[id(array)] = array, operand
        return operand

    def destination(self, row: Row | None) -> RowOperand | None:
        """A row that is written; None: nothing is."""
        return None if row is None else row_operand(row, self.machine.warps)

    def operand_of(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> RowOperand:
        """An operand that is read as a type."""
        found = self._register(operand, kind)
        if found is not None:
            return found
        if isinstance(operand, tree.Unary) and operand.operator == "!":
            found = self._register(operand.operand, kind)
            if found is not None:
                return _inverted_row(found)
        return self._shareable(operand, self.read(self.row(ins, operand, kind)))

    def direct(self, operand: tree.Operand, kind: str) -> RowOperand | None:
        """A register of just that width; None for anything else."""
        return self._register(operand, kind)

    @staticmethod
    def _shareable(operand: tree.Operand, row: RowOperand) -> RowOperand:
        """Literals are the same in every launch; addresses and special registers are not."""
        if isinstance(operand, tree.Unary) and operand.operator == "-":
            operand = operand.operand
        return row._replace(file=0) if isinstance(operand, tree.Integer | tree.Float) else row

    def destination_at(self, ins: tree.Instruction, index: int, kind: str) -> RowOperand:
        """The same by its number."""
        return self.operand_of(ins, self.operand(ins, index), kind)

    def bits(self, ins: tree.Instruction, operand: tree.Operand, kind: str, raw: str) -> RowOperand:
        """One that is read as a type, and is bits of another of the same width."""
        found = self._register(operand, raw)
        if found is not None:
            return found
        row = self.row(ins, operand, kind).view(dtype_of(raw))
        return self._shareable(operand, self.read(row))

    def sources(self, ins: tree.Instruction, kinds: Iterable[str]) -> list[RowOperand]:
        """The operands from the second on, by their types."""
        return [self.destination_at(ins, i, kind) for i, kind in enumerate(kinds, 1)]

    def out_of(self, ins: tree.Instruction, operand: tree.Operand, kind: str) -> RowOperand | None:
        """A destination of just that width; None for `_`."""
        return self._register(operand, kind) or self.destination(self.target_of(ins, operand, kind))

    def out(self, ins: tree.Instruction, index: int, kind: str) -> RowOperand | None:
        """The same by its number."""
        return self.out_of(ins, self.operand(ins, index), kind)

    def wide_out(
        self, ins: tree.Instruction, operand: tree.Operand, kind: str
    ) -> RowOperand | None:
        """A destination that may be wider."""
        return self._register(operand, kind) or self.destination(
            self.wide_target(ins, operand, kind)
        )

    def guard(self, ins: tree.Instruction) -> RowOperand:
        """The predicate of a guarded instruction."""
        assert ins.guard is not None
        found = self._register(ins.guard.register, "pred")
        if found is not None:
            return _inverted_row(found) if ins.guard.negated else found
        return self.read(self.row(ins, ins.guard.register, "pred"), ins.guard.negated)


def _inverted_row(row: RowOperand) -> RowOperand:
    """A predicate of which the other value counts."""
    return row._replace(fields=(*row.fields[:4], INVERTED))


#: From a decoder and an instruction that it can decode to operations.
Encode: TypeAlias = Callable[[StraightDecoder, tree.Instruction], list[StraightCode]]


def elements(
    function: str,
    out: RowOperand | None,
    operands: list[RowOperand],
    immediate: int = 0,
    times: int = 1,
) -> list[StraightCode]:
    """out = function(operands); nothing where there is no `out`."""
    if out is None:
        return []
    return [StraightCode(function, operands, out, immediate=immediate, times=times)]


def destination_or_none(row: RowOperand | None) -> RowOperand:
    """A destination, or that of nothing."""
    return NO_ROW if row is None else row


def check_words(ins: tree.Instruction, *words: str) -> None:
    """Gives an instruction up that has other words."""
    if not set(ins.opcode) <= set(words):
        raise NoStraightCode
