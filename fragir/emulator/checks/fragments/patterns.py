"""What a pattern of origins is: the matrix in memory that explains it, and what does not belong.

Patterns come again from warp to warp and from step to step; each is looked at once, relative to the
smallest number in it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.fragments.provenance import numbers_of
from fragir.emulator.numbers.types import I64, Array
from fragir.emulator.tensor_cores.maps import Fragment

# -- affine fit ------------------------------------------------------------------------------------
# Which matrix in memory a fragment holds, and which of its elements do not belong to it.

UNKNOWN = -1  # computed data: no origin
TORN = -2  # the bytes of the element are no neighbours in memory

Places: TypeAlias = I64  # [rows, columns], bit addresses


@dataclass(frozen=True, slots=True)
class AffineFit:
    """Element (r, c) should lie at `base + r * rows + c * columns`; all in bits."""

    base: int
    rows: int
    columns: int
    shape: tuple[int, int]
    outliers: npt.NDArray[np.bool_]

    @property
    def consistent(self) -> bool:
        return not self.outliers.any()

    def inside(self, places: I64) -> int:
        """How many addresses are those of elements within the shape."""
        found = [self.coordinates(int(p)) for p in places]
        return sum(f is not None and f[0] < self.shape[0] and f[1] < self.shape[1] for f in found)

    def coordinates(self, place: int) -> tuple[int, int] | None:
        """The element of the same matrix that lies at an address, None where there is none."""
        offset = place - self.base
        steps = (self.rows, self.columns)
        large = 0 if abs(steps[0]) >= abs(steps[1]) else 1
        big, small = steps[large], steps[1 - large]
        best: tuple[int, int] | None = None
        for major in _near(offset, big):
            rest = offset - major * big
            if small == 0 and rest:
                continue
            minor, left = divmod(rest, small) if small else (0, 0)
            if left:
                continue
            found = (major, minor) if large == 0 else (minor, major)
            if min(found) >= 0 and (best is None or sum(found) < sum(best)):
                best = found
        return best


def _near(offset: int, step: int) -> list[int]:
    if step == 0:
        return [0]
    about = offset // step
    return [about - 1, about, about + 1]


def _steps(places: Places, axis: int) -> list[int]:
    """The most frequent steps along an axis; also seen over 2, 4 and 8 elements."""
    lines = places if axis == 0 else places.T
    found: dict[int, None] = {}
    for distance in (1, 2, 4, 8):
        before, after = lines[:-distance], lines[distance:]
        difference = (after - before)[(after >= 0) & (before >= 0)]
        difference = difference[difference % distance == 0] // distance
        values, counts = np.unique(difference, return_counts=True)
        found |= dict.fromkeys(int(v) for v in values[np.argsort(-counts, kind="stable")][:2])
    return list(found) or [0]


def fit(places: Places) -> AffineFit:
    """The affine matrix that explains most elements; unknown ones are no outliers.

    Among equals that one is taken in which most of the others lie inside the matrix too.
    """
    usable = places >= 0
    shape = (places.shape[0], places.shape[1])
    row, column = np.indices(shape)
    best = AffineFit(0, 0, 0, shape, places == TORN)
    score = (-1, -1)
    vertical, horizontal = _steps(places, 0), _steps(places, 1)
    for rows, columns in ((r, c) for r in vertical for c in horizontal):
        origins = places - row * rows - column * columns
        values, first, counts = np.unique(origins[usable], return_index=True, return_counts=True)
        if not values.size or counts.max() < score[0]:
            continue
        top = counts == counts.max()
        for base in values[top][np.argsort(first[top])][:4]:
            outliers = (origins != base) & (places != UNKNOWN)
            found = AffineFit(int(base), rows, columns, shape, outliers)
            inside = 0 if not outliers.any() else found.inside(places[outliers & usable])
            if (int(counts.max()), inside) > score:
                best, score = found, (int(counts.max()), inside)
    return best


def permutation(places: Places, axis: int) -> tuple[int, ...] | None:
    """The order in which a matrix holds its slices along `axis`, None where it is no such matrix.

    Slices may come in any order as long as each is like the others; the order counts in units of
    the smallest step. A and B with one order of K multiply as they should.
    """
    lines = places if axis == 0 else places.T  # [K, other]
    if (lines < 0).any():
        return None
    steps = lines - lines[:, :1]
    if (steps != steps[:1]).any():
        return None
    across = np.diff(steps[0])
    if across.size and (across != across[0]).any():
        return None
    offsets = lines[:, 0] - lines[:, 0].min()
    unit = int(np.gcd.reduce(offsets))
    if unit == 0:
        return None
    return tuple(int(o) // unit for o in offsets)


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
        self._known: dict[tuple[Hashable, ...], Verdict | None] = {}

    def of_registers(
        self, name: str, fragment: Fragment, words: Sequence[Array]
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


def _element_places(relative: I64, low: int | Array) -> Places:
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
