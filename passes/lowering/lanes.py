"""Coordinates of lanes and warps: a layout's hardware part as index values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.layout import Axis, Condition, Layout, Mode
from fragir.layout.replicas import Holders
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.position_rules import PositionRule, position_rule
from fragir.passes.lowering.positions import LaneOffset, position

INDEX = IndexType()
ELEMENT = "element"


class Hardware:
    """The thread's place among those that run the same operations: all of a block, unless its
    number and that of its warp are given.
    """

    def __init__(
        self,
        ar: Arithmetic,
        threads: int,
        thread: Value | None = None,
        warp: Value | None = None,
    ):
        self.ar = ar
        self.threads = threads
        self._thread, self._warp = thread, warp

    def special(self, register: str, name: str) -> SSAValue:
        """A special register, read once at the top."""
        return self.ar.pure((register,), (), lambda: ptx.SpecialOp(register), name)

    @property
    def thread(self) -> Value:
        return self.special("tid.x", "tid") if self._thread is None else self._thread

    def axis(self, name: str) -> Value:
        """The value of the axis `thread`, `warp` or `lane`."""
        if name == "thread":
            return self.thread
        if name == "lane":
            thread = self.thread
            return thread if self.threads <= 32 else self.ar.rem(thread, 32, "lane")
        if self._warp is not None and self.threads > 32:
            return self._warp
        return 0 if self.threads <= 32 else self.ar.div(self.thread, 32, "warp")

    def coordinate(self, layout: Layout, dim: int) -> LaneOffset:
        """What lane, warp and thread add to a coordinate of every element.

        Of a layout with exclusive or this differs between elements: see `place`.
        """
        return self.place(layout, dim, 0)[0]

    def place(self, layout: Layout, dim: int, element: int) -> tuple[LaneOffset, int]:
        """The coordinate of one element: what lane, warp and thread tell of it, and a constant.

        Where nothing is exclusive-ored, the constant is that of the layout's offset alone.
        """
        rule, names = _rule(layout, dim, self.threads)
        lanes = [self._lanes(name) for name in names]
        constants = [element if name == ELEMENT else 0 for name in names]
        found = position(
            self.ar, rule, lanes, [0] * len(names), constants, masks_first=not layout.exclusive
        )
        return LaneOffset(self.ar.total(found.terms), found.mask), found.immediate

    def _lanes(self, name: str) -> LaneOffset:
        """The values of an axis; elements are constants."""
        if name == ELEMENT:
            return LaneOffset(0, 0)
        return LaneOffset(
            self.axis(name), (1 << (_extent(name, self.threads) - 1).bit_length()) - 1
        )

    def holds(self, conditions: Sequence[Condition], element: int) -> Predicate:
        """Whether this thread has the element, by a layout's predicate."""
        result: Predicate = True
        for condition in conditions:
            if condition.axis == ELEMENT:
                held: Predicate = condition(element)
            else:
                digit = self.ar.div(self.axis(condition.axis), condition.divisor)
                held = self.ar.compare("eq", self.ar.rem(digit, condition.modulus), condition.value)
            result = self.ar.both(result, held)
        return result

    def speaks(self, holders: Holders, element: int) -> Predicate:
        """Whether this thread, of those who hold an element alike, is the one."""
        result = self.holds(holders.conditions, element)
        for _, inner, outer, apart in holders.overlaps:
            place = self.ar.add(self.coordinate(inner, 0).value, _constant(inner, element))
            number = self.ar.add(self.coordinate(outer, 0).value, _constant(outer, element))
            alone = self.ar.compare("ult", apart - 1, place)
            begins = self.ar.compare("eq", number, 0)
            result = self.ar.both(result, self.ar.either(begins, alone))
        return result


def _constant(layout: Layout, element: int) -> int:
    """Where the first lane of the first warp has an element."""
    zeros = dict.fromkeys(layout.names, 0)
    (place,) = layout(**{**zeros, ELEMENT: element}) or (0,)
    return place


def _extent(axis: str, threads: int) -> int:
    return {"lane": 32, "warp": max(1, threads // 32), "thread": threads}[axis]


@lru_cache(maxsize=4096)
def _rule(layout: Layout, dim: int, threads: int) -> tuple[PositionRule, tuple[str, ...]]:
    """How one dimension is evaluated, and the axes that it is evaluated at.

    Elements only matter where they are not simply added.
    """
    axes: list[Axis] = []
    for axis in layout.axes:
        if axis.name == ELEMENT and not layout.exclusive:
            continue
        modes = [mode.moving(mode.size, (mode.step[dim],)) for mode in axis.modes]
        if axis.name != ELEMENT:
            # threads beyond the layout's are those at its beginning again
            modes.append(Mode(-(-_extent(axis.name, threads) // axis.size), (0,)))
        axes.append(Axis(axis.name, tuple(modes)))
    found = Layout(tuple(axes), ("index",), (layout.origin[dim],))
    return position_rule(found), tuple(axis.name for axis in axes)
