"""Steps made from functions on arrays: what every arithmetic family uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fragir.emulator.machine.lanes import Mask, Row, Step, is_slice, store

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

Function: TypeAlias = Callable[..., Any]
#: A family's table: first word of the opcode -> decode one instruction.
Decode: TypeAlias = "Callable[[Decoder, Instruction], Step]"


def of1(function: Callable[[Any], Any]) -> Function:
    """A function of one operand (says the type of a lambda)."""
    return function


def of2(function: Callable[[Any, Any], Any]) -> Function:
    """A function of two operands."""
    return function


def of3(function: Callable[[Any, Any, Any], Any]) -> Function:
    """A function of three operands."""
    return function


def elementwise(function: Function, out: Row | None, sources: Sequence[Row]) -> Step:
    """out = function(*sources) for the active lanes."""
    if out is None:
        return nothing
    if isinstance(function, np.ufunc):
        return _ufunc(function, out, sources)
    if len(sources) == 1:
        (only,) = sources

        def unary(sel: Any, mask: Mask) -> None:
            store(out, sel, mask, function(only[sel]))

        return unary
    if len(sources) == 2:
        first, second = sources

        def binary(sel: Any, mask: Mask) -> None:
            store(out, sel, mask, function(first[sel], second[sel]))

        return binary

    def many(sel: Any, mask: Mask) -> None:
        store(out, sel, mask, function(*[s[sel] for s in sources]))

    return many


def _ufunc(function: np.ufunc, out: Row, sources: Sequence[Row]) -> Step:
    """A ufunc writes straight into the register where all lanes take part."""
    if len(sources) == 1:
        (only,) = sources

        def unary(sel: Any, mask: Mask) -> None:
            if mask is None and is_slice(sel):
                function(only[sel], out=out[sel])
            else:
                store(out, sel, mask, function(only[sel]))

        return unary
    first, second = sources

    def binary(sel: Any, mask: Mask) -> None:
        if mask is None and is_slice(sel):
            function(first[sel], second[sel], out=out[sel])
        else:
            store(out, sel, mask, function(first[sel], second[sel]))

    return binary


def copy(out: Row | None, source: Row) -> Step:
    """out = source, bits as they are (both of one dtype)."""
    if out is None:
        return nothing

    def run(sel: Any, mask: Mask) -> None:
        if mask is None:
            out[sel] = source[sel]
        else:
            store(out, sel, mask, source[sel])

    return run


def nothing(sel: Any, mask: Mask) -> None:
    """An instruction without effect here (a hint, a fence)."""


def sequence(steps: Sequence[Step]) -> Step:
    """Several steps as one instruction."""
    if len(steps) == 1:
        return steps[0]

    def run(sel: Any, mask: Mask) -> None:
        for step in steps:
            step(sel, mask)

    return run
