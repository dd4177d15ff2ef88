"""Runs of mma by numpy: register file to register file, in pieces that a core's cache holds.

A run multiplies few fragments of A by few of B, each by each. They are decoded once for all
instructions that read them; then each piece of the run takes its C, adds, and leaves its D.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.tensor_cores.compiled import FileRows, Source, slots_of
from fragir.emulator.tensor_cores.compute import ElementPlace, FusedMma, spread_operands
from fragir.emulator.tensor_cores.fused import DecodedValues
from fragir.emulator.tensor_cores.maps import Codes, Fragment
from fragir.emulator.tensor_cores.mma import SHARED, Mma

Index: TypeAlias = npt.NDArray[np.intp]
Warps: TypeAlias = slice | Index
#: Products of a step computed at once: fewer fit a cache better, but numpy's calls cost more.
PRODUCTS = 1 << 18


class _Operand:
    """A or B of some neighbouring instructions: their registers, and which have the same."""

    def __init__(self, source: FileRows, fragment: Fragment, element: ElementPlace) -> None:
        self.fragment, self.element = fragment, element
        slots = slots_of(source.rows)
        self.slots = np.array(slots, np.intp)
        self.count = max(slots) + 1
        firsts = [slots.index(slot) for slot in range(self.count)]
        self.different = FileRows(source.file, source.rows[:, firsts])

    def decode(self, warps: Warps) -> DecodedValues:
        """Elements `[..., fragments * W]` of all fragments, each once."""
        return self.element.decode(_load(self.fragment, self.different, warps))

    def of(self, values: DecodedValues, instructions: slice) -> DecodedValues:
        """From what `decode` gave, the elements of some instructions: `[..., instructions * W]`."""
        slots = self.slots[instructions]
        if self.count == len(slots) == len(self.slots):
            return values
        values = values.view(*values.value.shape[:-1], self.count, -1)
        if len(slots) == 1:
            return values[..., slots[0], :]
        shape = (*values.value.shape[:-2], -1)
        special = values.special
        return DecodedValues(
            values.value.take(slots, -2).reshape(shape),
            values.exponent.take(slots, -2).reshape(shape),
            None if special is None else special.take(slots, -2).reshape(shape),
        )


class NumpyMma:
    """`instructions` neighbouring independent mma of one opcode: see `CompiledMma`."""

    def __init__(self, op: Mma, d: FileRows, a: FileRows, b: FileRows, c: FileRows) -> None:
        plan, compute = op.plan, op.plan.compute
        assert isinstance(compute, FusedMma)
        self.plan, self.compute = plan, compute
        self.a, self.b = _Operand(a, plan.a, compute.a), _Operand(b, plan.b, compute.b)
        self.c, self.d = c, d
        outputs, depth = math.prod(plan.d.extents), plan.a.extents[0]
        self.together = max(1, PRODUCTS // (outputs * min(depth, compute.how.step)))

    def __call__(self, warps: Warps, jobs: int = 1) -> None:
        """For the selected warps. `jobs`: threads that may share the work."""
        total = warps.stop - warps.start if isinstance(warps, slice) else len(warps)
        if jobs == 1 and total <= self.together:
            self._piece(warps, total)
            return
        shares = pieces(total, jobs, -(-SHARED // self.d.rows.shape[1]))
        side_by_side(jobs, [partial(self._share, warps, share) for share in shares])

    def _share(self, warps: Warps, share: slice) -> None:
        for start in range(share.start, share.stop, self.together):
            count = min(self.together, share.stop - start)
            if isinstance(warps, slice):
                first = warps.start + start
                self._piece(slice(first, first + count), count)
            else:
                self._piece(warps[start : start + count], count)

    def _piece(self, warps: Warps, count: int) -> None:
        """All instructions for some warps. None reads what an earlier one has written."""
        a, b = self.a.decode(warps), self.b.decode(warps)
        step = self.together // count
        for first in range(0, self.d.rows.shape[1], step):
            part = slice(first, first + step)
            left, right = spread_operands(self.a.of(a, part), self.b.of(b, part), None)
            c = _load(self.plan.c, FileRows(self.c.file, self.c.rows[:, part]), warps)
            words = self.plan.d.store(self.compute.add(left, right, c))
            rows, lanes = self.d.rows[:, part], words.shape[-1]
            self.d.file[_index(rows, warps), warps] = words.reshape(*rows.shape, -1, lanes)


def _index(rows: Index, warps: Warps) -> Index:
    """Rows as an index beside that of the warps."""
    return rows if isinstance(warps, slice) else rows[:, :, None]


def _load(fragment: Fragment, source: FileRows, warps: Warps) -> Codes:
    """Elements' bits `[..., instructions * W]` of registers `[count, instructions]` of a file."""
    found = source.file[_index(source.rows, warps), warps]
    return fragment.load(found.reshape(len(source.rows), -1, found.shape[-1]))


def numpy_core(op: Mma, d: Source, a: Source, b: Source, c: Source) -> NumpyMma | None:
    """None where an operand is in no file, and for all but dense products in floating point."""
    fused = isinstance(op.plan.compute, FusedMma) and op.plan.metadata is None
    if not fused or d is None or a is None or b is None or c is None:
        return None
    return NumpyMma(op, d, a, b, c)
