"""Writes a `frag.matmul` as a program of tiles: loads, products, epilogue, no shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag
from fragir.dialects.narrow import memref_type
from fragir.passes.tiling.gemm_schedule import Schedule

if TYPE_CHECKING:
    from fragir.passes.tiling.scaled_sum import ScaledSum

Size = int | SSAValue
INDEX = IndexType()
REMARKS = "frag.remarks"
"""The attribute of a function with what its compilation tells the program's author."""


def tile_matmul(function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule) -> None:
    """Replaces a `frag.matmul` by its program of tiles, and notes warps and stages in it."""
    Gemm(function, product, schedule).run()


class Gemm:
    """One product under one schedule: a loop over tiles of C, in it one over K.

    `frag.stages` and `frag.tma` at the loop over K are for frag-pipeline; `frag.specialize` or
    `frag.prefetch` at the function say which pass takes it on.
    """

    def __init__(self, function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule):
        self.function, self.product, self.schedule = function, product, schedule
        self.builder = Builder(InsertPoint.before(product))
        self.builder.operation_insertion_handler = [self._inserted]
        self.a_transposed = product.a_transposed is not None
        self.b_transposed = product.b_transposed is not None
        self.static = product.sizes()
        self.promises = frag.promises_of(function)
        self.names = "m", "n", "k"
        self.scaled: ScaledSum | None = None
        if product.is_scaled:
            from fragir.passes.tiling.scaled_sum import ScaledSum  # few products have scales

            self.scaled = ScaledSum(self)

    def _inserted(self, op: Operation) -> None:
        op.location = self.product.location

    # --- small pieces -------------------------------------------------------------------------

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Inserts an operation with one result."""
        self.builder.insert(op)
        if name is not None:
            op.results[0].name_hint = name
        return op.results[0]

    def constant(self, number: int) -> SSAValue:
        return self.insert(arith.ConstantOp(IntegerAttr(number, INDEX)))

    def value(self, size: Size) -> SSAValue:
        return self.constant(size) if isinstance(size, int) else size

    def dim(self, memory: SSAValue, dim: int, static: int | None, name: str) -> Size:
        """A size of the product."""
        if static is not None:
            return static
        return self.insert(memref.DimOp(memory, self.constant(dim)), name)

    def turned(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Sizes along M and N in the order of the accumulators' rows and columns."""
        return (pair[1], pair[0]) if self.schedule.turned else pair

    # --- the kernel ---------------------------------------------------------------------------

    def run(self) -> None:
        product, schedule = self.product, self.schedule
        tm, tn, _ = schedule.tile
        self._annotate()
        function = self.function
        after = "frag.specialize" if schedule.roles else "frag.prefetch"
        function.attributes[after] = UnitAttr()
        if schedule.remark is not None:
            function.attributes[REMARKS] = ArrayAttr([StringAttr(schedule.remark)])
        if schedule.consumers > 1:
            function.attributes["frag.consumers"] = IntegerAttr(schedule.consumers, i64)
        if schedule.cluster > 1:
            blocks = [schedule.cluster, 1, 1]
            function.attributes["frag.cluster"] = DenseArrayBase.from_list(i64, blocks)
        m = self.dim(product.c, 0, self.static[0], "m")
        n = self.dim(product.c, 1, self.static[1], "n")
        k = self.dim(product.a, 0 if self.a_transposed else 1, self.static[2], "k")
        body = Block(arg_types=[INDEX, INDEX])
        row, column = body.args
        row.name_hint, column.name_hint = "row", "col"
        outer = self._into(body)
        accumulator = frag.TileType(self.turned((tm, tn)), product.accumulator())
        zero = self.insert(zero_constant(accumulator.element_type))
        start = self.insert(frag.FillOp(zero, accumulator), "acc")
        total = self._sum(start, row, column, k)
        if self.scaled is not None:
            total = self.scaled.scale(total, row, column)
        self._epilogue(total, row, column)
        self.builder = outer
        self.builder.insert(
            frag.ForTilesOp(
                (m, n),
                (tm, tn),
                Region(body),
                persistent=schedule.roles,
                cluster=schedule.cluster if schedule.cluster > 1 else None,
                order=schedule.order,
            )
        )
        product.detach()
        product.erase()

    def _into(self, block: Block) -> Builder:
        """Builds in a block from here on; where it built before."""
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        self.builder.operation_insertion_handler = [self._inserted]
        return outer

    def _sum(self, start: SSAValue, row: SSAValue, column: SSAValue, k: int | SSAValue) -> SSAValue:
        """The loop over K."""
        first, end = self.constant(0), self.value(k)
        step = self.constant(self.schedule.tile[2])
        promoted = self.scaled if self.scaled is not None and self.scaled.promoted else None
        starts = [start]
        if promoted is not None:
            starts += promoted.first(row, column, first)
        body = Block(arg_types=[INDEX, *(value.type for value in starts)])
        at, sums, *loaded = body.args
        at.name_hint, sums.name_hint = "k0", "acc"
        outer = self._into(body)
        ahead: list[SSAValue] = []
        if promoted is not None:
            for argument, value in zip(loaded, starts[1:], strict=True):
                argument.name_hint = value.name_hint
            promoted.take(loaded)
        a, b = self._operand(True, row, at), self._operand(False, column, at)
        left, right = (b, a) if self.schedule.turned else (a, b)
        if promoted is None:
            result = self.insert(frag.MmaOp(left, right, sums), "acc")
        else:  # `start` is zero
            partial = self.insert(frag.MmaOp(left, right, start), "partial")
            ahead = promoted.load(row, column, at)
            result = promoted.add(partial, sums)
        self.builder.insert(scf.YieldOp(result, *ahead))
        self.builder = outer
        loop = scf.ForOp(first, end, step, starts, body)
        loop.attributes["frag.stages"] = IntegerAttr(self.schedule.stages, i64)
        if self.schedule.roles:
            loop.attributes["frag.tma"] = UnitAttr()
        self.builder.insert(loop)
        return loop.results[0]

    def _operand(self, is_a: bool, along: SSAValue, k: SSAValue) -> SSAValue:
        """A or B, as the product takes it: of C^T = B^T A^T both are turned."""
        product, schedule = self.product, self.schedule
        memory = product.a if is_a else product.b
        turned_in_memory = self.a_transposed if is_a else self.b_transposed
        transposed = turned_in_memory != schedule.turned
        size = 0 if is_a else 1
        extent, depth = schedule.tile[size], schedule.tile[2]
        first = is_a != schedule.turned
        shape = (extent, depth) if first else (depth, extent)
        tile = frag.TileType(shape, memref_type(memory.type).element_type)
        # memory's first dimension is K for B and for a transposed A
        indices = [k, along] if is_a == turned_in_memory else [along, k]
        masked = self.masked(size, extent) or self.masked(2, depth)
        load = frag.LoadOp(memory, indices, tile, transposed=transposed, masked=masked)
        return self.insert(load, "a_tile" if is_a else "b_tile")

    # --- epilogue -----------------------------------------------------------------------------

    def _epilogue(self, total: SSAValue, row: SSAValue, column: SSAValue) -> None:
        product, (tm, tn, _) = self.product, self.schedule.tile
        c_type = product.memories()[2]
        tile = frag.TileType(self.turned((tm, tn)), c_type.element_type)
        masked = self.masked(0, tm) or self.masked(1, tn)
        turned = self.schedule.turned
        at = [row, column]
        if product.epilogue is None:
            result = total
            if c_type.element_type != product.accumulator():
                result = self.insert(frag.CastOp(total, tile))
            self.builder.insert(
                frag.StoreOp(result, product.c, at, masked=masked, transposed=turned)
            )
            return
        region = product.detach_region(product.epilogue)
        block = region.block
        inputs = [total]
        if any(True for _ in block.args[1].uses):
            load = frag.LoadOp(product.c, at, tile, masked=masked, transposed=turned)
            inputs.append(self.insert(load, "old"))
        else:
            block.erase_arg(block.args[1])
        for extra in product.extra:
            value = self._broadcast(extra, row, column)
            inputs.append(self._transposed(value) if turned else value)
        result = self.insert(frag.MapOp(inputs, region, tile), "result")
        self.builder.insert(frag.StoreOp(result, product.c, at, masked=masked, transposed=turned))

    def _transposed(self, value: SSAValue) -> SSAValue:
        """A tile as the accumulators are turned."""
        return self.insert(frag.TransposeOp(value, (1, 0)))

    def _broadcast(self, memory: SSAValue, row: SSAValue, column: SSAValue) -> SSAValue:
        type_ = memref_type(memory.type)
        shape, (tm, tn, _) = type_.get_shape(), self.schedule.tile
        starts: list[int | SSAValue] = [row, column]
        indices = [
            0 if size == 1 else start
            for size, start in zip(shape, starts[2 - len(shape) :], strict=True)
        ]
        masked = any(
            size != 1 and self.masked(dim, tile)
            for size, dim, tile in zip(reversed(shape), (1, 0), (tn, tm), strict=False)
        )
        tile = frag.TileType((tm, tn), type_.element_type)
        load = frag.LoadOp(memory, indices, tile, masked=masked, broadcast=True)
        return self.insert(load, memory.name_hint)

    def masked(self, size: int, tile: int) -> bool:
        """Whether tiles may go beyond M (0), N (1) or K (2): sizes that no tile divides.

        Of a size known at run time only, the program may promise what divides it. The blocks of a
        cluster have tiles below each other: the last ones may have none within M.
        """
        known = self.static[size]
        covered = tile * self.schedule.cluster if size == 0 else tile
        return (self.promises.get(self.names[size], 1) if known is None else known) % covered != 0

    # --- what the launch needs ----------------------------------------------------------------

    def _annotate(self) -> None:
        function = self.function
        self.names = self._names()
        kind = "frag.warpgroups" if self.schedule.wgmma else "frag.warps"
        function.attributes[kind] = DenseArrayBase.from_list(
            i64, list(self.turned(self.schedule.warps))
        )

    def _names(self) -> tuple[str, str, str]:
        """Names of M, N and K: those that the arguments' frag.sizes give, else m, n, k.

        Arguments without names get them, so that a launch can tell the sizes from the arrays.
        """
        m, n, k = "m", "n", "k"
        product = self.product
        sides = [
            (product.a, [0, 2] if not self.a_transposed else [2, 0]),
            (product.b, [2, 1] if not self.b_transposed else [1, 2]),
            (product.c, [0, 1]),
        ]
        for extra in product.extra:
            rank = len(memref_type(extra.type).get_shape())
            sides.append((extra, [0, 1][2 - rank :]))
        names = [m, n, k]
        arguments: list[SSAValue] = list(self.function.body.block.args)
        for value, dims in sides:
            if value in arguments:
                given = self._given(arguments.index(value))
                extents = memref_type(value.type).get_shape()
                for dim, name, extent in zip(dims, given, extents, strict=False):
                    if extent == DYNAMIC_INDEX and names[dim] == "mnk"[dim]:
                        names[dim] = name
        for value, dims in sides:
            if value in arguments and not self._given(arguments.index(value)):
                self._give(arguments.index(value), [names[dim] for dim in dims])
        for each in product.scalings():
            known, value = dict(zip("mnk", names, strict=True)), each.scale
            if each.outer and value in arguments and not self._given(arguments.index(value)):
                dimensions = [known.get(name, name) for name in each.dimensions()]
                self._give(arguments.index(value), dimensions)
        return names[0], names[1], names[2]

    def _given(self, index: int) -> tuple[str, ...]:
        attributes = self.function.arg_attrs
        if attributes is None:
            return ()
        entry = attributes.data[index]
        return frag.sizes_of(entry.data.get("frag.sizes"))

    def _give(self, index: int, names: list[str]) -> None:
        count = len(self.function.body.block.args)
        old = self.function.arg_attrs
        entries = list(old.data) if old is not None else [DictionaryAttr({})] * count
        sizes = ArrayAttr([StringAttr(name) for name in names])
        entries[index] = DictionaryAttr({**entries[index].data, "frag.sizes": sizes})
        self.function.arg_attrs = ArrayAttr(entries)


def zero_constant(element: Attribute) -> arith.ConstantOp:
    """Zero of an accumulator's type."""
    match element:
        case Float16Type() | Float32Type() | Float64Type():
            return arith.ConstantOp(FloatAttr(0.0, element))
        case _:
            return arith.ConstantOp(IntegerAttr(0, IntegerType(32)))
