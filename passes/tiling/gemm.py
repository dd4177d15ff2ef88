"""Writes the tiled kernel of a `frag.matmul`: multi-stage copies, products, epilogue."""

from __future__ import annotations

from collections.abc import Callable
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
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.choice import choose, wgmma_n
from fragir.dialects.narrow import memref_type
from fragir.isa.products import wgmma_k
from fragir.passes.tiling.operand_layouts import across, in_pairs, loaded_as, shared_type
from fragir.passes.tiling.schedule import Schedule

if TYPE_CHECKING:
    from fragir.passes.tiling.transposed_copy import TransposedCopy

Size = int | SSAValue
INDEX = IndexType()


def tile_matmul(function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule) -> None:
    """Replaces a `frag.matmul` by its tiled kernel and notes grid and warps on the function."""
    Gemm(function, product, schedule).run()


class Gemm:
    """One product under one schedule."""

    def __init__(self, function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule):
        self.function, self.product, self.schedule = function, product, schedule
        self.builder = Builder(InsertPoint.before(product))
        self.builder.operation_insertion_handler = [self._inserted]
        self.a_transposed = product.a_transposed is not None
        self.b_transposed = product.b_transposed is not None
        self.static = product.sizes()
        self.promises = frag.promises_of(function)
        self.names = "m", "n", "k"
        self.second: TransposedCopy | None = None

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

    def scaled(self, block: SSAValue, tile: int, name: str) -> SSAValue:
        return self.insert(arith.MuliOp(block, self.constant(tile)), name)

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
        product, (tm, tn, tk) = self.product, self.schedule.tile
        self._annotate()
        k = self.dim(product.a, 0 if self.a_transposed else 1, self.static[2], "k")
        column = self.scaled(self.insert(frag.BlockIdOp(frag.Dimension.X), "bx"), tn, "col")
        row = self.scaled(self.insert(frag.BlockIdOp(frag.Dimension.Y), "by"), tm, "row")
        a = Side(self, product.a, self.a_transposed, row, (tm, tk), True, "a_tile")
        b = Side(self, product.b, self.b_transposed, column, (tk, tn), False, "b_tile")
        accumulator = self._accumulators(a, b)
        zero = self.insert(zero_constant(accumulator.element_type))
        start = self.insert(frag.FillOp(zero, accumulator), "acc")
        total = self._main_loop(a, b, start, k)
        self._epilogue(total, row, column)
        product.detach()
        product.erase()

    def _accumulators(self, a: Side, b: Side) -> frag.TileType:
        """The type of the sums; where an operand is transposed on the way, its second place."""
        tm, tn, tk = self.schedule.tile
        rows, cols = self.turned((tm, tn))
        sums = frag.TileType((rows, cols), self.product.accumulator())
        if not self.schedule.transposes:
            return sums
        from fragir.passes.tiling.transposed_copy import TransposedCopy  # few programs need it

        _, right = self._operands(a, b)
        warps = self.schedule.threads // 32
        self.second = TransposedCopy(right.shared, (cols, tk), warps)
        self.builder.insert(self.second.alloc)
        orders = (("m", in_pairs("m")), ("n", in_pairs("n")))
        name = self._wgmma_name(right, sums)
        fragment = frag.MmaFragment(name, "c", self.turned(self.schedule.warps), orders)
        return frag.TileType(sums.shape, sums.element_type, frag.MmaLayoutAttr(fragment))

    def _operands(self, a: Side, b: Side) -> tuple[Side, Side]:
        """The first and the second operand of the instructions."""
        return (b, a) if self.schedule.turned else (a, b)

    def _main_loop(self, a: Side, b: Side, start: SSAValue, k: Size) -> SSAValue:
        stages, tk = self.schedule.stages, self.schedule.tile[2]
        if not isinstance(k, int) and (a.masked or b.masked) and stages > 2:
            self._first_copies(a, b)  # several ways to copy, maybe: once
        else:
            for stage in range(stages - 1):
                if not isinstance(k, int) or stage * tk < k:
                    at = self.constant(stage * tk)
                    # K may have fewer steps than there are stages, or none
                    for side in (a, b):
                        side.copy(stage, at, masked=side.masked or not isinstance(k, int))
                self.builder.insert(frag.CommitOp())
        zero, step = self.constant(0), self.constant(tk)
        first = [start] if stages == 1 else [start, zero]
        body = Block(arg_types=[INDEX, *(value.type for value in first)])
        body.args[0].name_hint, body.args[1].name_hint = "k0", "acc"
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(body))
        self.builder.operation_insertion_handler = [self._inserted]
        if stages == 1:
            yielded = self._step_alone(a, b, body)
        else:
            body.args[2].name_hint = "stage"
            yielded = self._step(a, b, body, k)
        self.builder.insert(scf.YieldOp(*yielded))
        self.builder = outer
        loop = scf.ForOp(zero, self.value(k), step, first, body)
        self.builder.insert(loop)
        if stages > 1:
            # with fewer steps than stages, copies beyond K are still under way
            self.builder.insert(frag.WaitOp(0))
        return loop.results[0]

    def _first_copies(self, a: Side, b: Side) -> None:
        """All stages but the last are filled; there may be fewer steps of K, or none."""
        stages, tk = self.schedule.stages, self.schedule.tile[2]
        zero, one, last = (self.constant(n) for n in (0, 1, stages - 1))
        body = Block(arg_types=[INDEX])
        (stage,) = body.args
        stage.name_hint = "first"
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(body))
        self.builder.operation_insertion_handler = [self._inserted]
        at = self.scaled(stage, tk, "k0")
        for side in (a, b):
            side.copy(stage, at, masked=True)
        self.builder.insert(frag.CommitOp())
        self.builder.insert(scf.YieldOp())
        self.builder = outer
        self.builder.insert(scf.ForOp(zero, last, one, [], body))

    def _step_alone(self, a: Side, b: Side, body: Block) -> list[SSAValue]:
        """One stage: copy, wait, multiply, wait until all have read it."""
        at, accumulator = body.args
        a.copy(None, at)
        b.copy(None, at)
        self.builder.insert(frag.CommitOp())
        self.builder.insert(frag.WaitOp(0))
        self.builder.insert(frag.BarrierOp())
        result = self._multiply(a, b, None, accumulator)
        self.builder.insert(frag.BarrierOp())
        return [result]

    def _step(self, a: Side, b: Side, body: Block, k: Size) -> list[SSAValue]:
        """Several stages: this one has arrived, the one read last time is filled anew."""
        stages, tk = self.schedule.stages, self.schedule.tile[2]
        at, accumulator, stage = body.args
        self.builder.insert(frag.WaitOp(stages - 2))
        # also: everybody has read the stage that is overwritten below
        self.builder.insert(frag.BarrierOp())
        ahead = self.insert(arith.AddiOp(at, self.constant((stages - 1) * tk)), "k_ahead")
        more = self.insert(arith.CmpiOp(ahead, self.value(k), "slt"))
        slot = self._wrapped(stage, 0, stages - 1, -1, "slot")

        def prefetch() -> None:
            a.copy(slot, ahead)
            b.copy(slot, ahead)

        self._when(more, prefetch)
        self.builder.insert(frag.CommitOp())
        result = self._multiply(a, b, stage, accumulator)
        following = self._wrapped(stage, stages - 1, 0, 1, "stage")
        return [result, following]

    def _wrapped(self, stage: SSAValue, last: int, first: int, step: int, name: str) -> SSAValue:
        """stage + step, or `first` after `last`."""
        at_end = self.insert(arith.CmpiOp(stage, self.constant(last), "eq"))
        moved = self.insert(arith.AddiOp(stage, self.constant(step)))
        return self.insert(arith.SelectOp(at_end, self.constant(first), moved), name)

    def _when(self, condition: SSAValue, build: Callable[[], None]) -> None:
        then = Block()
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(then))
        self.builder.operation_insertion_handler = [self._inserted]
        build()
        self.builder.insert(scf.YieldOp())
        self.builder = outer
        self.builder.insert(scf.IfOp(condition, [], Region(then)))

    def _multiply(
        self, a: Side, b: Side, stage: SSAValue | None, accumulator: SSAValue
    ) -> SSAValue:
        if not self.schedule.wgmma:
            name = self._instruction(a, b, accumulator)
            left, right = a.load(stage, name), b.load(stage, name)
            return self.insert(frag.MmaOp(left, right, accumulator), "acc")
        left, right = self._operands(a, b)
        # of C^T = B^T A^T both operands are turned
        left_turned, right_turned = (
            side.transposed != self.schedule.turned for side in (left, right)
        )
        in_registers = ptx.bits(left.element) != 16 and left_turned
        second = right.view(stage) if self.second is None else self.second.memory
        if self.second is not None:
            for op in self.second.fill(stage):
                self.builder.insert(op)
        if in_registers:
            operand = left.load(stage, self._wgmma_name(left, frag.tile_of(accumulator)))
        else:
            operand = left.view(stage)
        product = frag.WgmmaOp(
            operand,
            second,
            accumulator,
            a_transposed=left_turned and not in_registers,
            b_transposed=right_turned or self.second is not None,
        )
        return self.insert(product, "acc")

    def _wgmma_name(self, side: Side, c: frag.TileType) -> str:
        """The wgmma of the product."""
        element = element_name(side.element)
        columns = c.cols // self.turned(self.schedule.warps)[1]
        n = wgmma_n(frag.TileType((c.rows, columns), c.element_type), element)
        return f"m64n{n}k{wgmma_k(element)}.{element}"

    def _instruction(self, a: Side, b: Side, accumulator: SSAValue) -> str:
        """The mma.sync of the product."""
        c = frag.tile_of(accumulator)
        return choose(a.tile, b.tile, c, c, None, self.schedule.target)

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

        Of a size known at run time only, the program may promise what divides it.
        """
        known = self.static[size]
        return (self.promises.get(self.names[size], 1) if known is None else known) % tile != 0

    # --- what the launch needs ----------------------------------------------------------------

    def _annotate(self) -> None:
        function, (tm, tn, _) = self.function, self.schedule.tile
        self.names = self._names()
        m, n = (
            known if known is not None else name
            for known, name in zip(self.static[:2], self.names[:2], strict=True)
        )
        grid = (frag.Extent(n, tn), frag.Extent(m, tm))
        function.attributes["frag.grid"] = frag.GridAttr(grid)
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


class Side:
    """A or B: its global matrix, its stages in shared memory."""

    def __init__(
        self,
        gemm: Gemm,
        memory: SSAValue,
        transposed: bool,
        start: SSAValue,
        tile: tuple[int, int],
        is_a: bool,
        name: str,
    ):
        self.gemm, self.memory, self.transposed, self.start = gemm, memory, transposed, start
        self.is_a = is_a
        type_ = memref_type(memory.type)
        self.element = type_.element_type
        self.tile = frag.TileType(tile, self.element)
        shape = (tile[1], tile[0]) if transposed else tile
        stack = [gemm.schedule.stages] if gemm.schedule.stages > 1 else []
        # by plain loads: f64, and where memory runs along M or N what ldmatrix does not turn
        bits = ptx.bits(self.element)
        by_words = bits == 64 or (bits == 32 and across(is_a, transposed))
        shared = shared_type(self.element, stack, shape, by_words)
        self.shared = gemm.insert(memref.AllocOp([], [], shared), name)
        outer = gemm.masked(0 if is_a else 1, tile[0 if is_a else 1])
        self.masked = outer or gemm.masked(2, gemm.schedule.tile[2])

    def copy(self, stage: int | SSAValue | None, k: SSAValue, masked: bool | None = None) -> None:
        """Starts to fill a stage with the part that begins at k; masked as sizes and tiles ask."""
        masked = self.masked if masked is None else masked
        # memory's first dimension is K for B and for a transposed A
        k_first = self.is_a == self.transposed
        source = [k, self.start] if k_first else [self.start, k]
        target = [] if stage is None else [stage]
        self.gemm.builder.insert(
            frag.CopyOp(self.memory, source, self.shared, target, masked=masked, is_async=True)
        )

    def load(self, stage: SSAValue | None, instruction: str) -> SSAValue:
        """The tile of a stage in registers, as the instruction wants it."""
        indices: list[int | SSAValue] = [0, 0] if stage is None else [stage, 0, 0]
        schedule, tile = self.gemm.schedule, self.tile
        warps, operand = self.gemm.turned(schedule.warps), "a" if self.is_a else "b"
        transposed = self.transposed != schedule.turned
        if schedule.turned:
            operand = "b" if self.is_a else "a"
            tile = frag.TileType((tile.cols, tile.rows), tile.element_type)
        tile = loaded_as(tile, instruction, operand, warps, transposed)
        return self.gemm.insert(frag.LoadOp(self.shared, indices, tile, transposed=transposed))

    def view(self, stage: SSAValue | None) -> SSAValue:
        """The matrix of a stage in shared memory."""
        return self.shared if stage is None else self.gemm.insert(frag.ViewOp(self.shared, [stage]))


def zero_constant(element: Attribute) -> arith.ConstantOp:
    """Zero of an accumulator's type."""
    match element:
        case Float16Type() | Float32Type() | Float64Type():
            return arith.ConstantOp(FloatAttr(0.0, element))
        case _:
            return arith.ConstantOp(IntegerAttr(0, IntegerType(32)))
