"""Tiles whose sums several blocks add up: what each of them does with its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, UnitAttr
from xdsl.ir import Block, Region, SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.kernels import RARE
from fragir.dialects.frag.tensor_copies import APART
from fragir.passes.tiling.gemm import Gemm
from fragir.passes.tiling.tile_writer import INDEX

COLUMNS, HELD = 32, 16
"""That are added up at a time: 128 bytes of a row of f32, or as many as a thread holds so many
elements of."""


class GemmInParts(Gemm):
    """A product of which a block adds up a part of a tile: added to C by atomics, or by the last
    block to have its part ready."""

    def _annotate(self) -> None:
        super()._annotate()
        if self.product.through():
            from fragir.passes.tiling.parts import note_least

            note_least(self.function, self.product, self.schedule)

    def finish(
        self, total: SSAValue, row: SSAValue, column: SSAValue, part: Sequence[SSAValue]
    ) -> None:
        """What follows the block's own sum."""
        self._row, self._column = row, column
        _, _, self._part, self._parts = part
        for value, name in zip(part, ("from", "to", "part", "parts"), strict=True):
            value.name_hint = name
        through = self.product.through()
        if not through:
            self._add_to_c(total)
            return
        if self.schedule.cluster == 1:
            self._finish(total, *through)
            return
        # the last blocks of a cluster may have no tile within M
        inside = self.insert(arith.CmpiOp(row, self.value(self.rows), "slt"), "inside")
        self._build_when(inside, lambda: self._finish(total, *through), rare=False)

    def _finish(self, total: SSAValue, partial: SSAValue, counts: SSAValue) -> None:
        given = self.schedule.parts
        assert given is not None
        if not given[1]:
            self._hand_in(total, partial, counts)
            return
        # a tile may well have one part, which is its sum
        tm, tn, _ = self.schedule.tile
        several = self.insert(arith.CmpiOp(self._parts, self.constant(1), "ne"), "several")
        self._build_when(
            several,
            lambda: self._hand_in(total, partial, counts),
            lambda: self.epilogue(total, self._row, self._column, (tm, tn), self.schedule.turned),
        )

    def _build_when(
        self,
        condition: SSAValue,
        build: Callable[[], None],
        otherwise: Callable[[], None] | None = None,
        *,
        rare: bool = True,
    ) -> None:
        """What is done where a condition holds, seldom if `rare`, and where it does not."""
        then = self._branch(build)
        made = scf.IfOp(condition, [], then, None if otherwise is None else self._branch(otherwise))
        if rare:
            made.attributes[RARE] = UnitAttr()
        self.builder.insert(made)

    def _branch(self, build: Callable[[], None]) -> Region:
        block = Block()
        with self.inside(block):
            build()
            self.builder.insert(scf.YieldOp())
        return Region(block)

    # --- through memory -----------------------------------------------------------------------

    def _hand_in(self, total: SSAValue, partial: SSAValue, counts: SSAValue) -> None:
        """Writes the block's part; the last one of a tile adds up all of them."""
        masked, turned = self.is_c_masked(), self.schedule.turned
        at = [self._part, *self.matrix, self._row, self._column]
        store = frag.StoreOp(total, partial, at, masked=masked, transposed=turned)
        store.attributes[APART] = UnitAttr()
        self.builder.insert(store)
        self._build_when(self._arrive(counts), lambda: self._add_up(partial))

    def _arrive(self, counts: SSAValue) -> SSAValue:
        """Whether all other parts of the tile are there."""
        tm, tn, _ = self.schedule.tile
        places = [
            self.insert(arith.DivUIOp(start, self.constant(size)))
            for start, size in ((self._row, tm), (self._column, tn))
        ]
        return self.insert(frag.ArriveOp(counts, [*self.matrix, *places], self._parts), "last")

    def _add_up(self, partial: SSAValue) -> None:
        """The sum of all parts and what becomes of it, some columns of the tile at a time: then it
        takes few registers, and whole rows of memory."""
        tm, tn, _ = self.schedule.tile
        width = gcd(tn, COLUMNS, HELD * self.schedule.threads // tm)
        body = Block(arg_types=[INDEX])
        body.args[0].name_hint = "j"
        with self.inside(body):
            column = self.insert(arith.AddiOp(self._column, body.args[0]))
            total = self._add_parts(partial, column, (tm, width))
            self.epilogue(total, self._row, column, (tm, width), False)
            self.builder.insert(scf.YieldOp())
        start, end, step = (self.constant(number) for number in (0, tn, width))
        self.builder.insert(scf.ForOp(start, end, step, [], body))

    def _add_parts(self, partial: SSAValue, column: SSAValue, shape: tuple[int, int]) -> SSAValue:
        """The parts from a column on, added in their order."""
        tile = frag.TileType(shape, self.product.accumulator())
        start = self._handed_in(partial, self.constant(0), column, tile)
        body = Block(arg_types=[INDEX, tile])
        at, sums = body.args
        at.name_hint, sums.name_hint = "p", "acc"
        with self.inside(body):
            more = self._handed_in(partial, at, column, tile)
            self.builder.insert(scf.YieldOp(self._plus(sums, more, tile)))
        one = self.constant(1)
        return self.insert(scf.ForOp(one, self._parts, one, [start], body), "acc")

    def _handed_in(
        self, partial: SSAValue, part: SSAValue, column: SSAValue, tile: frag.TileType
    ) -> SSAValue:
        at = [part, *self.matrix, self._row, column]
        load = frag.LoadOp(partial, at, tile, masked=self.is_c_masked())
        load.attributes[APART] = UnitAttr()  # what is added up has arrived
        return self.insert(load, "part")

    def _plus(self, sums: SSAValue, more: SSAValue, tile: frag.TileType) -> SSAValue:
        element = tile.element_type
        block = Block(arg_types=[element, element])
        add = arith.AddiOp if isinstance(element, IntegerType) else arith.AddfOp
        total = add(block.args[0], block.args[1])
        block.add_ops([total, frag.YieldOp(total.result)])
        return self.insert(frag.MapOp([sums, more], Region(block), tile), "acc")

    # --- by atomics ---------------------------------------------------------------------------

    def _add_to_c(self, total: SSAValue) -> None:
        if self.schedule.turned:
            total = self.insert(frag.TransposeOp(total, (1, 0)))
        at = [*self.matrix, self._row, self._column]
        masked = self.is_c_masked()
        self.builder.insert(frag.AtomicOp("add", total, self.product.c, at, masked=masked))
