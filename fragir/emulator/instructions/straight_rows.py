"""Operands of straight-line runs, and operations made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.operands import Negated
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import MODIFIERS, NO_ROW, ROUNDINGS, RowOperand, row_operand

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

#: From a decoder and an instruction that it can decode to operations.
Encode: TypeAlias = "Callable[[Decoder, Instruction], list[StraightCode]]"


class NoStraightCode(Exception):
    """An instruction that no operation of the library is; its own step runs."""


def read(d: Decoder, row: Any, inverted: bool = False) -> RowOperand:
    """A row that is read; `inverted`: a predicate of which the other value counts."""
    if isinstance(row, Negated):
        row, inverted = row.row, not inverted
    if not isinstance(row, np.ndarray):  # a clock, or an address in the frame of a call
        raise NoStraightCode
    return row_operand(cast("npt.NDArray[Any]", row), d.machine.warps, inverted)


def written(d: Decoder, row: Any) -> RowOperand:
    """A row that is written; None: nothing is."""
    return NO_ROW if row is None else row_operand(row, d.machine.warps)


def sources(d: Decoder, ins: Instruction, kinds: Iterable[str]) -> list[RowOperand]:
    """The operands from the second on, by their types."""
    return [read(d, d.source(ins, i, kind)) for i, kind in enumerate(kinds, 1)]


def elements(
    d: Decoder,
    function: str,
    out: Any,
    operands: list[RowOperand],
    immediate: int = 0,
    times: int = 1,
) -> list[StraightCode]:
    """out = function(operands); nothing where there is no `out`."""
    if out is None:
        return []
    code = StraightCode(function, operands, written(d, out), immediate=immediate, times=times)
    return [code]


def only(ins: Instruction, *words: str) -> None:
    """Gives an instruction up that has other words."""
    if not set(ins.opcode) <= set(words):
        raise NoStraightCode


def modifiers(ins: Instruction) -> int:
    """The rounding and the modifiers of an opcode, as functions take them."""
    mode = next((ROUNDINGS[w] for w in ins.opcode if w in ROUNDINGS), 0)
    return mode | sum(MODIFIERS[w] for w in ins.opcode if w in MODIFIERS)
