"""Copies of rows that begin at any address: words of memory, shifted in registers.

Of elements of one or two bytes a row may begin inside of a word. A thread reads the words of memory
in which its piece of a row lies, one more than the piece has, shifts each with the next
(`prmt`), and stores the piece whole; all loads of a round are issued before the first store. Words
are read only where all of their elements lie in the row; the columns at the row's end, where that
is not so, go element by element, in a loop that has nothing to do elsewhere:

    columns of the tile     0 ... inner           inner ... outer        outer ... end
                            pieces, by words      by elements            pieces of zeros
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Block, SSAValue

from fragir.dialects import ptx
from fragir.layout.modes import Point
from fragir.passes.lowering.arithmetic import Predicate, Value
from fragir.passes.lowering.memory import MemoryPlace, address, inside
from fragir.passes.lowering.positions import NOWHERE, LaneOffset
from fragir.passes.lowering.strides import low

if TYPE_CHECKING:
    from fragir.passes.lowering.row_copies import RowCopy, RowRound

WORD = 4  # bytes
LOADED = 4  # pieces whose words are in registers at a time
IN_ORDER, NEXT = 0x3210, 0x1111  # selectors of prmt: no shift, and what one byte of it adds


class ShiftedRows:
    """One copy by pieces of `chunk` elements."""

    def __init__(self, job: RowCopy, chunk: int):
        self.job, self.ar, self.chunk = job, job.ar, chunk
        self.per = WORD // job.source.size  # elements of a word
        self.words = chunk // self.per

    def copy(self) -> None:
        """Rows by words, then the columns at their ends."""
        self.inner, self.outer = self._ends()
        self.job.rounds(self.chunk, LOADED, self._round)
        self._by_elements()

    # --- columns ------------------------------------------------------------------------------

    def _ends(self) -> tuple[Value, Value]:
        """Columns of the tile that go by elements, from the first up to the last."""
        ar, job, chunk = self.ar, self.job, self.chunk
        at, extent = job.source_at[-1], job.source.shape[-1]
        # the last word of a piece has up to per - 1 elements more
        length = ar.sub(extent, ar.add(at, self.per - 1))
        rounded = ar.mul(ar.quotient(length, chunk), chunk)
        inner = self._bounded(rounded, 0, job.cols)
        width = chunk if self.per == 2 else 2 * chunk
        outer = self._bounded(ar.add(inner, width), 0, job.cols)
        if isinstance(at, int):
            return (inner, outer) if at >= 0 else (0, job.cols)
        if not job.masked:
            return inner, outer
        before = ar.compare("slt", at, 0)  # a tile that begins left of the matrix: all by elements
        return self._chosen(before, 0, inner), self._chosen(before, job.cols, outer)

    def _bounded(self, x: Value, low: int, high: int) -> Value:
        if isinstance(x, int):
            return min(max(x, low), high)
        ar = self.ar
        for op, bound in (arith.MaxSIOp, low), (arith.MinSIOp, high):
            left, right = ar.value(x), ar.value(bound)
            x = ar.pure((op, left, right), (left, right), lambda op=op, a=left, b=right: op(a, b))
        return x

    def _chosen(self, condition: Predicate, x: Value, y: Value) -> Value:
        assert isinstance(condition, SSAValue)
        operands = condition, self.ar.value(x), self.ar.value(y)
        key = (arith.SelectOp, *operands)
        return self.ar.pure(key, operands, lambda: arith.SelectOp(*operands))

    # --- by words -----------------------------------------------------------------------------

    def _round(self, round_: RowRound) -> None:
        loaded = [(point, self._load(round_, point)) for point in round_.points]
        for point, words in loaded:
            self._store(round_, point, self._shifted(words, self._shift(round_, point)))

    def _load(self, round_: RowRound, point: Point) -> list[SSAValue]:
        """The words in which a piece lies; zeros outside of the matrix."""
        ar, job = self.ar, self.job
        shift = self._shift(round_, point)
        place = self._place(round_, shift)
        constant = job.constants(job.source, point)
        readable = ar.both(self._column(round_, point, "slt", self.inner), self._row(round_, point))
        zero, words = ar.zero(i32), list[SSAValue]()
        pointer, offset = address(ar, job.source, place, constant)
        for i in range(self.words + 1):
            if i == self.words:
                readable = ar.both(readable, ar.compare("ne", shift, 0))
            predicate = ar.predicate(readable)
            otherwise = None if predicate is None else zero
            load = ptx.LoadOp(pointer, offset + i * WORD, i32, predicate, otherwise)
            words.append(ar.insert(load).value)
        return words

    def _shifted(self, words: list[SSAValue], shift: Value) -> SSAValue:
        """A piece, from the words in which it lies."""
        ar, job = self.ar, self.job
        selector = ar.value(ar.add(ar.mul(shift, NEXT * job.source.size), IN_ORDER))
        shifted = [
            ar.insert(ptx.PermuteOp(low, high, selector)).result for low, high in pairwise(words)
        ]
        return ar.insert(ptx.PackOp(shifted)).result if len(shifted) > 1 else shifted[0]

    def _store(self, round_: RowRound, point: Point, piece: SSAValue) -> None:
        ar, job = self.ar, self.job
        before = self._column(round_, point, "slt", self.inner)
        behind = self._column(round_, point, "sge", self.outer)
        stored = ar.both(self._either(before, behind), round_.exists(point))
        pointer, offset = address(ar, job.target, round_.target, job.constants(job.target, point))
        ar.insert(ptx.StoreOp(piece, pointer, offset, ar.predicate(stored)))

    def _shift(self, round_: RowRound, point: Point) -> Value:
        """Elements between the beginning of a word and that of the piece."""
        ar, per = self.ar, self.per
        constant = self.job.constants(self.job.source, point)
        total: Value = 0
        for dim, stride in enumerate(self.job.source.strides):
            coordinate = round_.source.coordinate(ar, dim, constant[dim] % per)
            total = ar.add(total, ar.mul(coordinate, low(ar, stride)))
        return ar.rem(total, per)

    def _place(self, round_: RowRound, shift: Value) -> MemoryPlace:
        """Where the words of pieces with this shift begin."""
        place = round_.shifted.get(shift)
        if place is None:
            *lanes, last = round_.source.lanes
            moved = LaneOffset(self.ar.sub(last.value, shift), None)
            place = round_.shifted[shift] = MemoryPlace((*lanes, moved), round_.source.at)
        return place

    def _column(self, round_: RowRound, point: Point, how: str, bound: Value) -> Predicate:
        """A comparison of a piece's first column in the tile."""
        ar = self.ar
        column = round_.target.coordinate(ar, len(self.job.target.shape) - 1, point[1])
        if isinstance(column, int) and isinstance(bound, int):
            return column < bound if how == "slt" else column >= bound
        return ar.compare(how, column, bound)

    def _either(self, p: Predicate, q: Predicate) -> Predicate:
        if isinstance(p, bool):
            return p or q
        if isinstance(q, bool):
            return q or p
        return self.ar.pure((arith.OrIOp, p, q), (p, q), lambda: arith.OrIOp(p, q))

    def _row(self, round_: RowRound, point: Point) -> Predicate:
        """Whether a piece's row, and what is before it, lies in the matrix."""
        job = self.job
        if not job.masked:
            return round_.exists(point)
        # of all columns but the last dimension's, which has bounds of its own
        source = job.source._replace(shape=(*job.source.shape[:-1], 1))
        lanes = (*round_.source.lanes[:-1], NOWHERE)
        place = MemoryPlace(lanes, (*round_.source.at[:-1], 0))
        constant = (*job.constants(job.source, point)[:-1], 0)
        return self.ar.both(inside(self.ar, source, place, constant), round_.exists(point))

    # --- by elements --------------------------------------------------------------------------

    def _by_elements(self) -> None:
        """The columns from inner to outer, in a loop of each thread."""
        from xdsl.dialects import scf

        ar, job = self.ar, self.job
        columns = ar.sub(self.outer, self.inner)
        if columns == 0:
            return
        body = Block(arg_types=[ar.constant(0).type])
        number = body.args[0]
        number.name_hint = "n"
        with ar.inside(body):
            row = ar.rem(number, job.rows)
            column = ar.add(ar.div(number, job.rows), self.inner)
            job.element(LaneOffset(row, None), LaneOffset(column, None))
            ar.insert(scf.YieldOp())
        first, last = ar.value(job.hardware.thread), ar.value(ar.mul(columns, job.rows))
        ar.insert(scf.ForOp(first, last, ar.value(job.hardware.threads), [], body))
