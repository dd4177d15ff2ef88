"""Which matrix in memory a fragment holds, and which of its elements do not belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import I64

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
