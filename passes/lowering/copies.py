"""Copies of a matrix from global to shared memory by all threads of a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Region, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.isa.versions import CP_ASYNC, has
from fragir.layout import Layout
from fragir.layout.distribution import handed_out
from fragir.layout.modes import Point
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace, address, inside
from fragir.passes.lowering.packed import divided, in_units
from fragir.passes.lowering.positions import NOWHERE, LaneOffset

CHUNK_BYTES = 16  # what one cp.async copies (PTX ISA 9.2, section 9.7.9.25.3.1)


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
    """`frag.copy`: 16 bytes a thread at a time where alignment allows it, else by elements.

    Where alignment depends on sizes known at run time only, both ways are emitted and the sizes
    decide, for all threads alike.
    """
    if source.bits < 8:
        along, per = len(source.shape) - 1, 8 // source.bits
        if source.contiguous() != along or target.contiguous() != len(target.shape) - 1:
            raise FragirError(
                f"{source.element} is copied where its last dimension is contiguous",
                hint="elements smaller than a byte share one with their neighbours",
            )
        source_indices = divided(ar, source_indices, along, per, "an index")
        source = in_units(ar, source, along)
        target = in_units(ar, target, len(target.shape) - 1)
    rows, cols = target.shape[-2:]
    assert isinstance(rows, int)
    assert isinstance(cols, int)
    chunk = CHUNK_BYTES // target.size
    job = _Copy(ar, hardware, source, source_indices, target, target_indices, rows, cols, masked)
    in_rows = target.contiguous() == len(target.shape) - 1 and target.run % chunk == 0
    condition: Predicate = in_rows and cols % chunk == 0
    if condition:
        condition = job.aligned(chunk)

    def by_chunks() -> None:
        if has_cp_async(target_machine):
            job.asynchronous(chunk)
        else:
            job.through_registers(chunk)

    if condition is True:
        by_chunks()
    elif condition is False:
        job.by_elements()
    else:
        job.branch(condition, by_chunks)
    if not is_async and has_cp_async(target_machine) and condition is not False:
        ar.insert(ptx.SyncOp("cp.async.wait_all"))


class _Copy:
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

    def aligned(self, chunk: int) -> Predicate:
        """Whether every aligned group of `chunk` elements of a row is 16-byte aligned in memory
        and lies inside or outside the mask as a whole."""
        ar, source = self.ar, self.source
        if source.strides[-1] != 1:
            return False
        wanted = [source.strides[d] for d in range(len(source.shape) - 1) if source.shape[d] != 1]
        wanted.append(self.source_at[-1])
        if self.masked:
            wanted.append(source.shape[-1])
        result: Predicate = True
        for value in wanted:
            if gcd(ar.divisor(value), chunk) == chunk:
                continue
            if isinstance(value, int):
                return False
            result = ar.both(result, ar.compare("eq", ar.rem(value, chunk), 0))
        return result

    def places(self, layout: Layout) -> tuple[MemoryPlace, MemoryPlace]:
        """Where a thread's part begins, in the source and in the target."""
        row, col = self.hardware.coordinate(layout, 0), self.hardware.coordinate(layout, 1)
        leading = len(self.source.shape) - 2
        source = MemoryPlace((*[NOWHERE] * leading, row, col), self.source_at)
        leading = len(self.target.shape) - 2
        target = MemoryPlace((*[NOWHERE] * leading, row, col), self.target_at)
        return source, target

    def _constants(self, memory: LaneMemory, point: Point) -> tuple[int, ...]:
        return (*[0] * (len(memory.shape) - 2), *point)

    def _pieces(self, chunk: int):
        """(source pointer, offset, target pointer, offset, whether it exists) of every piece."""
        ar = self.ar
        layout, spare = distribution(self.rows, self.cols, chunk, self.hardware.threads)
        source, target = self.places(layout)
        for point in layout.axis("element").points(2):
            exists: Predicate = True
            if spare:
                row = target.coordinate(ar, len(self.target.shape) - 2, point[0])
                exists = ar.below(row, self.rows)
            constant = self._constants(self.source, point)
            valid = inside(ar, self.source, source, constant) if self.masked else True
            yield (
                address(ar, self.source, source, constant),
                address(ar, self.target, target, self._constants(self.target, point)),
                valid,
                exists,
            )

    def asynchronous(self, chunk: int) -> None:
        """By cp.async; outside the mask the target is filled with zeros."""
        for (source, source_offset), (target, target_offset), valid, exists in self._pieces(chunk):
            self._guarded(
                exists,
                ptx.CpAsyncOp(
                    target,
                    target_offset,
                    source,
                    source_offset,
                    CHUNK_BYTES,
                    self.ar.predicate(valid),
                ),
            )

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
        for (source, source_offset), (target, target_offset), valid, exists in self._pieces(chunk):
            predicate = ar.predicate(ar.both(valid, exists))
            otherwise = None if predicate is None else ar.zero(type_)
            load = ptx.LoadOp(source, source_offset, type_, predicate, otherwise)
            value = ar.insert(load).value
            ar.insert(ptx.StoreOp(value, target, target_offset, ar.predicate(exists)))

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
            source = MemoryPlace(
                (*[NOWHERE] * (len(self.source.shape) - 2), row, col), self.source_at
            )
            target = MemoryPlace(
                (*[NOWHERE] * (len(self.target.shape) - 2), row, col), self.target_at
            )
            zero = self._constants(self.source, (0, 0))
            valid = inside(ar, self.source, source, zero) if self.masked else True
            predicate = ar.predicate(valid)
            element = self.source.element
            pointer, offset = address(ar, self.source, source, zero)
            otherwise = None if predicate is None else ar.zero(element)
            value = ar.insert(ptx.LoadOp(pointer, offset, element, predicate, otherwise)).value
            pointer, offset = address(ar, self.target, target, self._constants(self.target, (0, 0)))
            ar.insert(ptx.StoreOp(value, pointer, offset))
            ar.insert(scf.YieldOp())
        first, last = ar.value(self.hardware.thread), ar.value(total)
        ar.insert(scf.ForOp(first, last, ar.value(threads), [], body))

    def branch(self, condition: SSAValue, by_chunks: object) -> None:
        """Both ways, chosen at run time."""
        from xdsl.dialects import scf

        blocks = Block(), Block()
        assert callable(by_chunks)
        for block, build in zip(blocks, (by_chunks, self.by_elements), strict=True):
            with self.ar.inside(block):
                build()
                self.ar.insert(scf.YieldOp())
        self.ar.insert(scf.IfOp(condition, [], Region(blocks[0]), Region(blocks[1])))


@lru_cache(maxsize=1024)
def distribution(rows: int, cols: int, chunk: int, threads: int) -> tuple[Layout, bool]:
    """Pieces of `chunk` columns over threads, neighbours along the columns.

    The flag says that the last round of threads goes beyond the last row.
    """
    width = gcd(cols // chunk, threads)
    down = threads // width
    rounds = -(-rows // down)
    layout = handed_out((rounds * down, cols), {"thread": (down, width)}, piece=(1, chunk))
    return layout, rows % down != 0
