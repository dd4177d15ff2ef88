"""Conversions through little shared memory: in rounds, each with a part of the registers.

Let x_1 .. x_k be registers of both sides, independent of all columns of lanes and warps. The tile
falls into 2^k parts, by what they contribute; each part is converted as the one where they are
zero, with other words at the same addresses. So a round needs the 2^k-th part of the memory, and
differs from the others in the numbers of its words alone.
"""

from __future__ import annotations

from dataclasses import replace

from fragir.layout.f2 import Subspace, image
from fragir.layout.planning.access import SharedSide, common_order
from fragir.layout.planning.sync import Crossing


def in_rounds(moved: Crossing, wanted: int) -> Crossing:
    """One of 2^wanted rounds of a conversion, or of as many as there can be."""
    source, target = moved.source, moved.target
    threads = source.lane + source.warp + target.lane + target.warp
    span = Subspace(threads)
    # registers that accesses would hold together come last
    both = [c for c in reversed(common_order(source, target)[0]) if c in target.numbers]
    turned = [column for column in both if span.add(column)][:wanted]
    if not turned:
        return moved
    units = (1 << index for index in range(moved.dims))
    rest = Subspace(turned)
    kept = [c for c in (*threads, *source.element, *target.element, *units) if rest.add(c)]
    dims = moved.dims - len(turned)
    places = Subspace()
    for index, vector in enumerate((*sorted(kept), *turned)):
        places.add(vector, 1 << index)
    mask = (1 << dims) - 1

    def part(side: SharedSide) -> tuple[SharedSide, list[int]]:
        """The side in one round, and the elements that the rounds begin with."""
        begin = [side.numbers.solve(column) or 0 for column in turned]
        inner = Subspace()
        element: list[int] = []
        slots: list[int] = []
        for column, slot in zip(side.element, side.slots, strict=True):
            place = places.solve(column) or 0
            if inner.add(place & mask):
                element.append(place & mask)
                slots.append(slot ^ image(begin, place >> dims))

        def placed(columns: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places.solve(column) or 0 for column in columns)

        reduced = replace(
            side,
            element=tuple(element),
            slots=tuple(slots),
            lane=placed(side.lane),
            warp=placed(side.warp),
        )
        return reduced, [image(begin, number) for number in range(1 << len(turned))]

    first, stored = part(source)
    second, loaded = part(target)
    starts = tuple(zip(stored, loaded, strict=True))
    return replace(moved, source=first, target=second, dims=dims, starts=starts)
