"""Makes of every element what all up to it give: within lanes, between lanes, between warps.

The place of an element along the dimension is a number of mixed digits, each of a register, a lane
or a warp (`fragir.layout.scanning.runs`). From the fastest digit to the slowest, blocks that differ
in it are combined, so that every block knows what those before it give (what it *carries*) and all
together; from the slowest to the fastest, what is carried is handed down. So an element is combined
twice, however many lanes there are, and blocks of more elements go through shuffles together.

What one lane has of all rows is one vector for every step along the dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.types import tile_of
from fragir.layout import Axis, Layout, Mode
from fragir.layout.reduction import gathered
from fragir.layout.scanning import DigitRun, runs
from fragir.passes.lowering.arithmetic import Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.reduction import Combining, Part
from fragir.passes.lowering.tile_access import split

T = TypeVar("T")
#: By the place along the dimension of its first element (in lane 0 of warp 0): a block's.
Parts = dict[int, Part]
Carries = dict[int, Part | None]
"""What lies before each block; None where nothing does."""


def prefixes(items: Sequence[T], combine: Callable[[T, T], T]) -> list[T]:
    """What all up to each item give, in less than twice as many operations as items.

    The last goes through ceil(log2 n) of them, others through twice as many at most. R. P. Brent
    and H. T. Kung, "A Regular Layout for Parallel Adders", IEEE Trans. Computers 31, 1982.
    """
    if len(items) < 2:
        return list(items)
    pairs = [combine(*pair) for pair in zip(items[::2], items[1::2], strict=False)]
    rest = list(items[-1:]) if len(items) % 2 else []
    known = prefixes([*pairs, *rest], combine)
    found = [items[0]]
    for number in range(1, len(items)):
        if number % 2 or number == len(items) - 1:
            found.append(known[number // 2])
        else:
            found.append(combine(known[number // 2 - 1], items[number]))
    return found


class Scan:
    """One `frag.scan`, as one lane does it."""

    def __init__(self, lanes: Lanes, op: frag.ScanOp):
        self.lanes, self.op = lanes, op
        self.ar = lanes.arithmetic
        self.tile = tile_of(op.source)
        self.combining = Combining(lanes, op.kind.data, element_name(self.tile.element_type))
        self.reverse, self.exclusive = op.reverse is not None, op.exclusive is not None
        self.rows = 0

    def run(self) -> list[SSAValue]:
        """This lane's elements of the result."""
        tile, elements = self.tile, self.lanes.elements(self.op.source)
        layout = tile.resolve()
        name = layout.dims[self.op.along]
        found = runs(layout, name)
        if found is not None:
            return self._scan(tile, elements, found)
        # every lane gets whole rows
        whole = tile.with_layout(frag.ExplicitLayoutAttr(gathered(layout, name)))
        found = runs(whole.resolve(), name)
        assert found is not None
        elements = self._scan(whole, self.lanes.convert(tile, whole, elements), found)
        return self.lanes.convert(whole, tile, elements)

    def _scan(
        self, tile: frag.TileType, elements: Sequence[SSAValue], digits: Sequence[DigitRun]
    ) -> list[SSAValue]:
        along, points = self.op.along, self.lanes.points_of(tile)
        steps: dict[int, dict[tuple[int, ...], int]] = {}
        for number, point in enumerate(points):
            row = point[:along] + point[along + 1 :]
            steps.setdefault(point[along], {}).setdefault(row, number)
        vector = self.combining.vector
        rows = list(steps[0])
        self.rows = len(rows)
        parts = {c: (vector([elements[held[row]] for row in rows]),) for c, held in steps.items()}
        found = self._all(parts, tile.resolve(), digits)
        scalars = {
            (c, row): scalar
            for c, part in found.items()
            for row, scalar in zip(rows, split(self.ar, part[0], 1), strict=True)
        }
        return [scalars[point[along], point[:along] + point[along + 1 :]] for point in points]

    def _all(self, parts: Parts, layout: Layout, digits: Sequence[DigitRun]) -> Parts:
        """Up through all digits, and down again."""
        own, blocks = parts, parts  # what elements give with those before them in their block
        levels: list[tuple[DigitRun, Carries]] = []
        for run in digits:
            last = run is digits[-1]
            if run.axis == "element":
                carries, blocks, inclusive = self._within(blocks, run)
                if run.low == 1:
                    own = inclusive
            elif run.axis == "lane":
                carries, blocks = self._between_lanes(blocks, run, last)
            else:
                carries, blocks = self._between_warps(blocks, run, layout)
            levels.append((run, carries))
        if not self.exclusive and digits and digits[0].axis == "element":
            del levels[0]
        before: Carries = {0: None}
        for run, carries in reversed(levels):
            before = {
                c: self._join(before[c - c % run.high], carry) for c, carry in carries.items()
            }
        lowest = levels[0][0].low if levels else self.tile.shape[self.op.along]
        if self.exclusive:
            return {c: before[c] or self._nothing() for c in parts}
        found: Parts = {}
        for c, part in own.items():
            joined = self._join(before[c - c % lowest], part)
            assert joined is not None
            found[c] = joined
        return found

    def _join(self, first: Part | None, second: Part | None) -> Part | None:
        if first is None or second is None:
            return first or second
        return self.combining(first, second, in_order=True)

    # --- up -----------------------------------------------------------------------------------

    def _within(self, blocks: Parts, run: DigitRun) -> tuple[Carries, Parts, Parts]:
        """Blocks of one lane: what each carries, all together, and each with those before it."""
        carries: Carries = {}
        sums: Parts = {}
        inclusive: Parts = {}
        for start, group in groupby(sorted(blocks), lambda c: c - c % run.high):
            places = sorted(group, reverse=self.reverse)
            found = prefixes([blocks[c] for c in places], self.combining)
            inclusive.update(zip(places, found, strict=True))
            carries.update(zip(places, [None, *found[:-1]], strict=True))
            sums[start] = found[-1]
        return carries, sums, inclusive

    def _between_lanes(self, blocks: Parts, run: DigitRun, last: bool) -> tuple[Carries, Parts]:
        masks = [
            digit.weight << bit
            for digit in run.digits
            for bit in range(digit.size.bit_length() - 1)
        ]
        carries: Carries = {}
        sums: Parts = {}
        for c, part in blocks.items():
            carry: Part | None = None
            for mask in masks:
                theirs = self.combining.of_lane(part, mask)
                low = self._select(self._is_behind(mask), theirs, self._nothing())
                carry = self._join(low, carry)
                if not (last and mask == masks[-1]):
                    part = self.combining(part, theirs)
            carries[c], sums[c] = carry, part
        return carries, sums

    def _is_behind(self, mask: int) -> SSAValue:
        """Whether this lane's part is behind that of `lane ^ mask`."""
        lane = self.lanes.state.hardware.axis("lane")
        return self._compare("eq" if self.reverse else "ne", self.ar.and_(lane, mask), 0)

    def _between_warps(self, blocks: Parts, run: DigitRun, layout: Layout) -> tuple[Carries, Parts]:
        """All warps' parts come to every warp, which takes what those before it give."""
        warp: Value = self.lanes.state.hardware.axis("warp")
        number: Value = 0
        weight = 1
        for digit in run.digits:
            value = self.ar.rem(self.ar.div(warp, digit.weight), digit.size)
            number = self.ar.add(number, self.ar.mul(value, weight))
            weight *= digit.size
        order = range(run.size)[::-1] if self.reverse else range(run.size)
        carries: Carries = {}
        sums: Parts = {}
        for c, parts in self._of_warps(blocks, run, layout).items():
            found = prefixes([parts[place] for place in order], self.combining)
            carry = self._nothing()
            for place, before in zip(order[1:], found[:-1], strict=True):
                carry = self._select(self._compare("eq", number, place), before, carry)
            carries[c], sums[c] = carry, found[-1]
        return carries, sums

    def _of_warps(self, blocks: Parts, run: DigitRun, layout: Layout) -> Mapping[int, list[Part]]:
        """For every block the parts that warps have of it, by the number along the dimension."""
        own, every = self._exchange(run, layout, len(blocks) * self.rows)
        columns: list[list[SSAValue]] = []
        for vectors in zip(*blocks.values(), strict=True):
            element = ptx.scalar_type(vectors[0].type)
            shape = tuple(own.shape)
            mine, all_ = (
                frag.TileType(shape, element, frag.ExplicitLayoutAttr(way)) for way in (own, every)
            )
            scalars = [scalar for vector in vectors for scalar in split(self.ar, vector, 1)]
            columns.append(self.lanes.convert(mine, all_, scalars))
        slots = len(blocks) * self.rows
        vector = self.combining.vector

        def part(block: int, warp: int) -> Part:
            first = warp * slots + block * self.rows
            return tuple(vector(column[first : first + self.rows]) for column in columns)

        return {
            c: [part(block, warp) for warp in range(run.size)] for block, c in enumerate(blocks)
        }

    def _exchange(self, run: DigitRun, layout: Layout, slots: int) -> tuple[Layout, Layout]:
        """Layouts of (warp along the dimension, other warps, lanes, what a lane has): every warp
        has its own part, and all of them in its last elements. Lanes and warps that have been
        combined, or are copies, have the same."""
        at = self.op.along
        own: dict[str, list[Mode]] = {}
        places, place = dict[int, int](), 1  # of the warp's digits: how far one moves the number
        for digit in run.digits:
            places[digit.weight] = place
            place *= digit.size
        for axis in layout.axes:
            if axis.name == "element":
                continue
            modes = own[axis.name] = []
            weight, reached = 1, 1
            for mode in axis.modes:
                step = (0, 0, 0, 0)
                if axis.name == run.axis and weight in places and mode.size > 1:
                    step = (places[weight], 0, 0, 0)
                elif any(mode.step) and not 0 < mode.step[at] < run.low:
                    step = (0, reached, 0, 0) if axis.name == "warp" else (0, 0, reached, 0)
                    reached *= mode.size
                modes.append(Mode(mode.size, step))
                weight *= mode.size
        mine = Mode(slots, (0, 0, 0, 1))
        dims = ("part", "warps", "lanes", "slot")

        def made(kept: Mapping[str, list[Mode]], *elements: Mode) -> Layout:
            axes = [Axis(name, tuple(modes)) for name, modes in kept.items()]
            return Layout((*axes, Axis("element", elements)), dims)

        every = {
            name: [Mode(m.size, (0, *m.stride[1:])) for m in modes] for name, modes in own.items()
        }
        return made(own, mine), made(every, mine, Mode(run.size, (1, 0, 0, 0)))

    # --- values -------------------------------------------------------------------------------

    def _compare(self, how: str, x: Value, y: Value) -> SSAValue:
        found = self.ar.compare(how, x, y)
        assert isinstance(found, SSAValue)
        return found

    def _select(self, condition: SSAValue, first: Part, second: Part) -> Part:
        return self.combining.select(self.ar.splat(condition, self.rows), first, second)

    def _nothing(self) -> Part:
        """What changes nothing that it is combined with."""
        return (self.combining.nothing(self.tile.element_type, self.rows),)
