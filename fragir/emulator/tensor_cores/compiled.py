"""mma and wgmma by the compiled core: register file to register file.

`CompiledMma` is one step of the machine: some neighbouring mma of one opcode, for any warps.
`CompiledWgmma` is one wgmma. Both give the bits of `Mma.execute` and `Wgmma.execute`, which remain
what is true; nothing here checks anything that they check.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.library import library
from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.numbers.types import I64, U8, U32, Array
from fragir.emulator.tensor_cores.compiled_plans import (
    CompiledPlan,
    NativePlan,
    mma_plan,
    wgmma_plan,
)
from fragir.emulator.tensor_cores.mma import Mma
from fragir.emulator.tensor_cores.wgmma import Wgmma

_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

#: Products of one call from which on a second thread is worth waking.
PRODUCTS_A_THREAD = 1 << 19


class NativeOperand(ctypes.Structure):
    """`Operand` of mma.h."""

    _fields_: ClassVar = [
        ("base", _POINTER),
        ("rows", _POINTER),
        ("slot", _POINTER),
        ("pitch", _LONG),
        ("slots", _INT),
        ("by_place", _INT),
    ]


class NativeMma(ctypes.Structure):
    """`Mma` of mma.h."""

    _fields_: ClassVar = [
        ("plan", ctypes.POINTER(NativePlan)),
        *((name, NativeOperand) for name in "dabc"),
        *((name, _POINTER) for name in ("e", "scale_a", "scale_b", "warps")),
        ("origin", _LONG),
        ("count", _LONG),
    ]


class NativeWgmma(ctypes.Structure):
    """`Wgmma` of mma.h."""

    _fields_: ClassVar = [
        ("plan", ctypes.POINTER(NativePlan)),
        *((name, NativeOperand) for name in "da"),
        *(
            (name, _POINTER)
            for name in ("e", "shared", "home", "warps", "chunks_a", "chunks_b", "accumulates")
        ),
        ("count_a", _LONG),
        ("count_b", _LONG),
        *((name, _INT) for name in ("bits", "transposed_a", "transposed_b")),
        ("negate_a", ctypes.c_uint32),
        ("negate_b", ctypes.c_uint32),
    ]


@dataclass(slots=True)
class FileRows:
    """Registers of a file `[registers, warps, 32]`: rows `[count, instructions]` of it."""

    file: Array
    rows: npt.NDArray[np.intp]


#: An operand: registers that stay where they are, or arrays `[count, instructions * warps, 32]`
#: of the selected warps, which come with each call.
Source = FileRows | None


@dataclass(slots=True)
class _Kept:
    """The arrays that an operand points to."""

    rows: I64
    slot: npt.NDArray[np.int32]


def _operand(to: NativeOperand, source: Source, count: int, instructions: int) -> _Kept:
    if source is None:
        rows = np.arange(count * instructions, dtype=np.int64).reshape(count, instructions)
        to.by_place = 1
    else:
        rows = np.ascontiguousarray(source.rows[:count], np.int64)
        to.base = source.file.ctypes.data
        to.pitch = source.file.shape[1] * 32
    kept = _Kept(rows, np.array(slots_of(rows), np.int32))
    to.rows, to.slot = kept.rows.ctypes.data, kept.slot.ctypes.data
    to.slots = int(kept.slot.max()) + 1
    return kept


def ranges(outer: int, inner: int, jobs: int, products: int) -> list[tuple[int, int, int, int]]:
    """How threads share `outer` times `inner` things: [first, last) of the one, then of the other.

    The outer are cut where there are enough of them, else the inner. `products`: of an outer one.
    """
    if outer >= jobs:
        split = pieces(outer, jobs, PRODUCTS_A_THREAD // products + 1)
        return [(part.start, part.stop, 0, inner) for part in split]
    split = pieces(inner, jobs, PRODUCTS_A_THREAD * inner // (products * outer) + 1)
    return [(0, outer, part.start, part.stop) for part in split]


def slots_of(rows: Array) -> list[int]:
    """Of each column of `[registers, instructions]`: equal numbers, from 0, for equal ones."""
    seen: dict[bytes, int] = {}
    return [seen.setdefault(column.tobytes(), len(seen)) for column in rows.T]


def _run(jobs: int, parts: Sequence[Callable[[], int]]) -> None:
    if any(side_by_side(jobs, parts)):
        raise MemoryError


class CompiledMma:
    """`instructions` neighbouring independent mma of one opcode.

    `d`, `a`, `b`, `c`: where their registers lie; None where arrays are handed to each call.
    `options`: the immediates, as `Mma.execute` has them.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        op: Mma,
        instructions: int,
        d: Source,
        a: Source,
        b: Source,
        c: Source,
        **options: Any,
    ) -> None:
        self.function = library.fragir_mma
        self.instructions = instructions
        self.plan: CompiledPlan = mma_plan(op, **options)
        native = self.plan.native
        self.job = job = NativeMma(plan=ctypes.pointer(native), count=instructions)
        counts = (native.d_count, native.a.count, native.b.count, native.c.count)
        operands = zip((job.d, job.a, job.b, job.c), (d, a, b, c), counts, strict=True)
        self.kept = [_operand(to, source, count, instructions) for to, source, count in operands]
        self.products = native.products * native.m * native.n * native.depth * instructions

    def __call__(
        self,
        warps: slice | npt.NDArray[np.intp],
        jobs: int = 1,
        arrays: dict[str, Array] | None = None,
        **words: U32,
    ) -> None:
        """For the selected warps.

        `arrays`: the operands that are none of a file, by name: `[count, instructions * W, 32]`,
        D's is written to. `words`: `e`, `sfa`, `sfb` as `Mma.execute` has them.
        """
        job = self.job
        alive: list[Array] = []
        if isinstance(warps, slice):
            total, job.origin, job.warps = warps.stop - warps.start, warps.start, None
        else:
            chosen = np.ascontiguousarray(warps, np.int64)
            alive.append(chosen)
            total, job.warps = len(chosen), chosen.ctypes.data
        for name, array in (arrays or {}).items():
            operand: NativeOperand = getattr(job, name)
            operand.base, operand.pitch = array.ctypes.data, total * 32
        for name, word in words.items():
            array = np.ascontiguousarray(word, np.uint32)
            alive.append(array)
            setattr(job, {"e": "e", "sfa": "scale_a", "sfb": "scale_b"}[name], array.ctypes.data)
        at = ctypes.byref(job)
        parts = ranges(total, self.instructions, jobs, self.products)
        _run(jobs, [partial(self.function, at, *map(_LONG, part)) for part in parts])


