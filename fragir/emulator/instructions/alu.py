"""Steps made from functions on arrays: what every arithmetic family uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from fragir.emulator.machine.lanes import Mask, Row, Select, Step, is_slice, store
from fragir.emulator.numbers.types import Array, DType
from fragir.emulator.values.arrays import Function as Function
from fragir.emulator.values.arrays import of1 as of1
from fragir.emulator.values.arrays import of2 as of2

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

#: What makes the step of one instruction.
Decode: TypeAlias = "Callable[[Decoder, Instruction], Step]"


def elementwise(function: Function, out: Row | None, sources: Sequence[Row]) -> Step:
    """out = function(*sources) for the active lanes."""
    if out is None:
        return nothing
    if isinstance(function, np.ufunc):
        return _ufunc(function, out, sources)
    return _assignment(function, out, out, sources)


def _assignment(function: Function, target: Row, out: Row, sources: Sequence[Row]) -> Step:
    """`target` is `out` seen as what the function gives, which may be another type."""
    same = target is out
    kind = out.dtype

    def part(sel: Select, mask: Mask, value: Array) -> None:
        store(out, sel, mask, value if same else value.view(kind))

    if len(sources) == 1:
        (only,) = sources

        def unary(sel: Select, mask: Mask) -> None:
            if mask is None:
                target[sel] = function(only[sel])
            else:
                part(sel, mask, function(only[sel]))

        return unary
    if len(sources) == 2:
        first, second = sources

        def binary(sel: Select, mask: Mask) -> None:
            if mask is None:
                target[sel] = function(first[sel], second[sel])
            else:
                part(sel, mask, function(first[sel], second[sel]))

        return binary

    def many(sel: Select, mask: Mask) -> None:
        value = function(*[s[sel] for s in sources])
        if mask is None:
            target[sel] = value
        else:
            part(sel, mask, value)

    return many


def seen_as(row: object, dtype: DType) -> Row | None:
    """The elements of a row as a type of its size, or of half of it: [warps, 64].

    None where its bits lie apart, or are no array.
    """
    if not isinstance(row, np.ndarray):
        return None
    found = cast("Row", row)
    if found.dtype.itemsize == dtype.itemsize:
        return found.view(dtype)
    if found.strides == (0, 0):
        found = np.ascontiguousarray(found)  # a constant
    return found.view(dtype) if found.flags.c_contiguous else None


def typed_step(
    function: Function,
    out: Row | None,
    sources: Sequence[Row],
    dtype: DType,
    given: DType | None = None,
) -> Step | None:
    """As `elementwise`, of a function from arrays of a type to one of a type.

    `given`: the type of its operands, where it is another. None where the rows cannot be seen so.
    """
    if out is None:
        return nothing
    rows = [seen_as(row, dtype if given is None else given) for row in sources]
    target = seen_as(out, dtype) if out.dtype.itemsize % dtype.itemsize == 0 else None
    views = [row for row in rows if row is not None]
    if target is None or len(views) < len(rows):
        return None
    return _assignment(function, target, out, views)


def _ufunc(function: np.ufunc, out: Row, sources: Sequence[Row]) -> Step:
    """A ufunc writes straight into the register where all lanes take part."""
    if len(sources) == 1:
        (only,) = sources

        def unary(sel: Select, mask: Mask) -> None:
            if mask is None and is_slice(sel):
                function(only[sel], out=out[sel])
            else:
                store(out, sel, mask, function(only[sel]))

        return unary
    first, second = sources

    def binary(sel: Select, mask: Mask) -> None:
        if mask is None and is_slice(sel):
            function(first[sel], second[sel], out=out[sel])
        else:
            store(out, sel, mask, function(first[sel], second[sel]))

    return binary


def copy(out: Row | None, source: Row) -> Step:
    """out = source, bits as they are (both of one dtype)."""
    if out is None:
        return nothing

    def run(sel: Select, mask: Mask) -> None:
        if mask is None:
            out[sel] = source[sel]
        else:
            store(out, sel, mask, source[sel])

    return run


def nothing(sel: Select, mask: Mask) -> None:
    """An instruction without effect here (a hint, a fence)."""


def sequence(steps: Sequence[Step]) -> Step:
    """Several steps as one instruction."""
    if len(steps) == 1:
        return steps[0]

    def run(sel: Select, mask: Mask) -> None:
        for step in steps:
            step(sel, mask)

    return run
