"""The pieces of rows that threads copy into shared memory: which, from where, to where, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Region, SSAValue

from fragir.dialects import ptx
from fragir.layout import Layout
from fragir.layout.distribution import handed_out
from fragir.layout.modes import Point
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.distances import Stride
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace, address, inside
from fragir.passes.lowering.positions import NOWHERE, LaneOffset
from fragir.passes.lowering.strides import divisor, low

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
                self._guarded(piece.exists, op)

        narrow = chunk * self.target.size < WIDTHS[0]
        self.rounds(chunk, UNROLLED if narrow else self.rows * self.cols, build)

    def _guarded(self, exists: Predicate, op: ptx.CpAsyncOp) -> None:
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
            source = _moved(ar, source, dim, first)
            target = _moved(ar, target, dim, first)
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


def _moved(ar: Arithmetic, place: MemoryPlace, dim: int, by: Value) -> MemoryPlace:
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
