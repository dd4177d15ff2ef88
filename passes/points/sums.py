"""What operations reduce: element after element, many at a time, or by tensor cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Region, SSAValue, TypedAttribute

from fragir.dialects import frag
from fragir.dialects.frag.types import tile_of
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.passes.generics.combining import RowCombining, combining_of, neutral
from fragir.passes.points.accesses import AxisPlaces, PlaceAccesses
from fragir.passes.points.bodies import BodyWriter
from fragir.passes.points.space import LoopExtents
from fragir.passes.points.tile_values import (
    INDEX,
    Axes,
    Insert,
    Place,
    Size,
    TileValue,
    ValueBuilder,
)
from fragir.passes.points.ways import COLUMNS, DEPTH, ROWS, SumWay, deep_loops, reduced_loops

Structured = LinalgStructuredOperation
Loops = Sequence[Place | None]


class SummingKernel(Protocol):
    """What reductions need of the kernel."""

    build: ValueBuilder
    accesses: PlaceAccesses

    def operand(
        self, op: Structured, number: int, loops: Sequence[Place], order: Axes
    ) -> TileValue:
        """The elements of an operand at places."""
        ...

    def is_computed(self, op: Structured, number: int) -> bool:
        """Whether the kernel computes an operand."""
        ...

    def body(
        self,
        op: Structured,
        loops: Sequence[Place],
        order: Axes,
        known: dict[SSAValue, TileValue] | None = None,
        accumulator: SSAValue | None = None,
    ) -> BodyWriter:
        """An operation's body at places."""
        ...

    def split(self, linear: Place, sizes: Sequence[Size]) -> list[Place]:
        """Where along several loops a place is that counts them through."""
        ...


