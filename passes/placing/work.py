"""What operations cost in the layouts that their tiles may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.ir import Operation, OpResult, SSAValue

from fragir.dialects import frag
from fragir.dialects.interfaces import LAYOUTS, Threads, value_of
from fragir.passes.placing.relations import asking
from fragir.passes.placing.sites import Asked


class Work:
    """What operations of a function cost in which layouts, each asked once."""

    def __init__(self, threads: Threads, movable: Collection[SSAValue] = ()):
        """`movable` is memory whose rows may lie in several orders: there it is not known what
        loading once more costs."""
        self._threads, self._movable = threads, movable
        self._costs: dict[tuple[Operation, tuple[frag.LayoutAttr, ...]], float] = {}
        self._again: dict[tuple[SSAValue, frag.LayoutAttr], float | None] = {}

    def cost(self, asked: Asked, layouts: Mapping[SSAValue, frag.LayoutAttr]) -> float:
        """What an operation costs in its tiles' layouts."""
        key = asked.op, tuple(layouts.values())
        known = self._costs.get(key)
        if known is None:
            with asking(asked.op):
                known = self._costs[key] = asked.model.cost(layouts, self._threads)
        return known

    def again(self, value: SSAValue, layout: frag.LayoutAttr) -> float | None:
        """What it costs to make a value again in a layout, with all that it is made of.

        None where an operation on the way may not be repeated or does not have its tiles alike.
        """
        key = value, layout
        if key not in self._again:
            self._again[key] = self._made(value, layout)
        return self._again[key]

    def _made(self, value: SSAValue, layout: frag.LayoutAttr) -> float | None:
        if not isinstance(value, OpResult) or len(value.owner.results) != 1:
            return None
        op: Operation = value.owner
        make = LAYOUTS.of(type(op))
        if make is None:
            return None
        model = make(op)
        if not model.repeats() or list(model.demands(self._threads)):
            return None
        if self._movable and any(v in self._movable for v in op.operands):
            return None
        tiles = [v for v in op.operands if frag.held_tile(v.type) is not None]
        total = model.cost({v: layout for v in (*tiles, value)}, self._threads)
        alike = {value_of(tile) for group in model.same_layout() for tile in group}
        for tile in dict.fromkeys(tiles):
            below = self.again(tile, layout) if tile in alike else None
            if below is None:
                return None
            total += below
        return total
