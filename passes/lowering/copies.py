"""Copies of a matrix from global to shared memory by all threads of a block.

A thread copies 16 bytes at a time where rows begin at multiples of 16, else 8 or 4 where rows or
elements allow that: all these by `cp.async`. What is left, elements of less than 4 bytes in rows at
any address, goes as words of memory through registers (`passes/lowering/shifted_rows.py`). Where
sizes known at run time only decide, they choose, alike for all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from xdsl.ir import Block, Region

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.isa.versions import CP_ASYNC, has
from fragir.passes.lowering.arithmetic import Arithmetic, Predicate, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.packed import divided, in_units
from fragir.passes.lowering.row_copies import WIDTHS, RowCopy


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
        source_indices = divided(ar, source_indices, along, per, "an index")
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
        from fragir.passes.lowering.shifted_rows import ShiftedRows  # few programs need it

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
