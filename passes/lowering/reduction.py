"""Combines the elements along a dimension: within lanes, between lanes, between warps.

What one lane has of all rows is one vector for every step along the dimension, so that 16-bit
elements are combined two at a time. Warps tell each other their parts by a conversion
(`fragir.passes.lowering.convert`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, i32
from xdsl.ir import Attribute, Block, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.reductions import COMBINATIONS, FLOATS, PLACES, neutral
from fragir.dialects.frag.types import tile_of
from fragir.layout.conversion import points_of
from fragir.layout.reduction import by_warps, exchange, gathered, reduced, spread
from fragir.layout.replicas import Holders, Overlap, overlaps
from fragir.passes.lowering.arithmetic import Predicate
from fragir.passes.lowering.elementwise import cast_op, clone_region
from fragir.passes.lowering.lane_builder import REGISTER, WARP, Lanes
from fragir.passes.lowering.staged import ScratchAccess
from fragir.passes.lowering.tile_access import split

# -- combining -------------------------------------------------------------------------------------
# Combines parts of rows that lanes hold: by a word of `frag.reduce`, or as a region says.

#: For each row that a lane has: its elements, or elements and places, one vector each.
Part: TypeAlias = tuple[SSAValue, ...]

_OPERATIONS: dict[str, Any] = {op.name: op for op in arith.Arith.operations}


class Combining:
    """What one lane does to combine elements of a type by a word."""

    def __init__(self, lanes: Lanes, kind: str, element: str):
        self.lanes, self.kind, self.element = lanes, kind, element
        self.ar = lanes.arithmetic

    @property
    def is_once(self) -> bool:
        """Whether an element must not be combined twice: of sums, not of the largest."""
        return self.kind in ("", "add", "mul", "xor")

    def __call__(self, first: Part, second: Part, *, in_order: bool = False) -> Part:
        """Two of them; `in_order` says that the places of the first are before the second's."""
        if self.kind in PLACES:
            return self._better(first, second, in_order)
        name = COMBINATIONS[self.kind].operation(self.element)
        assert name is not None
        (x,), (y,) = first, second
        return (self.lanes.insert(_OPERATIONS[name](x, y)).results[0],)

    def between_lanes(self, part: Part, mask: int) -> Part:
        """What this lane and the lane `lane ^ mask` have: the same in both, to the bit."""
        return self(part, self.of_lane(part, mask))

    def of_lane(self, part: Part, mask: int) -> Part:
        """The part that the lane `lane ^ mask` has."""
        return tuple(self._exchange(vector, mask) for vector in part)

    def select(self, condition: SSAValue, first: Part, second: Part) -> Part:
        """The first where a vector of conditions holds, else the second."""
        return tuple(self._select(condition, x, y) for x, y in zip(first, second, strict=True))

    def nothing(self, type_: Attribute, count: int) -> SSAValue:
        """So many elements of a type that change nothing they are combined with."""
        number = neutral(self.kind, self.element)
        if isinstance(type_, AnyFloat):
            return self.ar.splat(self._constant(FloatAttr(number, type_)), count)
        signless = IntegerType(ptx.bits(type_))
        vector = self.ar.splat(self._constant(IntegerAttr(int(number), signless)), count)
        if type_ == signless:
            return vector
        wanted = ptx.vector_type(type_, count)
        key = ("cast", vector, wanted)
        return self.ar.pure(key, (vector,), lambda: ptx.BitcastOp(vector, wanted))

    def _constant(self, attribute: FloatAttr[AnyFloat] | IntegerAttr[IntegerType]) -> SSAValue:
        return self.ar.literal(attribute)

    def vector(self, scalars: Sequence[SSAValue]) -> SSAValue:
        """Scalars as one vector."""
        return self.lanes.insert(ptx.PackOp(scalars)).result

    def _better(self, first: Part, second: Part, in_order: bool) -> Part:
        """The larger or smaller of two elements and its place; of equals that of the first."""
        (x, at), (y, there) = first, second
        way = "gt" if self.kind == "argmax" else "lt"
        if self.element in FLOATS:
            # a NaN is better than any number
            number = self._compare("ord", x, x)
            better = self._both(self._compare(f"u{way}", y, x), number)
            equal = self._compare("ueq", y, x)
            if not in_order:
                # unordered are equal if both are NaN: x is a number, and better was right, or not
                equal = self._both(equal, self._both_or_neither(number, self._compare("ord", y, y)))
        else:
            better = self._compare(("u" if self.element == "u32" else "s") + way, y, x)
            equal = self._compare("eq", y, x)
        if not in_order:
            earlier = self._both(equal, self._compare("slt", there, at))
            better = self.lanes.insert(arith.OrIOp(better, earlier)).result
        return self.select(better, second, first)

    def _select(self, condition: SSAValue, first: SSAValue, second: SSAValue) -> SSAValue:
        if not is_predicate(ptx.scalar_type(first.type)):
            return self.lanes.insert(ptx.SelectOp(condition, first, second)).result
        # selp takes no predicates
        every = self.ar.splat(self._true(), ptx.length(first.type))
        otherwise = self.lanes.insert(arith.XOrIOp(condition, every)).result
        kept = self._both(first, condition), self._both(second, otherwise)
        return self.lanes.insert(arith.OrIOp(*kept)).result

    def _compare(self, how: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(ptx.CompareOp(how, x, y)).result

    def _both(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(arith.AndIOp(x, y)).result

    def _both_or_neither(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Where both hold, or neither."""
        differ = self.lanes.insert(arith.XOrIOp(x, y)).result
        every = self.ar.splat(self._true(), ptx.length(x.type))
        return self.lanes.insert(arith.XOrIOp(differ, every)).result

    def _true(self) -> SSAValue:
        return self.ar.pure(("true",), (), lambda: arith.ConstantOp.from_int_and_width(1, 1))

    def _exchange(self, vector: SSAValue, mask: int) -> SSAValue:
        """The vector that another lane has."""
        lanes, type_ = self.lanes, ptx.scalar_type(vector.type)
        if is_predicate(type_):  # as numbers
            moved = lanes.shuffle_xor(cast_op(self.ar, vector, type_, i32), mask)
            return self._compare("ne", moved, self.ar.zero(moved.type))
        width, count = ptx.bits(type_), ptx.length(vector.type)
        if count * width % REGISTER == 0:
            return lanes.shuffle_xor(vector, mask)
        scalars = split(self.ar, vector, 1)
        filled = self.vector([*scalars, *scalars[-1:] * (-count % (REGISTER // width))])
        moved = split(self.ar, lanes.shuffle_xor(filled, mask), 1)
        return self.vector(moved[:count])


class RegionCombining(Combining):
    """Combines n values each by a region on 2 n scalars."""

    def __init__(self, lanes: Lanes, block: Block):
        super().__init__(lanes, "", "")
        self.block = block

    def __call__(self, first: Part, second: Part, *, in_order: bool = False) -> Part:
        rows = ptx.length(first[0].type)
        values = clone_region(self.ar, self.block, (*first, *second), rows, self.lanes.scalar)
        return tuple(values)

    def between_lanes(self, part: Part, mask: int) -> Part:
        """That of the lower lane stands first: what is added in another order may round in another
        way, and lanes that have a row together must have the same."""
        theirs = self.of_lane(part, mask)
        lane = self.lanes.state.hardware.axis("lane")
        upper = self.ar.predicate(self.ar.compare("ne", self.ar.and_(lane, mask), 0))
        assert upper is not None
        every = self.ar.splat(upper, ptx.length(part[0].type))
        return self(self.select(every, theirs, part), self.select(every, part, theirs))


class Reduction:
    """One `frag.reduce` or `frag.reduce_by`, as one lane does it."""

    def __init__(
        self,
        lanes: Lanes,
        sources: Sequence[SSAValue],
        along: int,
        combining: Combining,
        *,
        places: bool = False,
    ):
        self.lanes, self.sources, self.along, self.combining = lanes, sources, along, combining
        self.ar = lanes.arithmetic
        self.places = places  # whether the elements' places are combined too
        self.twice: list[Overlap] = []  # where elements are that are counted once

    def run(self) -> list[list[SSAValue]]:
        """The values of the rows that this lane holds, in the order of the reduced layout: of each
        tile, and the places behind them."""
        tile = tile_of(self.sources[0])
        columns = [self.lanes.elements(source) for source in self.sources]
        layout = tile.resolve()
        name = layout.dims[self.along]
        held = spread(layout, name)
        twice = [overlap for overlap in overlaps(layout) if overlap.dim == self.along]
        if twice and not self.combining.is_once:
            twice = []
        if twice and self.combining.kind:
            self.twice = twice
            columns = [self._counted_once(columns[0], tile, twice)]
        elif twice:
            held = None
        if held is None:  # every lane gets whole rows
            whole = tile.with_layout(frag.ExplicitLayoutAttr(gathered(layout, name)))
            columns = [
                self.lanes.convert(
                    tile.with_element(element), whole.with_element(element), elements
                )
                for elements, element in zip(columns, self._elements(), strict=True)
            ]
            tile, layout = whole, whole.resolve()
            held = spread(layout, name)
            assert held is not None
        part = self._tree(self._parts(tile, columns), in_order=True)
        part = self._between_lanes(part, held.masks)
        if held.warps > 1:
            part = self._tree(self._of_warps(tile, part, held.warps))
        return [split(self.ar, vector, 1) for vector in part]

    def _counted_once(
        self, elements: Sequence[SSAValue], tile: frag.TileType, overlaps: Sequence[Overlap]
    ) -> list[SSAValue]:
        """The elements, those that another lane has too as what changes nothing."""
        holders = Holders(overlaps=tuple(overlaps))
        (nothing,) = split(self.ar, self.combining.nothing(tile.element_type, 1), 1)
        found: list[SSAValue] = []
        for number, element in enumerate(elements):
            mine = self.lanes.state.hardware.speaks(holders, number)
            if mine is not True:
                condition = self.ar.predicate(mine)
                assert condition is not None
                element = self.lanes.insert(arith.SelectOp(condition, element, nothing)).result
            found.append(element)
        return found

    def _elements(self) -> list[Attribute]:
        """The types of the elements of every tile."""
        return [tile_of(source).element_type for source in self.sources]

    def _part_of(self, number: int) -> tuple[int, int]:
        """Sorts elements that a lane holds twice: that comes first which is counted."""
        zeros = dict.fromkeys(self.twice[0].outer.names, 0) if self.twice else {}
        parts = [overlap.outer(**{**zeros, "element": number}) for overlap in self.twice]
        return sum(part[0] for part in parts if part is not None), number

    # --- parts --------------------------------------------------------------------------------

    def _parts(self, tile: frag.TileType, given: Sequence[Sequence[SSAValue]]) -> list[Part]:
        """What this lane has of every row, in the order of the dimension."""
        along, columns = self.along, list(given)
        if self.places:
            columns.append(self.lanes.places(tile, along))
        rows: dict[tuple[int, ...], dict[int, int]] = {}
        points = self.lanes.points_of(tile)
        for number in sorted(range(len(points)), key=self._part_of):
            point = points[number]
            row = rows.setdefault(point[:along] + point[along + 1 :], {})
            row.setdefault(point[along], number)
        order = [point[:along] + point[along + 1 :] for point in points]
        if len(points) == sum(map(len, rows.values())) or len(tile.shape) == 1:
            order = list(dict.fromkeys(order))
        else:  # a lane has elements twice, and so has the result
            layout = reduced(tile.resolve(), tile.resolve().dims[along])
            order = [point for point in points_of(layout)[0][0] if point is not None]
        ordered = [[number for _, number in sorted(rows[row].items())] for row in order]
        return [
            tuple(
                self.combining.vector([column[row[step]] for row in ordered]) for column in columns
            )
            for step in range(len(ordered[0]))
        ]

    def _between_lanes(self, part: Part, masks: Sequence[int]) -> Part:
        """All that lanes have of each row, which are the same operations whoever does them."""
        rows = ptx.length(part[0].type)
        words = all(ptx.bits(vector.type) == REGISTER for vector in part)
        # a region may give another result the other way round: there the lower lane stands first
        either_way = type(self.combining) is Combining
        pairs = exchange(rows, len(masks)).pairs if words and either_way else ()
        combining = self.combining
        if not pairs or not pairs[0]:
            for mask in masks:
                part = combining.between_lanes(part, mask)
            return part
        held = list(zip(*(split(self.ar, vector, 1) for vector in part), strict=True))
        # of each row held, whose it may be: (row, this lane's bits then)
        owners = [[(row, 0)] for row in range(rows)]
        shared = [0] * rows
        for mask, half in zip(masks, pairs, strict=True):
            found: list[Part] = []
            if half:
                low, high = self._join_rows(held[:half]), self._join_rows(held[half : 2 * half])
                upper = self.ar.splat(self._in_upper(mask), half)
                mine = combining.select(upper, high, low)
                theirs = combining.select(upper, low, high)
                found += self._split_rows(combining(mine, combining.of_lane(theirs, mask)))
            if rest := held[2 * half :]:
                left = self._join_rows(rest)
                found += self._split_rows(combining(left, combining.of_lane(left, mask)))
            owners = [
                *(
                    first + [(row, bits | mask) for row, bits in second]
                    for first, second in zip(owners[:half], owners[half : 2 * half], strict=True)
                ),
                *owners[2 * half :],
            ]
            shared = [
                *(shared[i] | shared[i + half] | mask for i in range(half)),
                *shared[2 * half :],
            ]
            held = found
        return self._fetch(held, owners, shared, rows)

    def _fetch(
        self,
        held: Sequence[Part],
        owners: Sequence[Sequence[tuple[int, int]]],
        shared: Sequence[int],
        rows: int,
    ) -> Part:
        """Every row from a lane that has it: of those that differ in `shared`, that of its bits."""
        sources: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for place, (whose, mask) in enumerate(zip(owners, shared, strict=True)):
            for row, bits in whose:
                sources.setdefault((mask, bits), []).append((row, place))
        found: dict[int, Part] = {}
        for (mask, bits), places in sources.items():
            wanted = self._join_rows([held[place] for _, place in places])
            if mask:
                lane = self.ar.constant(bits)
                wanted = tuple(
                    self.lanes.insert(ptx.ShuffleOp(vector, lane, WARP - 1 & ~mask)).result
                    for vector in wanted
                )
            for (row, _), scalars in zip(places, self._split_rows(wanted), strict=True):
                found[row] = scalars
        return self._join_rows([found[row] for row in range(rows)])

    def _join_rows(self, scalars: Sequence[Part]) -> Part:
        """Rows one by one as vectors."""
        return tuple(self.combining.vector(column) for column in zip(*scalars, strict=True))

    def _split_rows(self, part: Part) -> list[Part]:
        return list(zip(*(split(self.ar, vector, 1) for vector in part), strict=True))

    def _in_upper(self, mask: int) -> SSAValue:
        """Whether this lane's number has the bit."""
        lane = self.lanes.state.hardware.axis("lane")
        found = self.ar.compare("ne", self.ar.and_(lane, mask), 0)
        assert isinstance(found, SSAValue)
        return found

    def _of_warps(self, tile: frag.TileType, part: Part, count: int) -> list[Part]:
        """The parts that warps have of this lane's rows."""
        layout = tile.resolve()
        along = self.along
        shape = (count, *tile.shape[:along], *tile.shape[along + 1 :])
        own, every = map(frag.ExplicitLayoutAttr, by_warps(layout, layout.dims[along]))
        columns: list[list[SSAValue]] = []
        for vector in part:
            element = ptx.scalar_type(vector.type)
            mine, all_ = (frag.TileType(shape, element, attribute) for attribute in (own, every))
            columns.append(self.lanes.convert(mine, all_, split(self.ar, vector, 1)))
        rows = len(columns[0]) // count
        return [
            tuple(self.combining.vector(column[first : first + rows]) for column in columns)
            for first in range(0, rows * count, rows)
        ]

    def _tree(self, parts: Sequence[Part], *, in_order: bool = False) -> Part:
        """All of them combined, neighbours first."""
        level = list(parts)
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            rest = level[-1:] if len(level) % 2 else []
            level = [self.combining(*pair, in_order=in_order) for pair in pairs] + rest
        return level[0]


# -- told ------------------------------------------------------------------------------------------
# What one of those who hold an element alike knows of it, told to the others.


class _OfOne(ScratchAccess):
    """Elements that the first of their holders writes."""

    holders = Holders()

    def _predicate(self, first: int) -> Predicate:
        return self.hardware.speaks(self.holders, first)


def told_to_all(
    lanes: Lanes,
    tile: frag.TileType,
    held: Sequence[SSAValue],
    holders: Holders,
) -> list[SSAValue]:
    """The elements of a tile in every lane that holds them, from those that the first of their
    holders has: through shared memory.
    """
    state, ar = lanes.state, lanes.arithmetic
    with state.scratch.passage(ScratchAccess.bytes_of(tile), state.scratch.whole):
        writing = _OfOne(state, tile)
        writing.holders = holders
        chunk = tile.chunk
        writing.store_parts(
            [
                ar.insert(ptx.PackOp(held[first : first + chunk])).result
                for first in range(0, len(held), chunk)
            ]
        )
        ar.insert(state.scratch.whole.barrier())
        loaded = ScratchAccess(state, tile).load()
    return [x for part in loaded for x in split(ar, part, 1)]
