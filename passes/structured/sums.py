"""What operations reduce: which way, in tiles of which shape, and how that is written.

Element after element, many at a time, or by tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from itertools import takewhile
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Region, SSAValue, TypedAttribute
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.exceptions import PassFailedException

from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.reductions import problem as combination_problem
from fragir.dialects.frag.types import tile_of
from fragir.dialects.linalg.generic_text import dims_of, maps_of
from fragir.dialects.shorthands import integers, is_memref
from fragir.errors import FragirError
from fragir.isa.model import FLOAT8
from fragir.mlir.diagnostics import trial
from fragir.passes.structured.accesses import AxisPlaces, PlaceAccesses
from fragir.passes.structured.bodies import (
    BodyWriter,
    RowCombining,
    choice_of,
    combining_of,
    neutral,
)
from fragir.passes.structured.loops import MOST, LoopExtents, Reads, tile_size
from fragir.passes.structured.products import Body, accumulator
from fragir.passes.structured.values import (
    COLUMNS,
    DEPTH,
    INDEX,
    ROWS,
    Axes,
    Insert,
    Place,
    Size,
    TileValue,
    ValueBuilder,
    place_of_size,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import DenseArrayBase

ELEMENTS = 2048
"""Of a tile that others are added to, in registers: sixteen a lane of four warps."""
BLOCKS = 128
"""Tiles become smaller where there are fewer, down to two elements a thread."""
LEAST = 256
LARGE = 128
"""Rows and columns of a tile that tensor cores multiply, where there are many."""
WIDE, SECTOR = 128, 256
"""Sums beside each other in memory that a tile has at most; bits of a sector, which it fills."""
DEPTH_OF_REGISTERS, LEAST_DEPTH = 16, 8
"""How many steps are written behind each other where lanes multiply what they read in shared
memory, and for how few that is worth it."""
WINDOW = 32
"""Elements side by side from which on lanes lie along them."""
DEEPEST = 1024
"""How much of what is reduced a tile has, at most."""
Structured = LinalgStructuredOperation


class SumWay(Enum):
    """How an operation reduces."""

    NONE = "it does not"
    SERIAL = "element after element"
    DEEP = "tiles of elements, and what they sum to at the end"
    TENSOR_CORES = "tensor cores"
    WARPGROUPS = "tensor cores, by warpgroups"
    REGISTERS = "products of what lanes read in shared memory, element after element"


def reduced_loops(op: Structured) -> list[int]:
    """The loops that no output has."""
    kept = set[int]().union(*(m.used_dims() for m in maps_of(op)[len(op.inputs) :]))
    return [loop for loop in range(maps_of(op)[0].num_dims) if loop not in kept]


def is_product(reads: Mapping[int, Reads]) -> bool:
    """Whether results lie along loops of one input, and along those of another one."""
    every = frozenset[int]().union(*reads.values())
    return len({one for one in reads.values() if one and one != every}) > 1


def way_of(op: Structured | None, reads: Mapping[int, Reads], target: str) -> SumWay:
    """The way of an operation whose results lie along loops that these inputs depend on."""
    if op is None:
        return SumWay.NONE
    if is_product(reads):
        if multiplied_elements(op, target) is not None:
            return SumWay.TENSOR_CORES
        return SumWay.REGISTERS if is_staged(op) else SumWay.SERIAL
    deep = can_be_deep(op) and (_lies_along(op) or lies_across(op))
    return SumWay.DEEP if deep else SumWay.SERIAL


def is_staged(op: Structured) -> bool:
    """Whether what is no product of tensor cores may go through shared memory: of what two
    memories hold, element after element, enough of it."""
    inside = [one for one in op.body.block.ops if isinstance(one, ops.IndexOp | memref.LoadOp)]
    if len(op.inputs) != 2 or len(op.outputs) != 1 or inside or piece_of(op) is not None:
        return False
    deep = _is_long(op, reduced_loops(op), LEAST_DEPTH)
    held = all(is_memref(value.type) for value in op.operands)
    return deep and held and all(8 <= element_bits(x.type) <= 64 for x in op.body.block.args)


def can_be_deep(op: Structured) -> bool:
    """Whether parts of what is reduced can be combined, and there is a number to start from."""
    found = combining_of(op)
    if found is None:
        return _is_choice(op)
    element = op.body.block.args[-1].type
    return combination_problem(found.kind, element) is None and (
        neutral(found.kind, element) is not None
    )


def _is_choice(op: Structured) -> bool:
    """Whether it finds the best number and its place, which can be counted."""
    choice, loops = choice_of(op), reduced_loops(op)
    if choice is None:
        return False
    extents = LoopExtents(op)
    inner = [extents.static(loop) for loop in loops[1:]]
    best = op.body.block.args[len(op.inputs) + choice.value].type
    fits = element_name(best) in ("f16", "bf16", "f32", "f64", "s32")
    return fits and None not in inner and prod(size or 1 for size in inner) < MOST


def _lies_along(op: Structured) -> bool:
    """Whether neighbours in memory are reduced to one, of the inputs that have most loops. Windows,
    of which each shares neighbours with the next, count where they are long."""
    reduced, maps = set(reduced_loops(op)), _maps_read(op)
    most = max((len(map_.used_dims()) for map_ in maps), default=0)
    for map_ in maps:
        if len(map_.used_dims()) < most:
            continue
        last = map_.results[-1].used_dims() if map_.results else set[int]()
        own = last & reduced
        if own and (last <= reduced or _is_long(op, own, WINDOW)):
            return True
    return False


def _is_long(op: Structured, loops: Iterable[int], least: int) -> bool:
    """Whether loops have so many turns together, as far as types say."""
    extents = LoopExtents(op)
    sizes = [extents.static(loop) for loop in loops]
    return None in sizes or prod(size or 1 for size in sizes) >= least


def _maps_read(op: Structured) -> list[AffineMap]:
    """Where the inputs lie that the body reads."""
    arguments = zip(maps_of(op), op.inputs, op.body.block.args, strict=False)
    return [map_ for map_, _, argument in arguments if argument.uses]


def columns_of_windows(op: Structured) -> int | None:
    """How many of the last loops along which results lie are the last dimensions of what is read by
    windows: none where these lie along memory. None where nothing is read so."""
    maps = _maps_read(op)
    kept = dims_of(maps_of(op)[len(op.inputs)])
    if kept is None or all(isinstance(e, AffineDimExpr) for map_ in maps for e in map_.results):
        return None
    return min(_last_in_common(map_, kept) for map_ in maps)


def _last_in_common(map_: AffineMap, kept: Sequence[int]) -> int:
    """How many of its last dimensions are the last ones of these loops."""
    pairs = zip(reversed(map_.results), reversed(kept), strict=False)
    alike = (isinstance(e, AffineDimExpr) and e.position == loop for e, loop in pairs)
    return sum(1 for _ in takewhile(bool, alike))


def lies_across(op: Structured) -> int:
    """How many of the last loops along which results lie are the last dimensions of what is
    reduced, of the inputs that have most loops: neighbours in memory belong to sums beside each
    other. 0 where neighbours are reduced to one."""
    kept = dims_of(maps_of(op)[len(op.inputs)])
    if kept is None:
        return 0
    maps = maps_of(op)[: len(op.inputs)]
    most = max((len(m.used_dims()) for m in maps), default=0)
    found: list[int] = []
    for map_ in maps:
        if len(map_.used_dims()) < most or not map_.used_dims() - set(kept):
            continue
        short = dims_of(map_) is None and not _is_long(op, reduced_loops(op), ELEMENTS // 2)
        found.append(0 if short else _last_in_common(map_, kept))
    return min(found, default=0)


def multiplied_elements(op: Structured, target: str) -> tuple[Attribute, Attribute] | None:
    """The element types of a sum of products that tensor cores know; else None."""
    if len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    try:
        with trial():
            body = Body(op)
            x, y, _ = op.body.block.args
            elements = body.element(x), body.element(y)
            if accumulator(op, body, list(elements)) != body.total:
                return None
    except (FragirError, PassFailedException):
        return None
    narrow = element_name(x.type) in FLOAT8 and int("".join(filter(str.isdigit, target))) < 89
    return None if narrow or elements != (x.type, y.type) else elements


def shape_tiles(
    way: SumWay, op: Structured | None, totals: Mapping[int, Size], depth: Size, outer: int = 0
) -> dict[int, int]:
    """How many places a tile has along each axis.

    `outer`: how many blocks there are for each tile where sums lie beside each other in memory; 0
    where they do not.
    """
    rows, columns = totals.get(ROWS), totals[COLUMNS]
    if way is SumWay.DEEP and outer:
        assert op is not None
        wide, narrow = tile_size(columns, WIDE), SECTOR // element_bits(op.body.block.args[0].type)
        while wide > narrow and outer * tiles_of(columns, wide) < 2 * BLOCKS:
            wide //= 2
        return {COLUMNS: wide, DEPTH: tile_size(depth, 2 * ELEMENTS // wide, 128 // wide)}
    if way is SumWay.DEEP:
        across = tile_size(depth, DEEPEST, 32) if isinstance(depth, int) else 256
        high = tile_size(columns, max(1, ELEMENTS // across))
        while high > 1 and tiles_of(columns, high) < BLOCKS:
            high //= 2
        if high == 1:
            across = tile_size(depth, 2 * ELEMENTS, 128)
        return {COLUMNS: high, DEPTH: across}
    if rows is None:
        return {COLUMNS: _enough(tile_size(columns, ELEMENTS // 2, 32), columns, 128)}
    most = 2 * ELEMENTS if way is SumWay.SERIAL else ELEMENTS
    wide = tile_size(columns, 64)
    high = tile_size(rows, min(256, most // wide))
    wide = tile_size(columns, min(256, most // high))
    while wide * high > LEAST and tiles_of(rows, high) * tiles_of(columns, wide) < BLOCKS:
        wide, high = (wide // 2, high) if wide > high else (wide, high // 2)
    return {ROWS: high, COLUMNS: wide}


def depth_of_products(op: Structured, way: SumWay) -> int:
    """How many products a step of a loop adds."""
    deep = 512 // max(element_bits(argument.type) for argument in op.body.block.args[:2])
    if way is SumWay.WARPGROUPS:
        return 2 * deep
    return min(deep, DEPTH_OF_REGISTERS) if way is SumWay.REGISTERS else deep


def _enough(tile: int, total: Size, least: int) -> int:
    while tile > least and tiles_of(total, tile) < BLOCKS:
        tile //= 2
    return tile


def tiles_of(total: Size, tile: int) -> int:
    """How many tiles there are, as many as fill a machine where that is not known."""
    return -(-total // tile) if isinstance(total, int) else BLOCKS


def deep_loops(op: Structured, way: SumWay) -> int:
    """How many of the last loops that are reduced a tile lies along."""
    extents = LoopExtents(op)
    static = [extents.static(loop) for loop in reduced_loops(op)]
    count = together(
        static, wanted := DEEPEST if way is SumWay.DEEP else depth_of_products(op, way)
    )
    if way is SumWay.REGISTERS and prod(size or 1 for size in static[-count:]) % (wanted // 2):
        while count < len(static) and None not in static[-count - 1 :]:
            count += 1  # a short turn costs as much as a whole one: one at the end of all
    return count


def together(static: Sequence[int | None], wanted: int) -> int:
    """How many of the last loops a tile lies along: enough of those of known size, one in any case.

    `static`: how far they run.
    """
    total, count = 1, 0
    for size in reversed(static):
        if count and (size is None or total >= wanted):
            break
        count += 1
        if size is None:
            break
        total *= size
    return count


PIECE = "frag.piece_of"
"""Of a reduction, [loop, other]: a turn of the first loop reduces a piece of the second, of which
there are as many pieces as the first has turns."""


def piece_of(op: Structured) -> tuple[int, int] | None:
    """The loop that counts the pieces of another one that a reduction is of, and that one."""
    numbers = op.attributes.get(PIECE)
    if numbers is None:
        return None
    loop, other = integers(cast("DenseArrayBase[Any]", numbers))
    return loop, other


class Range(NamedTuple):
    """Of a loop: from where to where it runs, and ahead of which place it ends in any case."""

    first: Size
    end: Size


Loops = Sequence[Place | None]


class SummingKernel(Protocol):
    """What reductions need of the kernel."""

    build: ValueBuilder
    accesses: PlaceAccesses
    top: Block
    """What stands ahead of all loops."""

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

    def __init__(self, kernel: SummingKernel, across: bool):
        """`across`: whether sums lie beside each other in memory."""
        self._kernel, self._build, self._across = kernel, kernel.build, across

    def inside(self, order: Axes) -> Axes:
        """The axes of a tile of what is reduced, the last along memory."""
        return (DEPTH, *order) if self._across else (*order, DEPTH)

    def outputs(self, op: Structured, way: SumWay, loops: Loops, order: Axes) -> list[TileValue]:
        """What an operation reduces to, at places along its other loops."""
        if way is SumWay.SERIAL:
            return self._serial(op, loops, order)
        return [self._deep(op, loops, order)]

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
            body = self._kernel.body(op, places_along(loops, op, places), order, known, alone)
            return [self._build.widen(body.value(value, order), order) for value in end.operands]

        sizes, piece = self._sizes(op, reduced_loops(op)), self._piece(op, loops)
        return self._nest(sizes, starts, turn, piece=piece)

    def _deep(self, op: Structured, loops: Loops, order: Axes) -> TileValue:
        """Tiles of what is reduced, added up; then what each row of them sums to."""
        build, combining = self._build, combining_of(op)
        assert combining is not None
        inner, old = self.inside(order), op.body.block.args[-1]
        end = op.body.block.last_op
        assert end is not None
        start = neutral(combining.kind, old.type)
        assert start is not None
        nothing = constant_tile(build, start)

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            known: dict[SSAValue, TileValue] = {old: held[0]}
            body = self._kernel.body(op, places_along(loops, op, places), inner, known, old)
            made = build.widen(body.value(end.operands[0], inner), inner)
            return [self._choose(made, held[0], inner)]

        (held,) = self._reduce(op, SumWay.DEEP, loops, [build.widen(nothing, inner)], turn)
        reduced = frag.ReduceOp(combining.kind, inner.index(DEPTH), held.value)
        name = op.outputs[0].name_hint
        found = TileValue(build.put(reduced, name), order)
        before = self._kernel.operand(op, len(op.inputs), places_along(loops, op, []), order)
        owner = before.value.owner
        if isinstance(owner, arith.ConstantOp) and owner.value == start:
            return found
        return self._combine(combining, found, before, order)

    # --- parts --------------------------------------------------------------------------------

    def _start(self, op: Structured, number: int, loops: Loops, order: Axes) -> TileValue:
        """What an output holds at first, as a whole tile."""
        tile = self._kernel.operand(op, number, places_along(loops, op, []), order)
        return self._build.widen(tile, order)

    def _sizes(self, op: Structured, loops: Sequence[int]) -> list[Size]:
        extents = LoopExtents(op)
        return [extents.size(loop, self._build) for loop in loops]

    def _lies_along(self, op: Structured, number: int, loops: Loops, axis: int) -> bool:
        """Whether an operand depends on loops along an axis."""
        own = maps_of(op)[number].used_dims()
        places = [loops[loop] for loop in own]
        return any(isinstance(place, TileValue) and axis in place.axes for place in places)

    def _choose(self, made: TileValue, other: TileValue, axes: Axes) -> TileValue:
        """A tile; where it is behind the end of what is reduced, another one."""
        inside = self._kernel.accesses.inside(DEPTH)
        if inside is None:
            return made

        def chosen(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            return insert(arith.SelectOp(*x))

        element = tile_of(made.value).element_type
        return self._build.map([inside, made, other], axes, element, chosen)

    def _combine(
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

    def _reduce(
        self, op: Structured, way: SumWay, loops: Loops, starts: Sequence[TileValue], turn: Turn
    ) -> list[TileValue]:
        """Loops over all that an operation reduces, at places along its other loops."""
        sizes = self._sizes(op, reduced_loops(op))
        return self.through(sizes, deep_loops(op, way), starts, turn, self._piece(op, loops))

    def _piece(self, op: Structured, loops: Loops) -> Range | None:
        """Which turns of the first loop that is reduced are this kernel's; None for all."""
        part = piece_of(op)
        if part is None:
            return None
        build, extents = self._build, LoopExtents(op)
        assert part[1] == reduced_loops(op)[0]
        size, count = (extents.size(loop, build) for loop in reversed(part))
        each, number = build.ceil_divided(size, count), loops[part[0]]
        assert isinstance(number, TileValue)
        assert not number.axes
        first = build.product([each, number.value])
        return Range(first, build.smaller(build.sum(first, each), size))

    def through(
        self,
        sizes: Sequence[Size],
        count: int,
        starts: Sequence[TileValue],
        turn: Turn,
        piece: Range | None = None,
    ) -> list[TileValue]:
        """Loops of some sizes, the last `count` of them together in steps of a tile; `piece`: those
        turns of the first one."""
        build, accesses = self._build, self._kernel.accesses
        outer, inner = sizes[: len(sizes) - count], sizes[len(sizes) - count :]
        total, step = build.product(inner), build.sizes[DEPTH]
        deep: Range | None = None
        if piece is not None and not outer:
            deep = Range(*(build.product([each, *inner[1:]]) for each in piece))
        accesses.exact[DEPTH] = deep is None and isinstance(total, int) and total % step == 0

        def turns(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            def along(first: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
                start = first[0] if isinstance(first[0], int) else first[0].value
                linear = build.counting_place(DEPTH, start)
                own = self._kernel.split(linear, inner)
                end = total if deep is None else deep.end
                accesses.axes[DEPTH] = AxisPlaces(start, tuple(own), tuple(inner), linear, end)
                return turn([*places, *own], held)

            return self._nest([total], held, along, step, deep)

        found = self._nest(outer, starts, turns, piece=piece if outer else None)
        accesses.axes.pop(DEPTH, None)
        return found

    def _nest(
        self,
        sizes: Sequence[Size],
        starts: Sequence[TileValue],
        turn: Turn,
        step: int = 1,
        piece: Range | None = None,
    ) -> list[TileValue]:
        """Loops in loops that hand on tiles; `piece`: those turns of the first one."""
        return self._loops(list(sizes), [], starts, turn, step, piece)

    def _loops(
        self,
        sizes: list[Size],
        places: list[Place],
        held: Sequence[TileValue],
        turn: Turn,
        step: int,
        piece: Range | None = None,
    ) -> list[TileValue]:
        if not sizes:
            return turn(places, held)
        size, *rest = sizes
        if isinstance(size, int) and 0 < size <= step and piece is None:
            return self._loops(rest, [*places, 0], held, turn, step)
        build = self._build
        types = [tile.value.type for tile in held]
        body = Block(arg_types=[INDEX, *types])
        for tile, argument in zip(held, body.args[1:], strict=True):
            argument.name_hint = tile.value.name_hint
        inner = [TileValue(x, t.axes) for x, t in zip(body.args[1:], held, strict=True)]
        by = build.constant(step)
        first, end = (build.index(place_of_size(each)) for each in piece or (0, size))
        with build.inside(body):
            at = [*places, TileValue(body.args[0])]
            found = self._loops(rest, at, inner, turn, step)
            build.add(scf.YieldOp(*[tile.value for tile in found]))
        loop = scf.ForOp(first, end, by, [tile.value for tile in held], Region(body))
        build.add(loop)
        return [TileValue(x, tile.axes) for x, tile in zip(loop.results, held, strict=True)]


Turn = Callable[[Sequence[Place], Sequence[TileValue]], list[TileValue]]


def constant_tile(build: ValueBuilder, number: TypedAttribute) -> TileValue:
    """A number, for every place."""
    return TileValue(build.put(arith.ConstantOp(cast("FloatAttr", number))))


def places_along(loops: Loops, op: Structured, places: Sequence[Place]) -> list[Place]:
    """Places along all loops, those that are reduced at some places, or at 0."""
    found = [0 if place is None else place for place in loops]
    for loop, place in zip(reduced_loops(op), places, strict=False):
        found[loop] = place
    return found