class CompiledWgmma:
    """One wgmma: `d` and `a` rows of a register file, `a` None where A lies in shared memory."""

    def __init__(
        self,
        library: ctypes.CDLL,
        op: Wgmma,
        d: FileRows,
        a: FileRows | None,
        *,
        selector: int = 0,
        scale_a: int = 1,
        scale_b: int = 1,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> None:
        self.function = library.fragir_wgmma
        self.plan = wgmma_plan(op, selector)
        native = self.plan.native
        sign = 1 << (op.plan.bits - 1) if op.plan.negates else 0
        self.job = job = NativeWgmma(
            plan=ctypes.pointer(native),
            bits=op.plan.bits,
            transposed_a=transpose_a,
            transposed_b=transpose_b,
            negate_a=sign if scale_a == -1 else 0,
            negate_b=sign if scale_b == -1 else 0,
        )
        self.kept = [_operand(job.d, d, native.d_count, 1)]
        if a is not None:
            self.kept.append(_operand(job.a, a, native.a.count, 1))
        self.products = 64 * op.plan.n * native.depth

    def __call__(
        self,
        warps: npt.NDArray[np.intp],
        shared: U8,
        home: I64,
        a: U32 | None,
        b: U32,
        scale_d: npt.NDArray[np.bool_],
        e: U32 | None = None,
        jobs: int = 1,
    ) -> None:
        """For G warpgroups, of which `warps` are the first warps.

        `shared`: the arena; `home`: where the block of each begins in it; `a`, `b`: the chunks
        `[G, x]` of `Wgmma.addresses`; `scale_d`: `[G]`; `e`: `[1, G, 4, 32]`.
        """
        job, groups = self.job, len(warps)
        alive: list[Array] = [
            np.ascontiguousarray(home, np.int64),
            np.ascontiguousarray(warps, np.int64),
            np.ascontiguousarray(b, np.uint32),
            np.ascontiguousarray(scale_d, np.uint8),
        ]
        job.shared, job.count_b = shared.ctypes.data, b.size // groups
        job.home, job.warps, job.chunks_b, job.accumulates = (x.ctypes.data for x in alive)
        for name, words in (("chunks_a", a), ("e", e)):
            if words is not None:
                alive.append(np.ascontiguousarray(words, np.uint32))
                setattr(job, name, alive[-1].ctypes.data)
        if a is not None:
            job.count_a = a.size // groups
        at = ctypes.byref(job)
        calls = [
            partial(self.function, at, _LONG(first), _LONG(last), *warps_of)
            for first, last, *warps_of in ranges(groups, 4, jobs, self.products)
        ]
        _run(jobs, calls)


# -- which core ------------------------------------------------------------------------------------


def mma_core(
    op: Mma, instructions: int, d: Source, a: Source, b: Source, c: Source, **options: Any
) -> CompiledMma | None:
    """What computes `instructions` neighbouring mma; None: numpy does."""
    found = library()
    if found is None:
        return None
    return CompiledMma(found, op, instructions, d, a, b, c, **options)


def wgmma_core(op: Wgmma, d: FileRows, a: FileRows | None, **options: Any) -> CompiledWgmma | None:
    """What computes a wgmma; None: numpy does."""
    found = library()
    return None if found is None else CompiledWgmma(found, op, d, a, **options)
