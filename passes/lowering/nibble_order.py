"""Elements of four bits that a lane holds in another order than memory: loaded as they lie there.

Bytes hold neighbours of memory, so a load gives them in memory's order. Where the tile's layout
counts them otherwise (B of a product whose memory runs along N; weights that were put in an order
in which they are unpacked with fewer instructions), they are loaded as memory has them, and
`ptx.nibbles` names the order. What they are cast to is made in that order at no cost.
"""

from __future__ import annotations

from dataclasses import replace

from fragir.layout import Layout
from fragir.layout.modes import Axis


def in_memory_order(layout: Layout, dim: int) -> tuple[Layout, tuple[int, ...]] | None:
    """The layout with the lane's elements counted along a dimension first, nearest ones lowest.

    And for each element of `layout` its number there. None where lanes' elements flip bits.
    """
    layout = layout.simplified()
    if layout.exclusive or any(condition.axis == "element" for condition in layout.where):
        return None
    modes = layout.axis("element").modes

    def far(number: int) -> tuple[int, int]:
        stride = modes[number].stride
        alone = stride[dim] > 0 and not any(x for d, x in enumerate(stride) if d != dim)
        return (stride[dim], number) if alone else (layout.shape[dim], number)

    ranked = sorted(range(len(modes)), key=far)
    places, place = [0] * len(modes), 1
    for number in ranked:
        places[number] = place
        place *= modes[number].size
    order: list[int] = []
    for element in range(place):
        rest, there = element, 0
        for mode, step in zip(modes, places, strict=True):
            there += rest % mode.size * step
            rest //= mode.size
        order.append(there)
    axes = tuple(
        Axis("element", tuple(modes[i] for i in ranked)) if axis.name == "element" else axis
        for axis in layout.axes
    )
    return replace(layout, axes=axes), tuple(order)