class SumWriter:
    """Writes reductions into a kernel."""

    def __init__(self, kernel: SummingKernel):
        self._kernel, self._build = kernel, kernel.build

    def outputs(self, op: Structured, way: SumWay, loops: Loops, order: Axes) -> list[TileValue]:
        """What an operation reduces to, at places along its other loops."""
        if way is SumWay.SERIAL:
            return self._serial(op, loops, order)
        if way is SumWay.DEEP:
            return [self._deep(op, loops, order)]
        return [self._multiplied(op, loops, order)]

    # --- ways ---------------------------------------------------------------------------------

    def _serial(self, op: Structured, loops: Loops, order: Axes) -> list[TileValue]:
        """The body's results again and again, from what the outputs hold at first."""
        first = len(op.inputs)
        arguments = op.body.block.args[first:]
        starts = [self._start(op, first + at, loops, order) for at in range(len(arguments))]
        end = op.body.block.last_op
        assert end is not None

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            known: dict[SSAValue, TileValue] = dict(zip(arguments, held, strict=True))
            alone = arguments[0] if len(arguments) == 1 else None
            body = self._kernel.body(op, _filled(loops, op, places), order, known, alone)
            return [self._build.wide(body.value(value, order), order) for value in end.operands]

        return self._nest(self._sizes(op, reduced_loops(op)), starts, turn)

    def _deep(self, op: Structured, loops: Loops, order: Axes) -> TileValue:
        """Tiles of what is reduced, added up; then what each row of them sums to."""
        build, combining = self._build, combining_of(op)
        assert combining is not None
        inner, old = (*order, DEPTH), op.body.block.args[-1]
        end = op.body.block.last_op
        assert end is not None
        start = neutral(combining.kind, old.type)
        assert start is not None
        nothing = TileValue(build.put(_constant(start)))

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            known: dict[SSAValue, TileValue] = {old: held[0]}
            body = self._kernel.body(op, _filled(loops, op, places), inner, known, old)
            made = build.wide(body.value(end.operands[0], inner), inner)
            return [self._chosen(made, held[0], inner)]

        (held,) = self._reduced(op, SumWay.DEEP, [build.wide(nothing, inner)], turn)
        reduced = frag.ReduceOp(combining.kind, len(order), held.value)
        name = op.outputs[0].name_hint
        found = TileValue(build.put(reduced, name), order)
        before = self._kernel.operand(op, len(op.inputs), _filled(loops, op, []), order)
        owner = before.value.owner
        if isinstance(owner, arith.ConstantOp) and owner.value == start:
            return found
        return self._combined(combining, found, before, order)

    def _multiplied(self, op: Structured, loops: Loops, order: Axes) -> TileValue:
        """Products of tiles."""
        build = self._build
        first = 0 if self._lies_along(op, 0, loops, ROWS) else 1
        ways = ((first, (ROWS, DEPTH)), (1 - first, (DEPTH, COLUMNS)))

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            factors: list[SSAValue] = []
            for number, axes in ways:
                tile = self._kernel.operand(op, number, _filled(loops, op, places), axes)
                tile = build.wide(tile, axes)
                if self._kernel.is_computed(op, number):
                    zero = neutral("add", op.body.block.args[number].type)
                    assert zero is not None
                    nothing = TileValue(build.put(_constant(zero)))
                    tile = self._chosen(tile, nothing, axes)
                factors.append(tile.value)
            return [TileValue(build.put(frag.MmaOp(factors[0], factors[1], held[0].value)), order)]

        start = self._start(op, len(op.inputs), loops, order)
        return self._reduced(op, SumWay.TENSOR_CORES, [start], turn)[0]

    # --- parts --------------------------------------------------------------------------------

    def _start(self, op: Structured, number: int, loops: Loops, order: Axes) -> TileValue:
        """What an output holds at first, as a whole tile."""
        tile = self._kernel.operand(op, number, _filled(loops, op, []), order)
        return self._build.wide(tile, order)

    def _sizes(self, op: Structured, loops: Sequence[int]) -> list[Size]:
        extents = LoopExtents(op)
        return [extents.size(loop, self._build) for loop in loops]

    def _lies_along(self, op: Structured, number: int, loops: Loops, axis: int) -> bool:
        """Whether an operand depends on loops along an axis."""
        own = maps_of(op)[number].used_dims()
        places = [loops[loop] for loop in own]
        return any(isinstance(place, TileValue) and axis in place.axes for place in places)

    def _chosen(self, made: TileValue, other: TileValue, axes: Axes) -> TileValue:
        """A tile; where it is behind the end of what is reduced, another one."""
        inside = self._kernel.accesses.inside(DEPTH)
        if inside is None:
            return made

        def chosen(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            return insert(arith.SelectOp(*x))

        element = tile_of(made.value).element_type
        return self._build.map([inside, made, other], axes, element, chosen)

    def _combined(
        self, combining: RowCombining, found: TileValue, before: TileValue, order: Axes
    ) -> TileValue:
        """What was reduced, and what the output held before."""
        element = combining.op.results[0].type

        def both(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            return insert(
                combining.op.create(
                    operands=x, result_types=[element], properties=dict(combining.op.properties)
                )
            )

        return self._build.map([before, found], order, element, both)

    # --- loops --------------------------------------------------------------------------------

    def _reduced(
        self, op: Structured, way: SumWay, starts: Sequence[TileValue], turn: Turn
    ) -> list[TileValue]:
        """Loops over all that an operation reduces."""
        sizes = self._sizes(op, reduced_loops(op))
        return self.through(sizes, deep_loops(op, way), starts, turn)

    def through(
        self, sizes: Sequence[Size], count: int, starts: Sequence[TileValue], turn: Turn
    ) -> list[TileValue]:
        """Loops of some sizes, the last `count` of them together in steps of a tile."""
        build, accesses = self._build, self._kernel.accesses
        outer, inner = sizes[: len(sizes) - count], sizes[len(sizes) - count :]
        total, step = build.product(inner), build.sizes[DEPTH]
        accesses.exact[DEPTH] = isinstance(total, int) and total % step == 0

        def turns(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            def along(first: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
                start = first[0] if isinstance(first[0], int) else first[0].value
                linear = build.counted(DEPTH, start)
                own = self._kernel.split(linear, inner)
                accesses.axes[DEPTH] = AxisPlaces(start, tuple(own), linear, total)
                return turn([*places, *own], held)

            return self._nest([total], held, along, step)

        found = self._nest(outer, starts, turns)
        accesses.axes.pop(DEPTH, None)
        return found

    def _nest(
        self, sizes: Sequence[Size], starts: Sequence[TileValue], turn: Turn, step: int = 1
    ) -> list[TileValue]:
        """Loops in loops that hand on tiles."""
        return self._loops(list(sizes), [], starts, turn, step)

    def _loops(
        self,
        sizes: list[Size],
        places: list[Place],
        held: Sequence[TileValue],
        turn: Turn,
        step: int,
    ) -> list[TileValue]:
        if not sizes:
            return turn(places, held)
        size, *rest = sizes
        if isinstance(size, int) and 0 < size <= step:
            return self._loops(rest, [*places, 0], held, turn, step)
        build = self._build
        types = [tile.value.type for tile in held]
        body = Block(arg_types=[INDEX, *types])
        for tile, argument in zip(held, body.args[1:], strict=True):
            argument.name_hint = tile.value.name_hint
        inner = [TileValue(x, t.axes) for x, t in zip(body.args[1:], held, strict=True)]
        first, end, by = build.constant(0), build.index(_place(size)), build.constant(step)
        with build.inside(body):
            at = [*places, TileValue(body.args[0])]
            found = self._loops(rest, at, inner, turn, step)
            build.add(scf.YieldOp(*[tile.value for tile in found]))
        loop = scf.ForOp(first, end, by, [tile.value for tile in held], Region(body))
        build.add(loop)
        return [TileValue(x, tile.axes) for x, tile in zip(loop.results, held, strict=True)]


Turn = Callable[[Sequence[Place], Sequence[TileValue]], list[TileValue]]


def _constant(number: TypedAttribute) -> arith.ConstantOp:
    return arith.ConstantOp(cast("FloatAttr", number))


def _place(size: Size) -> Place:
    return size if isinstance(size, int) else TileValue(size)


def _filled(loops: Loops, op: Structured, places: Sequence[Place]) -> list[Place]:
    """Places along all loops, those that are reduced at some places, or at 0."""
    found = [0 if place is None else place for place in loops]
    for loop, place in zip(reduced_loops(op), places, strict=False):
        found[loop] = place
    return found
