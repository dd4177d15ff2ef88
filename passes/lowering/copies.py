"""Copies of a matrix from global to shared memory by all threads of a block.

A thread copies 16 bytes at a time where rows begin at multiples of 16, else 8 or 4 where rows or
elements allow that: all these by `cp.async`. What is left, elements of less than 4 bytes in rows at
any address, goes as words of memory through registers (`passes/lowering/copies.py`). Where
sizes known at run time only decide, they choose, alike for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import gcd
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import Block, Region, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.isa.versions import CP_ASYNC, has
from fragir.layout import Layout
from fragir.layout.distribution import handed_out
from fragir.layout.modes import Point
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Stride, Value
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.layout_arithmetic import NOWHERE, LaneOffset
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace, address, divisor, inside, low
from fragir.passes.lowering.packed import divide_index, in_units

# -- row copies ------------------------------------------------------------------------------------
# The pieces of rows that threads copy into shared memory: which, from where, to where, and how.

WIDTHS = (16, 8, 4)  # bytes that one cp.async copies (PTX ISA 9.2, section 9.7.9.25.3.1)
UNROLLED = 4  # narrow pieces that a thread copies one after the other; more are a loop


class RowCopy:
    """One copy of rows x cols elements."""

    def __init__(
        self,
        ar: Arithmetic,
        hardware: Hardware,
        source: LaneMemory,
        source_indices: Sequence[Value],
        target: LaneMemory,
        target_indices: Sequence[Value],
        rows: int,
        cols: int,
        masked: bool,
    ):
        self.ar, self.hardware = ar, hardware
        self.source, self.target = source, target
        self.source_at = tuple(source_indices)
        self.target_at = (*target_indices, 0, 0)
        self.rows, self.cols, self.masked = rows, cols, masked

    def fits(self, chunk: int) -> bool:
        """Whether pieces of so many elements of a row lie side by side in the target."""
        if chunk == 1:
            return True
        target = self.target
        in_rows = target.contiguous() == len(target.shape) - 1 and target.run % chunk == 0
        return chunk > 0 and in_rows and self.cols % chunk == 0

    def aligned(self, chunk: int) -> Predicate:
        """Whether every aligned group of `chunk` elements of a row is as aligned in memory
        and lies inside or outside the mask as a whole."""
        ar, source = self.ar, self.source
        if chunk == 1:
            return True
        if source.strides[-1] != 1:
            return False
        wanted: list[Stride] = [
            source.strides[d] for d in range(len(source.shape) - 1) if source.shape[d] != 1
        ]
        wanted.append(self.source_at[-1])
        if self.masked:
            wanted.append(source.shape[-1])
        result: Predicate = True
        for value in wanted:
            if gcd(divisor(ar, value), chunk) == chunk:
                continue
            if isinstance(value, int):
                return False
            result = ar.both(result, ar.compare("eq", ar.rem(low(ar, value), chunk), 0))
        return result

    def places(self, layout: Layout) -> tuple[MemoryPlace, MemoryPlace]:
        """Where a thread's part begins, in the source and in the target."""
        row, col = self.hardware.coordinate(layout, 0), self.hardware.coordinate(layout, 1)
        leading = len(self.source.shape) - 2
        source = MemoryPlace((*[NOWHERE] * leading, row, col), self.source_at)
        leading = len(self.target.shape) - 2
        target = MemoryPlace((*[NOWHERE] * leading, row, col), self.target_at)
        return source, target

    def constants(self, memory: LaneMemory, point: Point) -> tuple[int, ...]:
        return (*[0] * (len(memory.shape) - 2), *point)

    def rounds(self, chunk: int, unrolled: int, build: Callable[[RowRound], None]) -> None:
        """All pieces of `chunk` elements, `unrolled` at a time: more are a loop."""
        layout, spare = distribution(self.rows, self.cols, chunk, self.hardware.threads)
        count = layout.size("element")
        if count <= unrolled:
            build(RowRound(self, layout, spare, 0))
            return
        from xdsl.dialects import scf  # few programs need it

        ar = self.ar
        rows = _rows_at_once(self.cols, chunk, self.hardware.threads, unrolled)
        part = handed_out_rows(rows, self.cols, chunk, self.hardware.threads)
        body = Block(arg_types=[ar.constant(0).type])
        first = body.args[0]
        first.name_hint = "row"
        ar.assume_divisor(first, rows)
        with ar.inside(body):
            build(RowRound(self, part, self.rows % rows != 0, first))
            ar.insert(scf.YieldOp())
        bounds = ar.value(0), ar.value(self.rows), ar.value(rows)
        ar.insert(scf.ForOp(*bounds, [], body))

    def asynchronous(self, chunk: int) -> None:
        """By cp.async; outside the mask the target is filled with zeros."""

        def build(round_: RowRound) -> None:
            for piece in round_.pieces():
                pointer, offset = piece.source
                target, target_offset = piece.target
                valid = self.ar.predicate(piece.valid)
                size = chunk * self.target.size
                op = ptx.CpAsyncOp(target, target_offset, pointer, offset, size, valid)
                self._copy_guarded(piece.exists, op)

        narrow = chunk * self.target.size < WIDTHS[0]
        self.rounds(chunk, UNROLLED if narrow else self.rows * self.cols, build)

    def _copy_guarded(self, exists: Predicate, op: ptx.CpAsyncOp) -> None:
        if exists is True:
            self.ar.insert(op)
            return
        from xdsl.dialects import scf  # few programs need it

        condition = self.ar.predicate(exists)
        assert condition is not None
        then = Block()
        with self.ar.inside(then):
            self.ar.insert(op)
            self.ar.insert(scf.YieldOp())
        self.ar.insert(scf.IfOp(condition, [], Region(then)))

    def through_registers(self, chunk: int) -> None:
        """By a load and a store of 16 bytes, for machines without cp.async."""
        ar = self.ar
        type_ = VectorType(self.source.element, [chunk])

        def build(round_: RowRound) -> None:
            for piece in round_.pieces():
                predicate = ar.predicate(ar.both(piece.valid, piece.exists))
                otherwise = None if predicate is None else ar.zero(type_)
                value = ar.insert(ptx.LoadOp(*piece.source, type_, predicate, otherwise)).value
                ar.insert(ptx.StoreOp(value, *piece.target, ar.predicate(piece.exists)))

        self.rounds(chunk, self.rows * self.cols, build)

    def by_elements(self) -> None:
        """Element by element in a loop: slow, small, and right for every alignment."""
        from xdsl.dialects import scf

        ar = self.ar
        total, threads = self.rows * self.cols, self.hardware.threads
        body = Block(arg_types=[ar.constant(0).type])
        number_ = body.args[0]
        number_.name_hint = "n"
        with ar.inside(body):
            row = LaneOffset(ar.div(number_, self.cols), None)
            col = LaneOffset(ar.rem(number_, self.cols), None)
            self.element(row, col)
            ar.insert(scf.YieldOp())
        first, last = ar.value(self.hardware.thread), ar.value(total)
        ar.insert(scf.ForOp(first, last, ar.value(threads), [], body))

    def element(self, row: LaneOffset, col: LaneOffset) -> None:
        """One element of the tile; zero outside of the mask."""
        ar = self.ar
        source = MemoryPlace((*[NOWHERE] * (len(self.source.shape) - 2), row, col), self.source_at)
        target = MemoryPlace((*[NOWHERE] * (len(self.target.shape) - 2), row, col), self.target_at)
        zero = self.constants(self.source, (0, 0))
        valid = inside(ar, self.source, source, zero) if self.masked else True
        predicate = ar.predicate(valid)
        element = self.source.element
        pointer, offset = address(ar, self.source, source, zero)
        otherwise = None if predicate is None else ar.zero(element)
        value = ar.insert(ptx.LoadOp(pointer, offset, element, predicate, otherwise)).value
        pointer, offset = address(ar, self.target, target, self.constants(self.target, (0, 0)))
        ar.insert(ptx.StoreOp(value, pointer, offset))


