"""Writes a `frag.matmul` as a program of tiles: loads, products, epilogue, no shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.kernels import BLOCKS_PER_SM
from fragir.dialects.frag.raster import Along
from fragir.dialects.limits import BLOCK_REGISTERS
from fragir.dialects.shorthands import memref_type
from fragir.passes.remarks import remark
from fragir.passes.tiling.gemm_schedule import Schedule
from fragir.passes.tiling.tile_writer import INDEX, Size, TileWriter

if TYPE_CHECKING:
    from fragir.passes.tiling.scaled_sum import ScaledSum


class Gemm(TileWriter):
    """One product under one schedule: a loop over tiles of C, in it one over K.

    `frag.stages` and `frag.tma` at the loop over K are for frag-pipeline; `frag.specialize` or
    `frag.prefetch` at the function say which pass takes it on.
    """

    def __init__(self, function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule):
        super().__init__(function, product, schedule)
        self.a_transposed = product.a_transposed is not None
        self.b_transposed = product.b_transposed is not None
        self.batch = product.batch()
        self.rows: Size = 0
        self.c: SSAValue = product.c
        """What a block writes of C: of groups of rows those of its own and before."""
        self.scaled: ScaledSum | None = None
        self.block_scales = product.block_scales()
        if product.is_scaled and self.block_scales is None:
            from fragir.passes.tiling.scaled_sum import ScaledSum  # few products have scales

            self.scaled = ScaledSum(self)

    # --- the kernel ---------------------------------------------------------------------------

    def run(self) -> None:
        product, schedule = self.product, self.schedule
        tm, tn, _ = schedule.tile
        self._annotate()
        function = self.function
        after = "frag.specialize" if schedule.roles else "frag.prefetch"
        function.attributes[after] = UnitAttr()
        remark(function, schedule.remarks)
        if schedule.consumers > 1:
            function.attributes["frag.consumers"] = IntegerAttr(schedule.consumers, i64)
        if schedule.cluster > 1:
            blocks = [schedule.cluster, 1, 1]
            function.attributes["frag.cluster"] = DenseArrayBase.from_list(i64, blocks)
        batch = [self.dim(product.c, dim, size, "b") for dim, size in enumerate(self.batch)]
        self.rows = m = self.dim(product.c, -2, self.static[0], "m")
        n = self.dim(product.c, -1, self.static[1], "n")
        k = self.dim(product.a, -2 if self.a_transposed else -1, self.static[2], "k")
        along = self._along(k)
        count = 2 + (0 if along is None else 4) + (0 if product.ends is None else 2)
        body = Block(arg_types=[INDEX] * (len(batch) + count))
        *self.matrix, row, column = body.args[: len(batch) + 2]
        part = body.args[len(batch) + 2 :]
        row.name_hint, column.name_hint = "row", "col"
        with self.inside(body):
            if product.ends is not None:
                self.group, end = part
                self.group.name_hint, end.name_hint = "group", "end"
                self.c = self.insert(frag.HeadOp(product.c, end), "own")
            accumulator = frag.TileType(self.in_order_of_c((tm, tn)), product.accumulator())
            zero = self.insert(zero_constant(accumulator.element_type))
            start = self.insert(frag.FillOp(zero, accumulator), "acc")
            bounds = (0, k) if along is None else part[:2]
            total = self._sum(start, row, column, *bounds)
            if self.scaled is not None:
                total = self.scaled.scale(total, row, column)
            self.finish(total, row, column, part)
        self.builder.insert(
            frag.ForTilesOp(
                (*batch, m, n),
                (*[1] * len(batch), tm, tn),
                Region(body),
                persistent=schedule.roles
                or product.ends is not None
                or (along is not None and along.even),
                cluster=schedule.cluster if schedule.cluster > 1 else None,
                order=schedule.order,
                along=along,
                groups=product.ends,
            )
        )
        product.detach()
        product.erase()

    def finish(
        self, total: SSAValue, row: SSAValue, column: SSAValue, part: Sequence[SSAValue]
    ) -> None:
        """What a block does with its sum of a tile, or with its part of one."""
        tm, tn, _ = self.schedule.tile
        self.epilogue(total, row, column, (tm, tn), self.schedule.turned)

    def _along(self, k: Size) -> Along | None:
        """How sums are cut into parts, if they are."""
        parts = self.schedule.parts
        return None if parts is None else Along(k, self.schedule.tile[2], *parts)

    def _sum(
        self, start: SSAValue, row: SSAValue, column: SSAValue, first: Size, end: Size
    ) -> SSAValue:
        """The loop over K, from one place to another."""
        first, end = self.value(first), self.value(end)
        step = self.constant(self.schedule.tile[2])
        promoted = self.scaled if self.scaled is not None and self.scaled.promoted else None
        starts = [start]
        if promoted is not None:
            starts += promoted.first(row, column, first)
        body = Block(arg_types=[INDEX, *(value.type for value in starts)])
        at, sums, *loaded = body.args
        at.name_hint, sums.name_hint = "k0", "acc"
        with self.inside(body):
            ahead: list[SSAValue] = []
            if promoted is not None:
                for argument, value in zip(loaded, starts[1:], strict=True):
                    argument.name_hint = value.name_hint
                promoted.take(loaded)
            a, b = self._operand(True, row, at), self._operand(False, column, at)
            left, right = (b, a) if self.schedule.turned else (a, b)
            if promoted is None:
                scales = self._block_scales(row, column, at)
                result = self.insert(frag.MmaOp(left, right, sums, scales=scales), "acc")
            else:  # `start` is zero
                partial = self.insert(frag.MmaOp(left, right, start), "partial")
                ahead = promoted.load(row, column, at)
                result = promoted.add(partial, sums)
            self.builder.insert(scf.YieldOp(result, *ahead))
        loop = scf.ForOp(first, end, step, starts, body)
        loop.attributes["frag.stages"] = IntegerAttr(self.schedule.stages, i64)
        if self.schedule.roles:
            loop.attributes["frag.tma"] = UnitAttr()
        if self.schedule.tensor:
            loop.attributes["frag.tensor"] = UnitAttr()
        if self.schedule.pair:
            loop.attributes["frag.pair"] = UnitAttr()
        self.builder.insert(loop)
        return loop.results[0]

    def _block_scales(self, row: SSAValue, column: SSAValue, k: SSAValue) -> list[SSAValue]:
        """Those of a turn's tiles of A and B, if tensor cores multiply some in."""
        if self.block_scales is None:
            return []
        from fragir.passes.tiling.block_scales import load_scales  # few products have them

        return [load_scales(self, each, row, column, k) for each in self.block_scales]

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
        last = [k, along] if is_a == turned_in_memory else [along, k]
        several = memref_type(memory.type).get_shape()[:-2]
        indices = [*self.leading([each == 1 for each in several]), *last]
        masked = self.is_masked(size, extent) or self.is_masked(2, depth)
        load = frag.LoadOp(memory, indices, tile, transposed=transposed, masked=masked)
        return self.insert(load, "a_tile" if is_a else "b_tile")

    # --- epilogue -----------------------------------------------------------------------------

    def epilogue(
        self,
        total: SSAValue,
        row: SSAValue,
        column: SSAValue,
        shape: tuple[int, int],
        turned: bool,
    ) -> None:
        """What becomes of sums of C from a row and column on; `turned`: they lie transposed."""
        product = self.product
        c_type = product.memories()[2]
        tile = frag.TileType(shape[::-1] if turned else shape, c_type.element_type)
        masked = self.is_c_masked()
        at = [*self.matrix, row, column]
        if product.epilogue is None:
            result = total
            if c_type.element_type != product.accumulator():
                result = self.insert(frag.CastOp(total, tile))
            self.builder.insert(frag.StoreOp(result, self.c, at, masked=masked, transposed=turned))
            return
        region = product.epilogue.clone()
        block = region.block
        inputs = [total]
        if any(True for _ in block.args[1].uses):
            load = frag.LoadOp(self.c, at, tile, masked=masked, transposed=turned)
            inputs.append(self.insert(load, "old"))
        else:
            block.erase_arg(block.args[1])
        for extra in product.extra:
            value = self._broadcast(extra, row, column, shape)
            inputs.append(self._transpose(value) if turned else value)
        result = self.insert(frag.MapOp(inputs, region, tile), "result")
        self.builder.insert(frag.StoreOp(result, self.c, at, masked=masked, transposed=turned))

    def _transpose(self, value: SSAValue) -> SSAValue:
        """A tile as the accumulators are turned."""
        return self.insert(frag.TransposeOp(value, (1, 0)))

    def _broadcast(
        self, memory: SSAValue, row: SSAValue, column: SSAValue, shape: tuple[int, int]
    ) -> SSAValue:
        type_ = memref_type(memory.type)
        sizes, (tm, tn, _) = type_.get_shape(), self.schedule.tile
        starts: list[int | SSAValue] = [*self.matrix, row, column]
        indices = [
            0 if size == 1 else start
            for size, start in zip(sizes, starts[len(starts) - len(sizes) :], strict=True)
        ]
        masked = any(
            size != 1 and self.is_masked(dim, tile)
            for size, dim, tile in zip(reversed(sizes), (1, 0), (tn, tm), strict=False)
        )
        tile = frag.TileType(shape, type_.element_type)
        load = frag.LoadOp(memory, indices, tile, masked=masked, broadcast=True)
        return self.insert(load, memory.name_hint)

    # --- what the launch needs ----------------------------------------------------------------

    def _annotate(self) -> None:
        function = self.function
        self.names = self._names()
        grouped = self.schedule.wgmma or self.schedule.tensor
        kind = "frag.warpgroups" if grouped else "frag.warps"
        function.attributes[kind] = DenseArrayBase.from_list(
            i64, list(self.in_order_of_c(self.schedule.warps))
        )
        if not self.schedule.wgmma and not self.schedule.roles:
            # all registers that a thread can have: ptxas would rather spill than hold fewer blocks
            blocks = max(1, BLOCK_REGISTERS // (256 * self.schedule.threads))
            function.attributes[BLOCKS_PER_SM] = IntegerAttr(blocks, i64)

    def _names(self) -> tuple[str, str, str]:
        """Names of M, N and K: those that the arguments' frag.sizes give, else m, n, k.

        Arguments without names get them, so that a launch can tell the sizes from the arrays.
        """
        product = self.product
        usual = ("m", "n", "k", *product.batch_names(), "parts")
        batch = list(range(3, len(usual) - 1))
        sides = [
            (product.a, [0, 2] if not self.a_transposed else [2, 0]),
            (product.b, [2, 1] if not self.b_transposed else [1, 2]),
            (product.c, [0, 1]),
            *((extra, [0, 1]) for extra in product.extra),
        ]
        ranks = [len(memref_type(value.type).get_shape()) for value, _ in sides]
        sides = [
            (value, (batch + dims)[len(batch) + 2 - rank :])
            for (value, dims), rank in zip(sides, ranks, strict=True)
        ]
        if product.ends is not None:
            usual = (*usual, "g")
            sides[1] = (product.b, [len(usual) - 1, *([1, 2] if self.b_transposed else [2, 1])])
            sides.append((product.ends, [len(usual) - 1]))
        if product.partial is not None:
            sides.append((product.partial, [len(usual) - 1, *batch, 0, 1]))
        names = list(usual)
        arguments: list[SSAValue] = list(self.function.body.block.args)
        for value, dims in sides:
            if value in arguments:
                given = self._given_names(arguments.index(value))
                extents = memref_type(value.type).get_shape()
                for dim, name, extent in zip(dims, given, extents, strict=False):
                    if extent == DYNAMIC_INDEX and names[dim] == usual[dim]:
                        names[dim] = name
        for value, dims in sides:
            if value in arguments and not self._given_names(arguments.index(value)):
                self._give(arguments.index(value), [names[dim] for dim in dims])
        for each in product.scalings():
            value, dimensions = each.scale, each.dimensions()
            if dimensions and value in arguments and not self._given_names(arguments.index(value)):
                known = dict(zip(usual, names, strict=True))
                called = [known.get(name, name) if name else "one" for name in dimensions]
                self._give(arguments.index(value), called)
        return names[0], names[1], names[2]

    def _given_names(self, index: int) -> tuple[str, ...]:
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
