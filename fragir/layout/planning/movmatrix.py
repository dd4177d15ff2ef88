"""`movmatrix`, the transposition of 8 by 8 halves across a warp, where it saves shuffles.

`movmatrix.sync.aligned.m8n8.trans.b16` (PTX ISA, "Warp-level matrix transpose instruction") takes
the bit of the half to bit 2 of the lane, bits 0 and 1 of the lane to bits 3 and 4, and back. Halves
are elements of 16 bits or pairs of bytes.
"""

from __future__ import annotations

from dataclasses import replace

from fragir.layout.f2 import Subspace
from fragir.layout.planning.costs import Costs
from fragir.layout.planning.hops import Route, Turn, direct
from fragir.layout.planning.registers import RegisterColumns

HALF = {1: 0, 2: 1}
"""The bit of the element that is the half, by the number of element bits in a word."""


def turned(side: RegisterColumns, half: int) -> RegisterColumns:
    """The layout after every word was transposed."""
    low, high = side.lane[:2], side.lane[3:]
    lane = (*high, side.element[half], *low)
    element = (*side.element[:half], side.lane[2], *side.element[half + 1 :])
    return replace(side, element=element, lane=lane)


def transposed(
    source: RegisterColumns, target: RegisterColumns, inside: int, costs: Costs
) -> Route | None:
    """Repacking inside of lanes, one `movmatrix` a word, and the rest; None where it cannot be."""
    half = HALF.get(inside)
    if half is None or len(source.element) < inside:
        return None
    wanted = Subspace(target.element)
    now = _strange(source, wanted)
    words = 1 << len(source.element) - inside
    best: Route | None = None
    for bit in range(half, len(source.element)):
        packed = replace(source, element=_swapped(source.element, half, bit))
        after = turned(packed, half)
        if _strange(after, wanted) >= max(now, 1):
            continue  # no fewer lanes to read than before
        first = direct(source, packed, inside, costs)
        rest = direct(after, target, inside, costs, most=8)
        if first is None or rest is None:
            continue
        turn = Route((Turn(words),), words * (costs.transpose + costs.issue))
        route = first + turn + rest
        if best is None or route.price < best.price:
            best = route
    return best


def _strange(side: RegisterColumns, wanted: Subspace) -> int:
    """How many independent bits of the wanted elements lie in other lanes."""
    held = Subspace(side.element)
    return sum(held.add(column) for column in wanted)


def _swapped(columns: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    changed = list(columns)
    changed[i], changed[j] = changed[j], changed[i]
    return tuple(changed)