class RowPiece(NamedTuple):
    """What a thread copies at once: places as pointer and bytes, whether it lies inside the mask,
    and whether it lies inside the target."""

    source: tuple[SSAValue, int]
    target: tuple[SSAValue, int]
    valid: Predicate
    exists: Predicate


class RowRound:
    """Pieces of one thread, from a row of the target on."""

    def __init__(self, job: RowCopy, layout: Layout, spare: bool, first: Value):
        self.job, self.layout, self.spare = job, layout, spare
        source, target = job.places(layout)
        if first != 0:
            ar, dim = job.ar, -2
            source = _moved_place(ar, source, dim, first)
            target = _moved_place(ar, target, dim, first)
        self.source, self.target = source, target
        self.shifted: dict[Value, MemoryPlace] = {}  # the source from whole words on, by the shift
        self.points = layout.axis("element").points(2)

    def exists(self, point: Point) -> Predicate:
        """Whether a piece lies inside the target."""
        if not self.spare:
            return True
        ar, job = self.job.ar, self.job
        row = self.target.coordinate(ar, len(job.target.shape) - 2, point[0])
        return ar.below(row, job.rows)

    def pieces(self) -> Iterator[RowPiece]:
        """All pieces."""
        ar, job = self.job.ar, self.job
        for point in self.points:
            constant = job.constants(job.source, point)
            valid = inside(ar, job.source, self.source, constant) if job.masked else True
            yield RowPiece(
                address(ar, job.source, self.source, constant),
                address(ar, job.target, self.target, job.constants(job.target, point)),
                valid,
                self.exists(point),
            )


