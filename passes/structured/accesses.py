"""Memory at places: whole tiles where they lie behind each other in it, else elements.

What lies along an axis of a tile is a loop, or several that are counted through. Memory whose last
dimensions are the loops of an axis, in order, has the axis as one dimension. What bodies assert
holds at all places that lie inside.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from math import prod
from typing import NamedTuple

from xdsl.dialects import arith, cf, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    NoneAttr,
    i1,
    i64,
)
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineDimExpr
from xdsl.ir.affine import AffineBinaryOpKind as Kind

from fragir.dialects import frag
from fragir.dialects.limits import LARGEST_INDEX
from fragir.dialects.shorthands import memref_type
from fragir.passes.structured.bodies import BodyWriter
from fragir.passes.structured.memory import collapsed
from fragir.passes.structured.values import (
    DEPTH,
    I32,
    Axes,
    Insert,
    Place,
    Size,
    TileValue,
    ValueBuilder,
    place_of,
    sum_of,
    union,
)


class AxisPlaces(NamedTuple):
    """Where a tile is along an axis: its first place, and those along each loop, the outermost
    first, and how far these run."""

    first: Size
    loops: tuple[Place, ...]
    sizes: tuple[Size, ...]
    linear: Place
    end: Size


class _Found(NamedTuple):
    """Memory with one dimension for an axis."""

    left: int
    groups: tuple[tuple[int, ...], ...]
    axes: Axes


class PlaceAccesses:
    """Of one kernel: where its tiles are along each axis."""

    def __init__(self, build: ValueBuilder, exact: Mapping[int, bool]):
        self._build = build
        self.exact = dict(exact)
        """Whether all places of a tile along an axis are inside."""
        self.axes: dict[int, AxisPlaces] = {}

    @contextmanager
    def without_depth(self) -> Generator[None]:
        """Outside of the loops in which tiles lie along axes that others do not have."""
        axes, exact = dict(self.axes), dict(self.exact)
        try:
            yield
        finally:
            self.axes, self.exact = axes, exact

    # --- reading ------------------------------------------------------------------------------

    def read(self, memory: SSAValue, places: Sequence[Place], order: Axes, sure: bool) -> TileValue:
        """Elements at places; `sure`: as far as tiles are inside, so are places."""
        axes = union([p.axes for p in places if isinstance(p, TileValue)], order)
        build, name = self._build, memory.name_hint
        if not axes:
            indices = [build.index(place) for place in places]
            return TileValue(build.put(memref.LoadOp.get(memory, indices)), ())
        tile = build.type_of(axes, memref_type(memory.type).element_type)
        masked = not (sure and all(self.exact[axis] for axis in axes))
        # beyond the last of memory's dimensions nothing is read: so their axes need no other test
        for turned in (False, True) if len(axes) == 2 else (False,):
            found = self._block(memory, places, axes[::-1] if turned else axes)
            if found is not None:
                held, indices = self._collapse(memory, places, found)
                load = frag.LoadOp(held, indices, tile, transposed=turned, masked=masked)
                return TileValue(build.put(load, name), axes)
        for turned in (False, True) if len(axes) == 2 else (False,):
            along = axes[::-1] if turned else axes
            rows = self._rows(memory, places, along)
            if rows is None:
                continue
            # what is behind the last row may be another one where rows are counted through
            mask = self.inside(along[0]) if masked else None
            held = build.type_of(along, tile.element_type) if turned else tile
            gather = frag.GatherOp(*rows, held, masked=masked, mask=mask and mask.value)
            found = build.put(gather, name)
            if turned:
                found = build.put(frag.TransposeOp(found, (1, 0)), name)
            return TileValue(found, axes)
        line = self._in_a_line(memory, places, axes) if sure else None
        if line is not None:  # where what is behind an end may be another element
            mask = self._all_inside(axes)
            load = frag.GatherOp(line[0], [self._index(line[1], axes)], tile, mask=mask)
            return TileValue(build.put(load, name), axes)
        where = self.inside(DEPTH) if DEPTH in axes else None
        indices = [self._index(place, axes) for place in places]
        mask = where and build.widen(where, axes)
        load = frag.GatherOp(memory, indices, tile, masked=masked, mask=mask and mask.value)
        return TileValue(build.put(load, name), axes)

    def inside(self, axis: int) -> TileValue | None:
        """Which places along an axis are before its end; None where all are."""
        if self.exact[axis]:
            return None
        build, places = self._build, self.axes[axis]
        assert isinstance(places.linear, TileValue)
        end = places.end
        bound = build.scalar(end if isinstance(end, int) else TileValue(end))

        def less(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            return insert(arith.CmpiOp(x[0], bound, "slt"))

        return build.map([places.linear], (axis,), IntegerType(1), less)

    def _all_inside(self, axes: Axes) -> SSAValue | None:
        """Which places are before the ends of all axes; None where all are."""
        build, found = self._build, [self.inside(axis) for axis in axes]
        tiles = [tile for tile in found if tile is not None]
        if len(tiles) < 2:
            return build.widen(tiles[0], axes).value if tiles else None

        def every(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            return reduce(lambda one, other: insert(arith.AndIOp(one, other)), x)

        return build.map(tiles, axes, IntegerType(1), every).value

    def _index(self, place: Place, axes: Axes) -> int | SSAValue:
        if isinstance(place, int):
            return place
        return self._build.widen(place, axes).value if place.axes else place.value

    # --- writing ------------------------------------------------------------------------------

    def write(self, tile: TileValue, memory: SSAValue, places: Sequence[Place], once: bool) -> None:
        """Stores a tile at the places of its own axes; `once`: each element by one thread."""
        build, axes = self._build, tile.axes
        masked = not all(self.exact[axis] for axis in axes)
        for turned in (False, True) if len(axes) == 2 else (False,):
            found = self._block(memory, places, axes[::-1] if turned else axes)
            if found is not None and not once:
                held, indices = self._collapse(memory, places, found)
                build.add(frag.StoreOp(tile.value, held, indices, transposed=turned, masked=masked))
                return
        if not places:
            memory, places = self._of_one(memory), [0]
        mask: SSAValue | None = None
        if not any(isinstance(place, TileValue) and place.axes for place in places):
            # one number: the tile's first element, at a place that is the same for all
            mask = self._first(axes).value
            same = frag.FillOp(build.scalar(places[0]), build.type_of(axes, I32))
            places = [TileValue(build.put(same), axes), *places[1:]]
        indices = [self._index(place, axes) for place in places]
        build.add(frag.ScatterOp(tile.value, memory, indices, masked=masked, mask=mask))

    def _first(self, axes: Axes) -> TileValue:
        """Which element is the first one along all of these axes."""
        build = self._build
        zero = build.scalar(0)
        counts = [build.counting_place(axis, 0) for axis in axes]

        def first(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            found = [insert(arith.CmpiOp(number, zero, "eq")) for number in x]
            return reduce(lambda one, other: insert(arith.AndIOp(one, other)), found)

        tiles = [count for count in counts if isinstance(count, TileValue)]
        return build.map(tiles, axes, IntegerType(1), first)

    def _of_one(self, memory: SSAValue) -> SSAValue:
        """Memory of one number as an array of one."""
        element = memref_type(memory.type).element_type
        made = memref.ExpandShapeOp.build(
            operands=[memory, []],
            properties={
                "reassociation": ArrayAttr([]),
                "static_output_shape": DenseArrayBase.from_list(i64, [1]),
            },
            result_types=[MemRefType(element, [1])],
        )
        return self._build.put(made, memory.name_hint)

    # --- how memory lies ----------------------------------------------------------------------

    def _block(self, memory: SSAValue, places: Sequence[Place], axes: Axes) -> _Found | None:
        """Memory whose last dimensions are these axes, behind dimensions with one place."""
        found = self._last(memory, places, axes)
        if found is None:
            return None
        rest = places[: found.left]
        return found if not any(isinstance(p, TileValue) and p.axes for p in rest) else None

    def _last(self, memory: SSAValue, places: Sequence[Place], axes: Axes) -> _Found | None:
        """The last dimensions of memory that are these axes."""
        at, shape = len(places), memref_type(memory.type).get_shape()
        groups: list[tuple[int, ...]] = []
        for axis in reversed(axes):
            own = self.axes[axis].loops if axis in self.axes else ()
            if not own or tuple(places[max(0, at - len(own)) : at]) != own:
                return None
            # of a part of memory fewer lie behind each other
            inner = zip(shape[at - len(own) + 1 : at], self.axes[axis].sizes[1:], strict=True)
            if any(size not in (DYNAMIC_INDEX, extent) for size, extent in inner):
                return None
            groups.append(tuple(range(at - len(own), at)))
            at -= len(own)
        if any(len(group) > 1 for group in groups) and not _is_plain(memory):
            return None
        return _Found(at, tuple(reversed(groups)), axes)

    def _collapse(
        self, memory: SSAValue, places: Sequence[Place], found: _Found
    ) -> tuple[SSAValue, list[int | SSAValue]]:
        """Memory with a dimension an axis, and where the tile begins in it."""
        groups = [*((dim,) for dim in range(found.left)), *found.groups]
        leading = [p if isinstance(p, int) else p.value for p in places[: found.left]]
        firsts = [self.axes[axis].first for axis in found.axes]
        return self._with_groups(memory, groups), [*leading, *firsts]

    def _with_groups(self, memory: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
        if all(len(group) == 1 for group in groups):
            return memory
        return self._build.put(collapsed(memory, groups), memory.name_hint)

    def _rows(
        self, memory: SSAValue, places: Sequence[Place], axes: Axes
    ) -> tuple[SSAValue, list[int | SSAValue]] | None:
        """Memory whose last dimensions are the second axis, and what lies before depends on the
        first: as rows, each at an index."""
        if len(axes) != 2:
            return None
        found = self._last(memory, places, axes[1:])
        if found is None or not found.left or not _is_plain(memory):
            return None
        before = places[: found.left]
        rows = [size for size in memref_type(memory.type).get_shape()[: found.left] if size >= 0]
        if prod(rows) > LARGEST_INDEX:  # where dynamic sizes make them so many, a launch is refused
            return None
        if any(isinstance(p, TileValue) and p.axes not in ((), axes[:1]) for p in before):
            return None
        build = self._build
        linear: Place = before[0]
        for dim, place in enumerate(before[1:], start=1):
            linear = self._joined_place(linear, build.dim(memory, dim), place, axes)
        if not isinstance(linear, TileValue) or not linear.axes:
            return None
        held = self._with_groups(memory, [range(found.left), *found.groups])
        return held, [linear.value, self.axes[axes[1]].first]

    def _in_a_line(
        self, memory: SSAValue, places: Sequence[Place], axes: Axes
    ) -> tuple[SSAValue, Place] | None:
        """Memory as one dimension, and where in it, if it is known how far that goes."""
        shape = memref_type(memory.type).get_shape()
        known = min(shape, default=0) > 0 and prod(shape) <= LARGEST_INDEX
        if len(shape) < 2 or not known or not _is_plain(memory):
            return None
        linear = places[0]
        for size, place in zip(shape[1:], places[1:], strict=True):
            linear = self._joined_place(linear, size, place, axes)
        return self._with_groups(memory, [range(len(shape))]), linear

    def _joined_place(self, outer: Place, size: Size, inner: Place, order: Axes) -> Place:
        """outer * size + inner."""
        build, dims = self._build, [AffineDimExpr(at) for at in range(3)]
        every = [p.axes for p in (outer, inner) if isinstance(p, TileValue)]
        axes = union(every, order)
        if not isinstance(size, int):
            linear = AffineBinaryOpExpr(Kind.Mul, dims[0], dims[1]) + dims[2]
            return place_of(build, linear, [outer, TileValue(size), inner], axes)
        # what lanes have is computed where it is known, ahead of loops that only shift it
        (first, high), (second, low) = build.parts(outer), build.parts(inner)
        expressions = dims[0] * size, dims[1]
        tiles = {at: tile for at, tile in enumerate((first, second)) if tile is not None}
        held: TileValue | None = None
        if tiles:
            made = build.ahead(sum_of([expressions[at] for at in tiles]), tiles, axes)
            assert isinstance(made, TileValue)
            held = made
        return build.together(held, build.sum(build.product([high, size]), low))


def _is_plain(memory: SSAValue) -> bool:
    """Whether dimensions lie behind each other."""
    return isinstance(memref_type(memory.type).layout, NoneAttr)


def write_assertions(
    build: ValueBuilder, accesses: PlaceAccesses, block: Block, body: BodyWriter, order: Axes
) -> None:
    """A `frag.assert` for each `cf.assert` of a body; elements beyond the end hold anyway."""
    for op in block.ops:
        if not isinstance(op, cf.AssertOp):
            continue
        condition = body.value(op.arg, order)
        for axis in condition.axes:
            if not accesses.exact[axis]:
                condition = _or_beyond(build, accesses, condition, axis)
        made = frag.AssertOp(condition.value, op.msg.data)
        build.add(made)
        made.location = op.location


def _or_beyond(
    build: ValueBuilder, accesses: PlaceAccesses, condition: TileValue, axis: int
) -> TileValue:
    along = accesses.axes[axis]
    linear, end = along.linear, along.end
    assert isinstance(linear, TileValue)
    last = build.scalar(end if isinstance(end, int) else TileValue(end))

    def either(insert: Insert, elements: Sequence[SSAValue]) -> SSAValue:
        holds, place = elements
        beyond = insert(arith.CmpiOp(place, last, "sge"))
        return insert(arith.OrIOp(holds, beyond))

    return build.map([condition, linear], condition.axes, i1, either)
