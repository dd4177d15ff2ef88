"""Writes operations of a program of tiles for a `frag.matmul`: what its parts have in common."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from fragir.dialects import frag
from fragir.dialects.shorthands import memref_type
from fragir.passes.tiling.gemm_schedule import Schedule

Size = int | SSAValue
INDEX = IndexType()


class TileWriter:
    """A place where the program of one product under one schedule is written."""

    def __init__(self, function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule):
        self.function, self.product, self.schedule = function, product, schedule
        self.builder = Builder(InsertPoint.before(product))
        self.builder.operation_insertion_handler = [self._insert]
        self.static = product.sizes()
        self.promises = frag.promises_of(function)
        self.names = "m", "n", "k"
        self.matrix: Sequence[SSAValue] = ()
        """Which matrices of a batch: the first of the block's, one index a dimension."""
        self.group: SSAValue | None = None
        """Which group of rows, if they are in groups."""

    def _insert(self, op: Operation) -> None:
        op.location = self.product.location

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
        dim %= len(memref_type(memory.type).get_shape())
        return self.insert(memref.DimOp(memory, self.constant(dim)), name)

    def in_order_of_c(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Sizes along M and N in the order of the accumulators' rows and columns."""
        return (pair[1], pair[0]) if self.schedule.turned else pair

    @contextmanager
    def inside(self, block: Block) -> Generator[None]:
        """Builds in a block."""
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        self.builder.operation_insertion_handler = [self._insert]
        try:
            yield
        finally:
            self.builder = outer

    def leading(self, shared: Sequence[bool]) -> list[int | SSAValue]:
        """Indices of what a block's matrix has of a memory, in the dimensions that count matrices:
        0 in those that all of them share.
        """
        places = self.matrix if self.group is None else [self.group]
        return [0 if one else at for one, at in zip(shared, places, strict=False)]

    def is_masked(self, size: int, tile: int) -> bool:
        """Whether tiles may go beyond M (0), N (1) or K (2): sizes that no tile divides.

        Of a size known at run time only, the program may promise what divides it. The blocks of a
        cluster have tiles below each other: the last ones may have none within M.
        """
        if size == 0 and self.product.ends is not None:
            return True  # tiles begin where groups of rows do
        known = self.static[size]
        covered = tile * self.schedule.cluster if size == 0 else tile
        return (self.promises.get(self.names[size], 1) if known is None else known) % covered != 0

    def is_c_masked(self) -> bool:
        """Whether tiles of C may go beyond it."""
        tm, tn, _ = self.schedule.tile
        return self.is_masked(0, tm) or self.is_masked(1, tn)
