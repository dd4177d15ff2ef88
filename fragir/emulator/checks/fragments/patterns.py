"""What a pattern of origins is: the matrix in memory that explains it, and what does not belong.

Patterns come again from warp to warp and from step to step; each is looked at once, relative to the
smallest number in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fragir.emulator.checks.fragments.affine_fit import (
    TORN,
    UNKNOWN,
    AffineFit,
    Places,
    fit,
    permutation,
)
from fragir.emulator.checks.fragments.provenance import numbers_of
from fragir.emulator.numbers.types import I64
from fragir.emulator.tensor_cores.fragment import Fragment

#: operand -> the axes of its fragment in the order product, row, column
_AXES: dict[tuple[str, int], tuple[int, ...]] = {
    ("A", 2): (1, 0),
    ("B", 2): (0, 1),
    ("C", 2): (0, 1),
    ("A", 3): (1, 2, 0),
    ("B", 3): (1, 0, 2),
    ("C", 3): (0, 1, 2),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pattern of origins is: one fit per product, and the order of K where it is one."""

    fits: tuple[AffineFit, ...]
    order: tuple[int, ...] | None
    places: tuple[Places, ...]  # relative to the smallest number
    good: bool  # every fit is consistent


class Patterns:
    """The verdicts on all patterns that have come."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Verdict | None] = {}

    def of_registers(
        self, name: str, fragment: Fragment, words: Sequence[Any]
    ) -> tuple[list[Verdict | None], I64]:
        """(verdict, smallest number) of every instance; None where nothing is known."""
        count, instances = words[0].shape[:2]
        size = max(fragment.bits // 8, 1)
        firsts = np.stack([numbers_of(words, b) for b in range(0, fragment.width // 8, size)])
        huge = np.iinfo(np.int64).max
        base: I64 = np.where(firsts > 0, firsts, huge).min(axis=(0, 1, 3))
        relative = np.where(firsts > 0, firsts - base[:, None], -1)
        relative = np.ascontiguousarray(relative.transpose(2, 0, 1, 3))
        verdicts: list[Verdict | None] = []
        same = (relative == relative[:1]).reshape(instances, -1).all(axis=1)
        first: Verdict | None = None
        for index in range(instances):
            if base[index] == huge:
                verdicts.append(None)
                continue
            if index and same[index]:
                verdicts.append(first)
                continue
            key = (name, id(fragment), count, relative[index].tobytes())
            if key not in self._known:
                whole = np.stack(
                    [
                        numbers_of([w[:, index] for w in words], b)
                        for b in range(fragment.width // 8)
                    ]
                )
                places = _places(fragment, whole, int(base[index]))
                self._known[key] = _verdict(name, grids(name, fragment, places))
            verdict = self._known[key]
            verdicts.append(verdict)
            if not index:
                first = verdict
        return verdicts, base

    def of_bytes(self, name: str, kind: str, numbers: I64, *, turned: bool) -> Verdict | None:
        """The verdict on an operand that is not in a fragment's registers.

        `numbers`: those of its bytes, `[byte of the element, ...]`, some of them known; `turned`:
        columns come first.
        """
        base = numbers[numbers > 0].min()
        relative = np.where(numbers > 0, numbers - base, -1)
        key = (name, kind, numbers.shape, relative.tobytes())
        if key not in self._known:
            places = _element_places(relative, 0)
            self._known[key] = _verdict(name, [places.T if turned else places])
        return self._known[key]


def _element_places(relative: I64, low: Any) -> Places:
    """Bit addresses of elements from the numbers of their bytes `[bytes, ...]` (-1: unknown)."""
    first = relative[0]
    places = np.where(first >= 0, first * 8 + low, UNKNOWN)
    for byte in range(1, len(relative)):
        follows = relative[byte] == first + byte
        unknown = (first < 0) & (relative[byte] < 0)
        places = np.where(follows & (first >= 0), places, np.where(unknown, UNKNOWN, TORN))
        first = np.where(places == TORN, -1, first)
    return places


def _places(fragment: Fragment, numbers: I64, base: int) -> Places:
    """Bit addresses, relative to number `base`, of the elements of one instance: flat.

    `numbers`: those of every byte of the registers, `[bytes, count, lanes]`.
    """
    relative = np.where(numbers > 0, numbers - base, -1)
    flat = relative.reshape(len(relative), -1)
    shift = fragment.shift.astype(np.int64)
    size = max(fragment.bits // 8, 1)
    parts = np.stack([flat[shift // 8 + b, fragment.word] for b in range(size)])
    return _element_places(parts, shift % 8)


def grids(name: str, fragment: Fragment, flat: I64) -> list[I64]:
    """Values of the elements as matrices `[row, column]`, one per product."""
    axes = _AXES[name, len(fragment.extents)]
    full = flat.reshape(fragment.extents).transpose(axes)
    return [full] if full.ndim == 2 else list(full)


def _verdict(name: str, grids: Sequence[Places]) -> Verdict | None:
    fits = tuple(fit(g) for g in grids)
    order = None
    if len(grids) == 1 and name in "AB":
        order = permutation(grids[0], 1 if name == "A" else 0)
    return Verdict(fits, order, tuple(grids), all(f.consistent for f in fits))
