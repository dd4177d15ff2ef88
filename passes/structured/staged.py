"""Products through shared memory: of tensor cores, or of registers that each lane has of two sides.

Factors are loaded to registers a turn ahead, on their way to one of two places in shared memory.
So what memory takes for the next turn goes on while this one multiplies, threads meet once a turn,
and factors of any form, gathered, masked or transposed, take the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd
from typing import Any, NamedTuple, cast

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, UnitAttr, i64
from xdsl.dialects.scf import ForOp
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.types import tile_of
from fragir.dialects.shorthands import integers, memref_type
from fragir.isa.products import has_wgmma
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import WARP
from fragir.layout.shared import swizzle_for
from fragir.passes.scopes import WARPGROUPS, WARPS
from fragir.passes.structured.accesses import AxisPlaces
from fragir.passes.structured.best import BestWriter
from fragir.passes.structured.bodies import neutral
from fragir.passes.structured.loops import tile_size
from fragir.passes.structured.sums import (
    BLOCKS,
    LARGE,
    Loops,
    Structured,
    SummingKernel,
    SumWay,
    constant_tile,
    deep_loops,
    depth_of_products,
    places_along,
    reduced_loops,
    shape_tiles,
    tiles_of,
)
from fragir.passes.structured.values import (
    COLUMNS,
    DEPTH,
    ROWS,
    Axes,
    Place,
    Size,
    TileValue,
    place_of_size,
)

LANES = 4, 8
"""Of a warp, along rows and columns of a tile of sums in registers."""
GROUP = 64
"""Rows that a warpgroup multiplies."""
WIDEST = 128
"""Bits of the widest access of a lane."""
PLACES = 2
"""In shared memory for a factor: one is written while others read the other one."""


PRODUCTS = frozenset((SumWay.TENSOR_CORES, SumWay.WARPGROUPS, SumWay.REGISTERS))
"""The ways of products of tiles."""


class ProductTiles(NamedTuple):
    """How a product is computed, and in which tiles."""

    way: SumWay
    sizes: dict[int, int]
    layout: Layout | None = None
    """Of sums in registers."""


def product_tiles(
    way: SumWay,
    op: Structured,
    function: func.FuncOp,
    target: str,
    totals: Mapping[int, Size],
    depth: Callable[[SumWay], Size],
    outer: int,
) -> ProductTiles:
    """The tiles of a product, of which there are `outer` for each of a matrix: by warpgroups where
    tensor cores multiply 16-bit elements in large ones, and not in registers where they are too
    small for these. `depth`: how much is reduced along a tile."""
    sizes = _shape(way, op, totals, depth(way), outer)
    alone = WARPS not in function.attributes
    if way is SumWay.REGISTERS:
        bits = max(element_bits(x.type) for x in op.body.block.args)
        warps = warps_of(function, [way], sizes)
        layout = register_layout((sizes[ROWS], sizes[COLUMNS]), warps, bits)
        # most of a tile would be behind the end of few rows or columns
        few = any(isinstance(x, int) and 2 * x <= sizes[at] for at, x in totals.items())
        if layout is None or few:
            return ProductTiles(SumWay.SERIAL, shape_tiles(SumWay.SERIAL, op, totals, 1))
        return ProductTiles(way, sizes, layout)
    a, b = (element_name(x.type) for x in op.body.block.args[:2])
    large = sizes[ROWS] >= LARGE and sizes[COLUMNS] >= GROUP
    if alone and large and a == b and a in ("f16", "bf16") and has_wgmma(a, target):
        way = SumWay.WARPGROUPS
        sizes = _shape(way, op, totals, depth(way), outer)
    return ProductTiles(way, sizes)


def _shape(
    way: SumWay, op: Structured, totals: Mapping[int, Size], depth: Size, outer: int
) -> dict[int, int]:
    """How many places a tile of a product has along each axis."""
    rows, columns, deep = totals[ROWS], totals[COLUMNS], depth_of_products(op, way)
    high, wide = tile_size(rows, 64, 32), tile_size(columns, 64, 16)
    bits = max(element_bits(x.type) for x in op.body.block.args[:2])
    if way is SumWay.REGISTERS:
        wide = tile_size(columns, 64, 32)
        bits = max(element_bits(x.type) for x in op.body.block.args)
    if bits <= (32 if way is SumWay.REGISTERS else 16):
        # larger ones read less, of as many as fill a GPU
        heights = [LARGE, 2 * LARGE] if way is SumWay.WARPGROUPS else [LARGE]
        for most in heights if isinstance(rows, int) and isinstance(columns, int) else ():
            taller, wider = tile_size(rows, most, high), tile_size(columns, LARGE, wide)
            if outer * tiles_of(rows, taller) * tiles_of(columns, wider) >= 2 * BLOCKS:
                high, wide = taller, wider
    if isinstance(depth, int) and depth % deep and depth % (deep // 2) == 0:
        deep //= 2
    return {ROWS: high, COLUMNS: wide, DEPTH: tile_size(depth, deep, deep // 2)}


def warps_of(
    function: func.FuncOp, ways: Iterable[SumWay], sizes: Mapping[int, int]
) -> tuple[int, int]:
    """Warps along rows and columns of tiles, as the program says, or as suits products."""
    given = function.attributes.get(WARPS)
    if given is not None:
        rows, columns = integers(cast(DenseArrayBase[Any], given))
        return rows, columns
    if not PRODUCTS & set(ways):
        return 4, 1
    return (4, 2) if sizes[ROWS] * sizes[COLUMNS] > LARGE**2 // 2 else (2, 2)


def say_warps(function: func.FuncOp, ways: Iterable[SumWay], sizes: Mapping[int, int]) -> None:
    """Says of how many warps, or warpgroups, a block is."""
    kind, count = WARPS, warps_of(function, ways, sizes)
    if SumWay.WARPGROUPS in ways:
        kind, count = WARPGROUPS, (sizes[ROWS] // GROUP, 1)
    function.attributes[kind] = DenseArrayBase.from_list(i64, count)


def register_layout(shape: tuple[int, int], warps: tuple[int, int], bits: int) -> Layout | None:
    """Where the lanes' sums lie: squares as wide as an access, side by side over lanes, then warps,
    and again as often as a tile has them. None where there are too few.

    A lane reads what it multiplies by few wide accesses, of each eight lanes side by side.
    """
    modes: dict[str, list[Mode]] = {"warp": [], "lane": [], "element": []}
    for dim in (1, 0):
        held, left = divmod(shape[dim], LANES[dim] * warps[dim])
        if left or not held:
            return None
        wide, step = min(held, WIDEST // bits), 1
        sizes = (("element", wide), ("lane", LANES[dim]), ("warp", warps[dim]))
        for axis, size in (*sizes, ("element", held // wide)):
            stride = (0, step) if dim else (step, 0)
            modes[axis].append(Mode(size, stride))
            step *= size
    modes["warp"].reverse()  # the rows' come first
    axes = tuple(Axis(name, tuple(own)) for name, own in modes.items())
    return Layout(axes, ("row", "col")).simplified()


def layout_beside(shape: Sequence[int], warps: int) -> Layout | None:
    """A tile's elements lane beside lane, its last dimension first, then warps, then a lane's own.

    None where there are too few for all threads.
    """
    left, modes = {"lane": WARP, "warp": warps}, dict[str, list[Mode]](lane=[], warp=[], element=[])
    for dim in reversed(range(len(shape))):
        step = 1
        for axis, own in modes.items():
            size = gcd(shape[dim] // step, left.get(axis, shape[dim] // step))
            if size > 1:
                own.append(Mode(size, tuple(step if d == dim else 0 for d in range(len(shape)))))
            if axis in left:
                left[axis] //= size
            step *= size
    if set(left.values()) != {1}:
        return None
    axes = (Axis(name, tuple(own)) for name, own in modes.items())
    return Layout(tuple(axes), ("row", "col")[: len(shape)]).simplified()


Load = Callable[[Sequence[Place]], list[TileValue]]
"""The factors of a turn, from the places along what is reduced."""


class StagedProduct(NamedTuple):
    """A product whose factors go through shared memory."""

    op: Structured
    way: SumWay
    order: Axes
    numbers: tuple[int, int]
    """Which inputs lie along rows, and along columns."""
    load: Load
    turned: tuple[bool, ...] = (False, False)
    """Which factors memory holds the other way round, so that shared memory had better, too."""


class ProductWriter(BestWriter):
    """Writes sums, choices and products into a kernel."""

    def __init__(self, kernel: SummingKernel, across: bool):
        super().__init__(kernel, across)
        self._shared: dict[tuple[Structured, int], SSAValue] = {}

    def outputs(self, op: Structured, way: SumWay, loops: Loops, order: Axes) -> list[TileValue]:
        """What an operation reduces to, at places along its other loops."""
        if way in PRODUCTS:
            return [self._multiply(op, way, loops, order)]
        return super().outputs(op, way, loops, order)

    def _multiply(self, op: Structured, way: SumWay, loops: Loops, order: Axes) -> TileValue:
        """Products of tiles."""
        build = self._build
        first = 0 if self._lies_along(op, 0, loops, ROWS) else 1
        sides = ((first, (ROWS, DEPTH)), (1 - first, (DEPTH, COLUMNS)))

        def load(places: Sequence[Place]) -> list[TileValue]:
            factors: list[TileValue] = []
            for number, axes in sides:
                tile = self._kernel.operand(op, number, places_along(loops, op, places), axes)
                tile = build.widen(tile, axes)
                if way is not SumWay.REGISTERS and self._kernel.is_computed(op, number):
                    zero = neutral("add", op.body.block.args[number].type)
                    assert zero is not None
                    tile = self._choose(tile, constant_tile(build, zero), axes)
                factors.append(tile)
            return factors

        start = self._start(op, len(op.inputs), loops, order)
        narrow = all(element_bits(x.type) in (8, 16) for x in op.body.block.args[:2])
        if way is SumWay.TENSOR_CORES and not narrow:

            def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
                a, b = (factor.value for factor in load(places))
                return [TileValue(build.put(frag.MmaOp(a, b, held[0].value)), order)]

            return self._reduce(op, way, loops, [start], turn)[0]
        return self._in_turns(StagedProduct(op, way, order, (first, 1 - first), load), start)

    # --- turns ------------------------------------------------------------------------------------

    def _in_turns(self, product: StagedProduct, start: TileValue) -> TileValue:
        """The sum of all products. Loops of known size make one loop of turns with those that tiles
        lie along, where these end with whole tiles, or zeros may stand behind the end."""
        build, accesses = self._build, self._kernel.accesses
        sizes = self._sizes(product.op, reduced_loops(product.op))
        count = len(sizes) - deep_loops(product.op, product.way)
        outer, inner = sizes[:count], sizes[count:]
        total, step = build.product(inner), build.sizes[DEPTH]
        exact = accesses.exact[DEPTH] = isinstance(total, int) and total % step == 0
        filled = exact or product.way is not SumWay.REGISTERS
        counted: list[Size] = []
        if filled and all(isinstance(size, int) for size in outer):
            counted, outer = outer, []

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            if places:
                build.add(frag.BarrierOp())  # others may still read what is written now
            return [self._ahead(product, places, counted, inner, held[0])]

        found = self._nest(outer, [start], turn)
        accesses.axes.pop(DEPTH, None)
        return found[0]

    def _ahead(
        self,
        product: StagedProduct,
        before: Sequence[Place],
        counted: Sequence[Size],
        inner: Sequence[Size],
        start: TileValue,
    ) -> TileValue:
        """Turns, of which each loads what the next one multiplies. Where nothing may stand behind
        the end, the last one is shorter."""
        build, accesses = self._build, self._kernel.accesses
        total, step = build.product(inner), build.sizes[DEPTH]
        each = build.ceil_divided(total, step)
        count = build.product([*counted, each])
        whole = count
        short = product.way is SumWay.REGISTERS and not accesses.exact[DEPTH]
        if short:
            whole = build.divided(total, step)
        if count == 0:
            return start

        def factors_of(turn: Size) -> list[TileValue]:
            places = self._kernel.split(place_of_size(turn), [*counted, each])
            if isinstance(turn, int):
                places = list(_digits(turn, [*counted, each]))
            at = places[-1]
            first = build.product([at if isinstance(at, int) else at.value, step])
            linear = build.counting_place(DEPTH, first)
            own = self._kernel.split(linear, inner)
            accesses.axes[DEPTH] = AxisPlaces(first, tuple(own), tuple(inner), linear, total)
            return product.load([*before, *places[:-1], *own])

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            (number,), (sums, *factors) = places, held
            memories = self._put(product, factors, number, count)
            if isinstance(number, TileValue):
                following = build.smaller(build.sum(number.value, 1), build.sum(count, -1))
                factors = factors_of(following)
            elif number + 1 != count:
                factors = factors_of(number + 1)
            return [self._whole(product, memories, sums), *factors]

        held = [start, *factors_of(0)]
        product = product._replace(turned=tuple(is_turned(factor) for factor in held[1:]))
        if whole != 0:
            held = self._nest([whole], held, turn)
            loop = held[0].value.owner
            if isinstance(loop, ForOp):
                loop.attributes[ptx.NO_UNROLL] = UnitAttr()  # a turn is long enough
        if not short:
            return held[0]
        memories = self._put(product, held[1:], place_of_size(whole), count)
        rest = build.sum(total, build.product([whole, -step]))

        def last(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            return [self._once(product, memories, places[0], held[0])]

        return self._nest([rest], held[:1], last)[0]

    # --- a turn -----------------------------------------------------------------------------------

    def _put(
        self, product: StagedProduct, factors: Sequence[TileValue], turn: Place, turns: Size
    ) -> list[SSAValue]:
        """Factors in shared memory, where all threads see them."""
        build = self._build
        memories: list[SSAValue] = []
        if isinstance(turn, int):
            place = turn % PLACES
        else:
            place = build.put(arith.RemUIOp(turn.value, build.constant(PLACES)))
        for side, factor in enumerate(factors):
            turned = product.turned[side]
            if product.way is SumWay.REGISTERS:  # what lanes read lies in a row
                turned = not side
            memory = self._memory_of(product, side, tile_of(factor.value), turned, turns == 1)
            if turns != 1:
                memory = build.put(frag.ViewOp(memory, [place]))
            build.add(frag.StoreOp(factor.value, memory, [0, 0], transposed=turned))
            memories.append(memory)
        build.add(frag.BarrierOp())
        return memories

    def _memory_of(
        self, product: StagedProduct, side: int, tile: frag.TileType, turned: bool, alone: bool
    ) -> SSAValue:
        """Shared memory for a factor, ahead of all loops."""
        key = product.op, side
        if key not in self._shared:
            shape = tile.shape[::-1] if turned else tile.shape
            element, width = tile.element_type, 0
            if product.way is not SumWay.REGISTERS:
                width = swizzle_for(shape[-1] * element_bits(element) // 8)
            stack = [] if alone else [PLACES]
            held = MemRefType(element, [*stack, *shape], memory_space=frag.SharedAttr(width))
            with self._build.inside(self._kernel.top):
                memory = self._build.put(memref.AllocOp([], [], held), "ab"[side] + "_staged")
            self._shared[key] = memory
        return self._shared[key]

    def _whole(
        self, product: StagedProduct, memories: Sequence[SSAValue], sums: TileValue
    ) -> TileValue:
        """Sums, and the products of a tile in memory."""
        build = self._build
        if product.way is SumWay.REGISTERS:
            for place in range(build.sizes[DEPTH]):
                sums = self._once(product, memories, place, sums)
            return sums
        if product.way is SumWay.WARPGROUPS:
            a, b = memories
            turned = dict(zip(("a_transposed", "b_transposed"), product.turned, strict=True))
            return TileValue(build.put(frag.WgmmaOp(a, b, sums.value, **turned)), product.order)
        tiles: list[SSAValue] = []
        sides = zip(memories, ((ROWS, DEPTH), (DEPTH, COLUMNS)), product.turned, strict=True)
        for memory, axes, turned in sides:
            tile = build.type_of(axes, memref_type(memory.type).element_type)
            tiles.append(build.put(frag.LoadOp(memory, [0, 0], tile, transposed=turned)))
        a, b = tiles
        return TileValue(build.put(frag.MmaOp(a, b, sums.value)), product.order)

    def _once(
        self,
        product: StagedProduct,
        memories: Sequence[SSAValue],
        place: Place,
        sums: TileValue,
    ) -> TileValue:
        """The body's result with what stands in memory at one place of what is reduced."""
        build, block = self._build, product.op.body.block
        known: dict[SSAValue, TileValue] = {block.args[-1]: sums}
        at = place if isinstance(place, int) else place.value
        for memory, number, axis in zip(memories, product.numbers, (ROWS, COLUMNS), strict=True):
            tile = build.type_of((axis,), memref_type(memory.type).element_type)
            loaded = build.put(frag.LoadOp(memory, [at, 0], tile))
            known[block.args[number]] = TileValue(loaded, (axis,))
        made = self._kernel.body(product.op, [], product.order, known, block.args[-1])
        end = block.last_op
        assert end is not None
        return build.widen(made.value(end.operands[0], product.order), product.order)


def is_turned(tile: TileValue) -> bool:
    """Whether a tile has been read the other way round."""
    op = tile.value.owner
    return isinstance(op, frag.TransposeOp) or (
        isinstance(op, frag.LoadOp) and op.transposed is not None
    )


def _digits(number: int, sizes: Sequence[Size]) -> list[Place]:
    """A number as places along loops that are counted through; 0 where a size is not known."""
    found: list[Place] = []
    for size in reversed(sizes):
        number, digit = divmod(number, size) if isinstance(size, int) else (0, number)
        found.insert(0, digit)
    return found
