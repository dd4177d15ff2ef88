"""Pointers into shared memory that differ from thread to thread as linear numbers do.

A pointer is where the memory begins plus the number. Shared memory begins at a multiple of
`ALIGNED`, so bits below that may be flipped in a pointer too. Where accesses need several pointers
that differ so, only one is a sum: its first term is added by the very instruction that shifts it,
and other terms, and what makes the other pointers, are flipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from xdsl.ir import SSAValue

from fragir.layout.planning.program import Linear
from fragir.passes.limits import ALIGNED
from fragir.passes.lowering import lanewise
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.lanewise import Terms


def pointers(
    ar: Arithmetic, hardware: Hardware, base: SSAValue, numbers: Sequence[Linear]
) -> list[tuple[SSAValue, int]]:
    """`base` moved by each of the numbers, which differ in their starts alone: a pointer, and bytes
    to add. What threads may set is in the pointer, the rest of the starts is added.
    """
    lane, warp = numbers[0].lane, numbers[0].warp
    terms = lanewise.terms(lanewise.columns_of(hardware, lane, warp))
    reached = _union(term.reached for term in terms)
    flipped = {number.start & reached for number in numbers}
    if len(flipped) == 1 or max(flipped) >= ALIGNED:
        moved = lanewise.linear(ar, hardware, lane, warp)
        begin = {bits: ar.offset(base, ar.xor(moved, bits)) for bits in sorted(flipped)}
    else:
        pointer = _moved(ar, hardware, base, terms)
        begin = {bits: (ar.flip(pointer, bits), 0) for bits in sorted(flipped)}
    found: list[tuple[SSAValue, int]] = []
    for number in numbers:
        pointer, more = begin[number.start & reached]
        found.append((pointer, more + (number.start & ~reached)))
    return found


def _moved(ar: Arithmetic, hardware: Hardware, base: SSAValue, terms: Terms) -> SSAValue:
    """`base` moved by the terms."""
    ordered = sorted(terms, key=_first)
    added = [term for term in ordered if term.reached >= ALIGNED] or ordered[:1]
    bits = [term.reached for term in added]
    if sum(bits) != _union(bits):
        base = ar.offset_whole(base, reduce(ar.xor, (term.value(ar, hardware) for term in added)))
    else:  # no two reach the same bit
        for term in added:
            base = ar.offset_whole(base, term.taken(ar, hardware), term.factor)
    for term in ordered:
        if term not in added:
            base = ar.flip(base, term.value(ar, hardware))
    return base


def _first(term: lanewise.Shift | lanewise.Pattern) -> tuple[bool, int]:
    """Terms that are multiplied, which an addition does by the way; the highest of them first."""
    return term.factor == 1, -term.reached


def _union(masks: Iterable[int]) -> int:
    bits = 0
    for mask in masks:
        bits |= mask
    return bits
