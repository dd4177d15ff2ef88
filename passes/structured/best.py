"""Reductions to the best number and what goes with it: many at a time, of equals the first."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fragir.dialects import frag
from fragir.passes.structured.bodies import BestChoice, choice_of
from fragir.passes.structured.sums import (
    Loops,
    Structured,
    SumWay,
    SumWriter,
    places_along,
    reduced_loops,
)
from fragir.passes.structured.values import (
    DEPTH,
    I32,
    Axes,
    Insert,
    Place,
    TileValue,
    place_of,
)


class BestWriter(SumWriter):
    """Writes sums, and choices, into a kernel."""

    def outputs(self, op: Structured, way: SumWay, loops: Loops, order: Axes) -> list[TileValue]:
        """What an operation reduces to, at places along its other loops."""
        choice = choice_of(op) if way is SumWay.DEEP else None
        if choice is None:
            return super().outputs(op, way, loops, order)
        return self._best(op, choice, loops, order)

    def _best(
        self, op: Structured, choice: BestChoice, loops: Loops, order: Axes
    ) -> list[TileValue]:
        """The best number at each place of a tile, and where it was; then the best of these."""
        build, inner, first = self._build, self.inside(order), len(op.inputs)
        block, kernel = op.body.block, self._kernel
        end = block.last_op
        assert end is not None
        best, other = first + choice.value, first + 1 - choice.value
        old, companion = block.args[best], block.args[other]
        sizes = self._sizes(op, reduced_loops(op))
        counted: AffineExpr = AffineDimExpr(0)
        for at, size in enumerate(sizes[1:], 1):
            assert isinstance(size, int)
            counted = counted * size + AffineDimExpr(at)

        def turn(places: Sequence[Place], held: Sequence[TileValue]) -> list[TileValue]:
            known: dict[SSAValue, TileValue] = {old: held[0], companion: held[1]}
            body = kernel.body(op, places_along(loops, op, places), inner, known)
            better = body.value(choice.condition.result, inner)
            value = build.widen(body.value(end.operands[choice.value], inner), inner)
            at = place_of(build, counted, places, inner)
            at = TileValue(build.constant(at, I32)) if isinstance(at, int) else at
            chosen = build.map([better, build.widen(at, inner), held[1]], inner, I32, _select)
            return [self._choose(value, held[0], inner), self._choose(chosen, held[1], inner)]

        before = self._start(op, best, loops, order)
        nowhere = build.widen(TileValue(build.constant(-1, I32)), inner)
        starts = [build.widen(before, inner), nowhere]
        found = self._reduce(op, SumWay.DEEP, loops, starts, turn)
        tiles = [tile.value for tile in found]
        reduced = frag.ReduceByOp(inner.index(DEPTH), tiles, _better(choice))
        build.add(reduced)
        value, place = (TileValue(result, order) for result in reduced.reduced)
        zero = build.scalar(0)
        somewhere = build.map(
            [place], order, I32, lambda insert, x: insert(arith.MaxSIOp(x[0], zero))
        )
        places = kernel.split(somewhere, sizes)
        kept = kernel.operand(op, other, places_along(loops, op, []), order)
        body = kernel.body(
            op, places_along(loops, op, places), order, {old: value, companion: kept}
        )
        gone = body.value(choice.companion, order)

        def known(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
            is_there = insert(arith.CmpiOp(x[0], zero, "sge"))
            return insert(arith.SelectOp(is_there, x[1], x[2]))

        tile = build.map([place, gone, kept], order, companion.type, known)
        return [value, tile] if choice.value == 0 else [tile, value]


def _select(insert: Insert, x: Sequence[SSAValue]) -> SSAValue:
    return insert(arith.SelectOp(*x))


def _better(choice: BestChoice) -> Region:
    """Of two numbers with their places the better one, or that which comes first."""
    element, relation = choice.condition.lhs.type, choice.condition.predicate.value.data
    block = Block(arg_types=[element, I32, element, I32])
    one, at, other, there = block.args
    compare = type(choice.condition)
    equal = 1 if isinstance(choice.condition, arith.CmpfOp) else 0
    better, alike = compare(other, one, relation), compare(other, one, equal)
    earlier = arith.CmpiOp(there, at, "slt")
    first = arith.AndIOp(alike.result, earlier.result)
    taken = arith.OrIOp(better.result, first.result)
    value: Operation = arith.SelectOp(taken.result, other, one)
    if not isinstance(choice.best, arith.SelectOp):  # which knows what becomes of a NaN
        value = choice.best.create(
            operands=[other, one],
            result_types=[element],
            properties=dict(choice.best.properties),
        )
    place = arith.SelectOp(taken.result, there, at)
    end = frag.YieldOp(value, place.result)
    block.add_ops([better, alike, earlier, first, taken, value, place, end])
    return Region(block)
