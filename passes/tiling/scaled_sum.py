"""The scales of a `frag.matmul` in its program of tiles, and partial sums that are promoted.

What changes along K is loaded a turn ahead and carried round the loop. The loads are written behind
the turn's product, which ptxas would else let wait for them. Many scales of columns are loaded
there for the turn itself: they would take too many registers. The product begins at zero, is
multiplied and added in f32. The other scales are multiplied into the block's sum, be it whole or a
part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Block, Operation, Region, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.matmul_sums import Scaling
from fragir.dialects.shorthands import constant_of, is_memref
from fragir.errors import FragirError
from fragir.passes.tiling.tile_writer import TileWriter

F32 = Float32Type()
Scales = list[tuple[int | None, SSAValue]]
"""Scales of a tile: the dimension of the sums that they change along, and a tile of one dimension;
or None and a number, which is a scalar or a tile of one element."""
_FEW = 4
"""Scales of columns that a lane may hold twice."""
Factors = dict[int | None, SSAValue]
"""What sums are multiplied by: a tile of one dimension for each dimension of the sums that it
changes along, and under None a number."""
Combine = Callable[[Sequence[SSAValue]], Sequence[Operation]]
"""Scalar operations on some values; the last one gives the result."""


def check_tile(product: frag.MatmulOp, tile: tuple[int, int, int]) -> None:
    """FragirError where a tile does not suit the scales and partial sums of a product."""
    promote, k = product.promotion(), product.sizes()[2]
    if promote is not None and tile[2] != promote and (k is None or k > tile[2]):
        raise FragirError(
            f"partial sums of {promote} of K are formed by tiles of {promote} along K, not "
            f"{tile[2]}",
            hint=f"write {promote} for the third number of `tile`",
        )
    for each in product.scalings():
        extent = tile[0] if each.name == "A" else tile[1]
        if each.outer is not None and extent % each.outer and each.outer % extent:
            raise FragirError(
                f"a tile has {extent} {'rows of A' if each.name == 'A' else 'columns of B'}, and "
                f"{each.outer} share a scale: one must be a multiple of the other",
                hint=f"write such a number for {each.side.upper()} in `tile`",
            )


def promoted_tile(
    tile: Sequence[int], promote: int, k: int | None, lines: int, crowded: bool, single: bool
) -> list[int]:
    """The tile of a product with partial sums, of which a turn forms one, from that of a product
    without: partial sums take registers, too.

    `lines`: of so many rows of A and columns of B two stages have room, of `promote` each.
    `crowded`: something else takes registers, as operands or scales of many columns. `single`: one
    warpgroup multiplies.
    """
    m, n, depth = tile[0], min(tile[1], 128), tile[2]
    if single:
        m = min(m, 64)
    if crowded and m < n:
        n = min(n, 64)
    elif crowded:
        m = min(m, 64)
    while m + n > lines and max(m, n) > 64:
        m, n = (m // 2, n) if m > n else (m, n // 2)
    return [m, n, promote if k is None or k > depth else min(depth, promote)]


class ScaledSum:
    """What the scales of a product add to its program of tiles."""

    def __init__(self, writer: TileWriter):
        self._writer = writer
        product, self._tile = writer.product, writer.schedule.tile
        check_tile(product, self._tile)
        self.promoted = product.promotion() is not None
        scalings = product.scalings()
        self._behind = [each for each in scalings if each.depth is None]
        within = [each for each in scalings if each.depth is not None]
        self._now = [each for each in within if self._is_crowded(each)]
        self._early = [each for each in within if each not in self._now]
        self._of_turn: Factors = {}

    # --- what the program is told -------------------------------------------------------------

    def first(self, row: SSAValue, column: SSAValue, k: SSAValue) -> list[SSAValue]:
        """Loads, of what the first turn's partial sum is multiplied by, what is loaded early."""
        return [
            self._load_scales(each, self._start(each, row, column), k, True) for each in self._early
        ]

    def take(self, loaded: Sequence[SSAValue]) -> None:
        """Takes what was loaded for a turn."""
        pairs = zip(self._early, loaded, strict=True)
        self._of_turn = self._factors([self._scales_by_line(each, value) for each, value in pairs])

    def load(self, row: SSAValue, column: SSAValue, k: SSAValue) -> list[SSAValue]:
        """Loads what the next turn's partial sum is multiplied by, and what is left of this one's;
        the first of them are given back.
        """
        ahead: list[SSAValue] = []
        if self._early:
            step = self._writer.constant(self._tile[2])
            following = self._writer.insert(arith.AddiOp(k, step), "ahead")
            ahead = self.first(row, column, following)
        if self._now:
            scales: Scales = list(self._of_turn.items())
            for each in self._now:
                loaded = self._load_scales(each, self._start(each, row, column), k)
                scales.append(self._scales_by_line(each, loaded))
            self._of_turn = self._factors(scales)
        return ahead

    def add(self, partial: SSAValue, total: SSAValue) -> SSAValue:
        """The whole sum with a turn's partial sum."""

        def combine(values: Sequence[SSAValue]) -> Sequence[Operation]:
            first, *factors, old = values
            if not factors:
                return [arith.AddfOp(first, old)]
            ops = _multiply(factors)
            factor = ops[-1].results[0] if ops else factors[0]
            return [*ops, math.FmaOp(first, factor, old)]

        return self._combine(partial, self._of_turn, [total], combine, "acc")

    def scale(self, total: SSAValue, row: SSAValue, column: SSAValue) -> SSAValue:
        """The whole sum times the scales that do not change along K."""
        if not self._behind:
            return total

        def combine(values: Sequence[SSAValue]) -> Sequence[Operation]:
            first, *factors = values
            ops = _multiply(factors)
            factor = ops[-1].results[0] if ops else factors[0]
            return [*ops, arith.MulfOp(first, factor)]

        scales: Scales = []
        for each in self._behind:
            if each.outer is None:
                scales.append((None, self._number(each)))
            else:
                loaded = self._load_scales(each, self._start(each, row, column), None)
                scales.append(self._scales_by_line(each, loaded))
        return self._combine(total, self._factors(scales), [], combine, "scaled")

    # --- scales -------------------------------------------------------------------------------

    def _start(self, each: Scaling, row: SSAValue, column: SSAValue) -> SSAValue:
        return row if each.name == "A" else column

    def _extent(self, each: Scaling) -> int:
        return self._tile[0 if each.name == "A" else 1]

    def _number(self, each: Scaling) -> SSAValue:
        """The scale of a whole matrix."""
        scale, gemm = each.scale, self._writer
        if not is_memref(scale.type):
            return scale
        places = [gemm.value(at) for at in (*self._leading(each), 0)]
        return gemm.insert(memref.LoadOp.get(scale, places), scale.name_hint)

    def _leading(self, each: Scaling) -> list[int | SSAValue]:
        """Where the scales of the block's matrix lie among those of all."""
        return self._writer.leading([name is None for name in each.leads])

    def _is_crowded(self, each: Scaling) -> bool:
        """Whether a lane has so many of a tile's scales that it cannot hold the next ones, too: it
        has few of the rows of sums and many of their columns.
        """
        along_columns = (each.name == "B") != self._writer.schedule.turned
        return along_columns and self._extent(each) // (each.outer or 1) > _FEW

    def _load_scales(
        self, each: Scaling, start: SSAValue, k: SSAValue | None, early: bool = False
    ) -> SSAValue:
        """The scales of a tile's rows or columns, as many as there are."""
        extent, outer = self._extent(each), each.outer
        assert outer is not None
        count = max(1, extent // outer)
        first = self._block(start, outer)
        places, shape = [first], (count,)
        if each.depth is not None and k is not None:
            group = self._block(k, each.depth)
            places = [group, first] if each.k_first else [first, group]
            shape = (count,) if each.k_first or count == 1 else (count, 1)
        # what is loaded early may lie beyond the last of K
        masked = early or self._writer.is_masked(0 if each.name == "A" else 1, extent)
        at = [*self._leading(each), *places]
        load = frag.LoadOp(each.scale, at, frag.TileType(shape, F32), masked=masked)
        return self._writer.insert(load, each.scale.name_hint)

    def _scales_by_line(self, each: Scaling, loaded: SSAValue) -> tuple[int | None, SSAValue]:
        """A tile's scales, one for each of its rows or columns, and which dimension of the sums
        these are; one number and None where all have the same.
        """
        extent, outer = self._extent(each), each.outer
        assert outer is not None
        count = max(1, extent // outer)
        if count == 1:
            return None, loaded
        value = loaded
        if frag.tile_of(value).shape != (count,):
            value = self._reshape(value, count)
        if outer > 1:
            value = self._repeat(value, outer)
        return (0 if (each.name == "A") != self._writer.schedule.turned else 1), value

    def _reshape(self, value: SSAValue, size: int) -> SSAValue:
        tile = frag.TileType((size,), F32)
        return self._writer.insert(frag.ReshapeOp(value, tile), value.name_hint)

    def _block(self, start: SSAValue, extent: int) -> SSAValue:
        """The number of the block that an element is in."""
        known = constant_of(start)
        if known is not None:
            return self._writer.constant(known // extent)
        if extent == 1:
            return start
        return self._writer.insert(arith.DivUIOp(start, self._writer.constant(extent)))

    def _factors(self, scales: Scales) -> Factors:
        """What sums are multiplied by: one number for all of them is a factor of the others."""
        found: Factors = {}
        for axis, value in scales:
            found[axis] = self._times(found[axis], value) if axis in found else value
        if len(found) == 2 and None in found:
            number = found.pop(None)
            ((axis, vector),) = found.items()
            found[axis] = self._times(vector, number)
        return found

    def _times(self, first: SSAValue, second: SSAValue) -> SSAValue:
        """The product of a vector or number, and of a number; these are scalars or tiles of one
        element.
        """
        if not isinstance(first.type, frag.TileType):
            if not isinstance(second.type, frag.TileType):
                return self._writer.insert(arith.MulfOp(first, second))
            first, second = second, first
        if not isinstance(second.type, frag.TileType):
            number = second
            return self._map([first], lambda x: [arith.MulfOp(x[0], number)], first.name_hint)
        (size,) = frag.tile_of(first).shape
        pair = [first, self._repeat(second, size)]
        return self._map(pair, _multiply, first.name_hint)

    def _repeat(self, value: SSAValue, times: int) -> SSAValue:
        """Each element of a tile of one dimension so many times in a row."""
        if times == 1:
            return value
        (size,) = frag.tile_of(value).shape
        wide = self._writer.insert(frag.BroadcastOp(value, 1, times), value.name_hint)
        return self._reshape(wide, size * times)

    # --- elementwise --------------------------------------------------------------------------

    def _combine(
        self,
        sums: SSAValue,
        factors: Factors,
        more: Sequence[SSAValue],
        combine: Combine,
        name: str,
    ) -> SSAValue:
        """Sums, their factors and other tiles, element by element."""
        shape = frag.tile_of(sums).shape
        tiles, number = [sums], factors.get(None)
        vectors = [(axis, factor) for axis, factor in factors.items() if axis is not None]
        if number is not None and isinstance(number.type, frag.TileType):
            vectors, number = [(0, self._repeat(number, shape[0]))], None
        for axis, factor in vectors:
            wide = frag.BroadcastOp(factor, 1 - axis, shape[1 - axis])
            tiles.append(self._writer.insert(wide, factor.name_hint))

        def with_number(values: Sequence[SSAValue]) -> Sequence[Operation]:
            return combine(values if number is None else [values[0], number, *values[1:]])

        return self._map([*tiles, *more], with_number, name)

    def _map(self, tiles: Sequence[SSAValue], combine: Combine, name: str | None) -> SSAValue:
        block = Block(arg_types=[F32] * len(tiles))
        ops = list(combine(block.args))
        for op in (*ops, frag.YieldOp(ops[-1].results[0])):
            op.location = self._writer.product.location
            block.add_op(op)
        result = frag.TileType(frag.tile_of(tiles[0]).shape, F32)
        return self._writer.insert(frag.MapOp(tiles, Region(block), result), name)


def _multiply(values: Sequence[SSAValue]) -> list[Operation]:
    """The product of two values; nothing for one."""
    return [arith.MulfOp(values[0], values[1])] if len(values) > 1 else []