def _moved_place(ar: Arithmetic, place: MemoryPlace, dim: int, by: Value) -> MemoryPlace:
    """A place further along a dimension."""
    at = list(place.at)
    at[dim] = ar.add(at[dim], by)
    return MemoryPlace(place.lanes, tuple(at))


@lru_cache(maxsize=1024)
def distribution(rows: int, cols: int, chunk: int, threads: int) -> tuple[Layout, bool]:
    """Pieces of `chunk` columns over threads, neighbours along the columns.

    The flag says that the last round of threads goes beyond the last row.
    """
    down = threads // gcd(cols // chunk, threads)
    rounds = -(-rows // down)
    return handed_out_rows(rounds * down, cols, chunk, threads), rows % down != 0


def _rows_at_once(cols: int, chunk: int, threads: int, unrolled: int) -> int:
    """The rows of `unrolled` pieces of every thread, in whole rows of threads."""
    pieces = cols // chunk
    width = gcd(pieces, threads)
    return threads // width * max(1, unrolled // (pieces // width))


@lru_cache(maxsize=1024)
def handed_out_rows(rows: int, cols: int, chunk: int, threads: int) -> Layout:
    """Whole rows in pieces over threads; the threads side by side in a row divide its pieces."""
    width = gcd(cols // chunk, threads)
    return handed_out((rows, cols), {"thread": (threads // width, width)}, piece=(1, chunk))


def has_cp_async(target: str) -> bool:
    """Whether the target copies in the background; others load and store."""
    return has(CP_ASYNC, target)


def copy(
    ar: Arithmetic,
    hardware: Hardware,
    source: LaneMemory,
    source_indices: Sequence[Value],
    target: LaneMemory,
    target_indices: Sequence[Value],
    *,
    masked: bool,
    is_async: bool,
    target_machine: str,
) -> None:
    """`frag.copy`: the widest pieces that alignment allows.

    Where alignment depends on sizes known at run time only, several ways are emitted and the sizes
    decide, for all threads alike.
    """
    if source.bits < 8:
        along, per = len(source.shape) - 1, 8 // source.bits
        if source.contiguous() != along or target.contiguous() != len(target.shape) - 1:
            raise FragirError(
                f"{source.element} is copied where its last dimension is contiguous",
                hint="elements smaller than a byte share one with their neighbours",
            )
        source_indices = divide_index(ar, source_indices, along, per, "an index")
        source = in_units(ar, source, along)
        target = in_units(ar, target, len(target.shape) - 1)
    rows, cols = target.shape[-2:]
    assert isinstance(rows, int)
    assert isinstance(cols, int)
    job = RowCopy(ar, hardware, source, source_indices, target, target_indices, rows, cols, masked)
    asynchronous = has_cp_async(target_machine)
    ways = list(_ways(job, asynchronous))
    _choose(ar, ways)
    if not is_async and any(way.asynchronous for way in ways):
        ar.insert(ptx.SyncOp("cp.async.wait_all"))


class _Way(NamedTuple):
    """One way to copy, and when it is possible."""

    condition: Predicate
    build: Callable[[], None]
    asynchronous: bool = True


def _ways(job: RowCopy, asynchronous: bool) -> Iterator[_Way]:
    """The ways to copy, best first, until one is always possible.

    Of those that sizes known at run time only decide there are two at most: of whole accesses, and
    of words.
    """
    for width in WIDTHS:
        if not asynchronous and width < WIDTHS[0]:
            break
        chunk = width // job.target.size
        condition: Predicate = chunk > 0 and job.fits(chunk) and job.aligned(chunk)
        if condition is False or (condition is not True and width == 8):
            continue
        build = job.asynchronous if asynchronous else job.through_registers
        yield _Way(condition, partial(build, chunk), asynchronous)
        if condition is True:
            return
    chunk = next((n for n in (16, 8, 4) if job.fits(n // job.target.size)), 0)
    if job.target.size < 4 and chunk and job.source.strides[-1] == 1:
        yield _Way(True, ShiftedRows(job, chunk // job.target.size).copy, False)
    else:
        yield _Way(True, job.by_elements, False)


def _choose(ar: Arithmetic, ways: Sequence[_Way]) -> None:
    """The first way whose condition holds; the last one's always does."""
    first, *rest = ways
    condition = ar.predicate(first.condition)
    if condition is None or not rest:
        first.build()
        return
    from xdsl.dialects import scf  # few programs need it

    blocks = Block(), Block()
    with ar.inside(blocks[0]):
        first.build()
        ar.insert(scf.YieldOp())
    with ar.apart(blocks[1]):
        _choose(ar, rest)
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(condition, [], Region(blocks[0]), Region(blocks[1])))


# -- shifted rows ----------------------------------------------------------------------------------
# Copies of rows that begin at any address: words of memory, shifted in registers.
#
# Of elements of one or two bytes a row may begin inside of a word. A thread reads the words of
# memory in which its piece of a row lies, one more than the piece has, shifts each with the next
# (`prmt`), and stores the piece whole; all loads of a round are issued before the first store.
# Words are read only where all of their elements lie in the row; the columns at the row's end,
# where that is not so, go element by element, in a loop that has nothing to do elsewhere:
#
#     columns of the tile     0 ... inner           inner ... outer        outer ... end
#                             pieces, by words      by elements            pieces of zeros

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
        inner = self._bounded_row(rounded, 0, job.cols)
        width = chunk if self.per == 2 else 2 * chunk
        outer = self._bounded_row(ar.add(inner, width), 0, job.cols)
        if isinstance(at, int):
            return (inner, outer) if at >= 0 else (0, job.cols)
        if not job.masked:
            return inner, outer
        before = ar.compare("slt", at, 0)  # a tile that begins left of the matrix: all by elements
        return self._choose(before, 0, inner), self._choose(before, job.cols, outer)

    def _bounded_row(self, x: Value, low: int, high: int) -> Value:
        if isinstance(x, int):
            return min(max(x, low), high)
        ar = self.ar
        for op, bound in (arith.MaxSIOp, low), (arith.MinSIOp, high):
            left, right = ar.value(x), ar.value(bound)
            x = ar.pure((op, left, right), (left, right), lambda op=op, a=left, b=right: op(a, b))
        return x

    def _choose(self, condition: Predicate, x: Value, y: Value) -> Value:
        assert isinstance(condition, SSAValue)
        operands = condition, self.ar.value(x), self.ar.value(y)
        key = (arith.SelectOp, *operands)
        return self.ar.pure(key, operands, lambda: arith.SelectOp(*operands))

    # --- by words -----------------------------------------------------------------------------

    def _round(self, round_: RowRound) -> None:
        loaded = [(point, self._load(round_, point)) for point in round_.points]
        for point, words in loaded:
            self._store(round_, point, self._shift_words(words, self._shift(round_, point)))

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

    def _shift_words(self, words: list[SSAValue], shift: Value) -> SSAValue:
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
