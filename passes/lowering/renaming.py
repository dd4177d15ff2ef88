"""Fragments made of elements of others in the same lane: registers get other names."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import is_predicate
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.words import WORD


def per_register(element: Attribute) -> int:
    """How many elements of a type share a register."""
    return 1 if is_predicate(element) else max(1, WORD // ptx.bits(element))


def is_whole(picked: Sequence[int], per: int) -> bool:
    """Whether registers of so many elements stay whole: which they are, and their order."""
    return len(picked) % per == 0 and all(
        _follow_each_other(picked[at : at + per], per) for at in range(0, len(picked), per)
    )


def renamed(
    ar: Arithmetic, fragments: Sequence[SSAValue], picked: Sequence[int], chunk: int
) -> list[SSAValue]:
    """Vectors of `chunk` elements: for each its number among those of the fragments, in order.

    Registers that stay whole are not taken apart. Elements have a byte or more, or all stay whole.
    """
    per = per_register(ptx.scalar_type(fragments[0].type))
    if chunk % per or any(ptx.length(fragment.type) % per for fragment in fragments):
        scalars = [x for fragment in fragments for x in split(ar, fragment, 1)]
        return [
            ar.insert(ptx.PackOp([scalars[number] for number in picked[at : at + chunk]])).result
            for at in range(0, len(picked), chunk)
        ]
    registers = [part for fragment in fragments for part in split(ar, fragment, per)]
    apart: dict[int, list[SSAValue]] = {}

    def scalar(number: int) -> SSAValue:
        register, place = divmod(number, per)
        if register not in apart:
            apart[register] = split(ar, registers[register], 1)
        return apart[register][place]

    def made(numbers: Sequence[int]) -> SSAValue:
        if per == 1 or _follow_each_other(numbers, per):
            return registers[numbers[0] // per]
        return ar.insert(ptx.PackOp([scalar(number) for number in numbers])).result

    parts = [made(picked[at : at + per]) for at in range(0, len(picked), per)]
    size = chunk // per
    return [_join(ar, parts[at : at + size], per) for at in range(0, len(parts), size)]


def _follow_each_other(numbers: Sequence[int], per: int) -> bool:
    """Whether these are all the elements of one register."""
    first = numbers[0]
    return first % per == 0 and list(numbers) == list(range(first, first + per))


def _join(ar: Arithmetic, parts: Sequence[SSAValue], per: int) -> SSAValue:
    if per == 1:
        return ar.insert(ptx.PackOp(parts)).result
    return parts[0] if len(parts) == 1 else ar.insert(ptx.ConcatOp(parts)).result
