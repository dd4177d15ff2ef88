"""mma and wgmma by numba, where the compiled core was not built: register file to register file.

`NumbaMma` and `NumbaWgmma` are called as `CompiledMma` and `CompiledWgmma` are, with the bits of
`Mma.execute` and `Wgmma.execute`. Making one compiles what it calls, or loads it, and raises what
numba raises where it cannot. They cover floating point but f64, and integers of 4 and 8 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.threads import side_by_side
from fragir.emulator.numbers.types import I64, U8, U32
from fragir.emulator.tensor_cores.compiled import FileRows, Source, ranges, slots_of
from fragir.emulator.tensor_cores.compiled_plans import (
    COLUMNS,
    CompiledPlan,
    NativeElement,
    NativeFragment,
    mma_plan,
    wgmma_plan,
)
from fragir.emulator.tensor_cores.compute import (
    Compute,
    EmulatedFp8,
    FusedMma,
    IntegerProducts,
)
from fragir.emulator.tensor_cores.mma import Mma
from fragir.emulator.tensor_cores.wgmma import Wgmma
from fragir.emulator.tensor_cores.wmma import Converted

_Array = npt.NDArray[Any]
_Part = tuple[int, int, int, int]


def covers(op: Mma | Wgmma) -> bool:
    """Whether numba computes it: not f64, single bits, scales, nor m8n8k4 as a routine."""
    compute: Compute = op.plan.compute
    if isinstance(compute, Converted):
        compute = compute.inner
    if isinstance(compute, IntegerProducts):
        return compute.a != "b1"
    return isinstance(compute, FusedMma | EmulatedFp8)


def _given(values: Any, dtype: npt.DTypeLike) -> _Array:
    """As the compiled functions take arrays: contiguous and not read-only."""
    return np.require(values, dtype, ("C", "W"))


_NO_TABLE = (np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32))


class _Plan:
    """The arrays and numbers of a `CompiledPlan`, C and D as `[product][n / 8][m][8]`."""

    def __init__(self, made: CompiledPlan) -> None:
        self.arrays = {array.ctypes.data: array for array in made.kept}
        self.native = native = made.native
        size = native.products * native.m * native.n
        places: _Array = np.arange(size, dtype=np.int64).reshape(
            native.products, native.m, -1, COLUMNS
        )
        order: _Array = places.transpose(0, 2, 1, 3).ravel()
        self.a, self.b = self._fragment(native.a), self._fragment(native.b)
        word, shift = self._fragment(native.c)
        self.c = np.ascontiguousarray(word[order]), np.ascontiguousarray(shift[order])
        self.parts = np.argsort(order)[self.arrays[native.parts]].astype(np.uint32)
        nothing: _Array = np.zeros(1, np.uint32)
        self.metadata: tuple[_Array, _Array, _Array] = nothing, nothing, nothing
        if native.metadata_lane:
            kept_order: _Array = np.arange(native.depth, dtype=np.int64)
            if native.order:
                kept_order = self.arrays[native.order]
            lane, nibble = (self.arrays[x] for x in (native.metadata_lane, native.metadata_shift))
            self.metadata = (
                lane.ravel().astype(np.uint32),
                nibble.ravel().astype(np.uint32),
                kept_order.astype(np.uint32),
            )
        self.tables = self._table(native.left), self._table(native.right)

    def _fragment(self, fragment: NativeFragment) -> tuple[_Array, _Array]:
        if not fragment.elements:
            return np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        word, shift = self.arrays[fragment.word], self.arrays[fragment.shift]
        return word.ravel().astype(np.uint32), shift.ravel().astype(np.uint32)

    def _table(self, element: NativeElement) -> tuple[_Array, _Array, _Array]:
        if not element.value:
            return _NO_TABLE
        return (
            self.arrays[element.value],
            self.arrays[element.exponent],
            self.arrays[element.special],
        )

    def numbers(self, names: Sequence[str], **more: int) -> I64:
        """The vector of numbers that the compiled functions take."""
        native = self.native
        for side, element, fragment in (
            ("a", native.left, native.a),
            ("b", native.right, native.b),
            ("c", None, native.c),
        ):
            more |= {f"take_{side}": fragment.mask, f"count_{side}": fragment.count}
            if element is not None:
                for name in ("kind", "shift", "mask", "sign"):
                    more[f"{name}_{side}"] = getattr(element, name)
        values = [more[x] if x in more else getattr(native, x, 0) for x in names]
        return np.array(values, np.int64)


def _slots(rows: _Array) -> _Array:
    """Equal numbers where two instructions name the same registers; then how many there are."""
    slots = slots_of(rows)
    return np.array([*slots, max(slots) + 1], np.int64)


def _compiled() -> tuple[Any, Any]:
    from fragir.emulator.native.numba_mma import entries

    return entries()


def _names() -> Sequence[str]:
    from fragir.emulator.native.numba_mma import NUMBERS

    return NUMBERS


class NumbaMma:
    """Neighbouring independent mma of one opcode: see `CompiledMma`."""

    def __init__(
        self,
        op: Mma,
        instructions: int,
        d: Source,
        a: Source,
        b: Source,
        c: Source,
        **options: Any,
    ) -> None:
        self.function, _ = _compiled()
        self.instructions = instructions
        self.plan = plan = _Plan(mma_plan(op, **options))
        native = plan.native
        self.numbers = plan.numbers(_names())
        sources = (d, a, b, c)
        counts = (native.d_count, native.a.count, native.b.count, native.c.count)
        self.files = [None if source is None else source.file for source in sources]
        self.by_place = tuple(int(source is None) for source in sources)
        rows: list[_Array] = []
        for source, count in zip(sources, counts, strict=True):
            own: _Array = np.arange(count * instructions, dtype=np.int64).reshape(
                count, instructions
            )
            rows.append(_given(own if source is None else source.rows[:count], np.int64))
        self.rows = tuple(rows)
        self.slots = _slots(rows[1]), _slots(rows[2])
        self.products = native.products * native.m * native.n * native.depth * instructions
        nothing = np.zeros((1, 32), np.uint32)
        self._call(tuple(_nothing(self.files)), np.zeros(1, np.int64), nothing, (0, 0, 0, 0))

    def _call(self, files: tuple[_Array, ...], warps: _Array, e: _Array, part: _Part) -> None:
        plan = self.plan
        self.function(
            self.numbers, files, self.rows, self.slots, self.by_place, warps, e, part,
            (plan.a[0], plan.b[0], plan.c[0]), (plan.a[1], plan.b[1], plan.c[1]),
            plan.parts, plan.metadata, plan.tables,
        )  # fmt: skip

    def __call__(
        self,
        warps: slice | npt.NDArray[np.intp],
        jobs: int = 1,
        arrays: dict[str, npt.NDArray[Any]] | None = None,
        **words: U32,
    ) -> None:
        """For the selected warps: see `CompiledMma`."""
        if isinstance(warps, slice):
            warps = np.arange(warps.start, warps.stop, dtype=np.intp)
        chosen = _given(warps, np.int64)
        total = len(chosen)
        files = _nothing(self.files)
        for name, array in (arrays or {}).items():
            shape = (-1, total, 32)
            files["dabc".index(name)] = (
                array.reshape(shape) if name == "d" else _given(array, np.uint32).reshape(shape)
            )
        e = _given(words["e"] if "e" in words else np.zeros((1, 32)), np.uint32)
        parts = ranges(total, self.instructions, jobs, self.products)
        side_by_side(jobs, [partial(self._call, tuple(files), chosen, e, part) for part in parts])


def _nothing(files: Sequence[_Array | None]) -> list[_Array]:
    """The files, and for those that come with a call something of the same type."""
    return [np.zeros((1, 1, 32), np.uint32) if x is None else x for x in files]


class NumbaWgmma:
    """One wgmma, A in registers or in shared memory: see `CompiledWgmma`."""

    def __init__(
        self,
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
        _, self.function = _compiled()
        self.plan = plan = _Plan(wgmma_plan(op, selector))
        native = plan.native
        sign = 1 << (op.plan.bits - 1) if op.plan.negates else 0
        self.numbers = plan.numbers(
            _names(),
            bits=op.plan.bits,
            transposed_a=transpose_a,
            transposed_b=transpose_b,
            negate_a=sign if scale_a == -1 else 0,
            negate_b=sign if scale_b == -1 else 0,
        )
        self.from_registers = a is not None
        source = d if a is None else a
        self.files = d.file, source.file
        self.rows = (
            _given(d.rows[: native.d_count], np.int64),
            _given(source.rows[: native.a.count], np.int64),
        )
        self.products = 64 * op.plan.n * native.depth
        one, words = np.zeros(1, np.int64), np.zeros((1, 128), np.uint32)
        memory = np.zeros(1, np.uint8)
        self._call(one, words, memory, one, (words, words), memory, (0, 0, 0, 0))

    def _call(
        self,
        warps: _Array,
        e: _Array,
        shared: _Array,
        home: _Array,
        chunks: tuple[_Array, _Array],
        accumulates: _Array,
        part: _Part,
    ) -> None:
        plan = self.plan
        self.function(
            self.numbers, self.files, self.rows, self.from_registers, warps, e, shared, home,
            chunks, accumulates, part, (plan.a[0], plan.c[0]), (plan.a[1], plan.c[1]),
            plan.parts, plan.metadata, plan.tables,
        )  # fmt: skip

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
        """For G warpgroups: see `CompiledWgmma`."""
        groups = len(warps)
        chosen, homes = _given(warps, np.int64), _given(home, np.int64)
        right = _given(b.reshape(groups, -1), np.uint32)
        left = right if a is None else _given(a.reshape(groups, -1), np.uint32)
        accumulates = _given(scale_d, np.uint8)
        words = _given(np.zeros((1, 128)) if e is None else e.reshape(groups, 128), np.uint32)
        given = (chosen, words, shared.reshape(-1), homes, (left, right), accumulates)
        parts = ranges(groups, 4, jobs, self.products)
        side_by_side(jobs, [partial(self._call, *given, part) for part in parts])
