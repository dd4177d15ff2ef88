"""Conversions that linear algebra does not reach: through shared memory with padded rows.

Where digits of odd size lie in lanes, or a layout is shifted or partial, the tile is stored row by
row, the last dimension side by side, and each thread computes the place of each of its elements.
Rows that begin in the same bank make the lanes of one column conflict; some padding behind each
row moves them apart. Which padding is best is not computed but tried, with the counter of passes.

>>> from fragir.layout.layout import Layout
>>> rows = Layout.parse("lane [32:(1,0)] element [96:(0,1)]")
>>> cols = Layout.parse("lane [32:(0,3)] element [32:(1,0) 3:(0,1)]")
>>> padded_rows(rows, cols, 32)
PaddedRows(pitch=100, sizes=(16, 4), accesses=(24, 96), passes=(96, 96), scratch=12800)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeAlias

from fragir.layout.layout import Layout
from fragir.layout.modes import WARP
from fragir.layout.planning.access import LINE_BYTES
from fragir.layout.shared import wavefronts

WORD = 4  # bytes
CHUNK = 16  # bytes of the widest access
SAMPLES = 8  # accesses that are looked at where no two are known to be alike


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """Rows of shared memory with the fewest conflicts among some paddings.

    `pitch` is in elements. `sizes` are the bytes of one access of source and target, `accesses` how
    many a thread makes, `passes` what those of the first warp take (of partial and exclusive-ored
    layouts as some of them say), `scratch` the bytes of the memory.
    """

    pitch: int
    sizes: tuple[int, int]
    accesses: tuple[int, int]
    passes: tuple[int, int]
    scratch: int


@lru_cache(maxsize=256)
def padded_rows(source: Layout, target: Layout, bits: int) -> PaddedRows:
    """The pitch with the fewest passes for elements of `bits`, a multiple of 8."""
    unit = bits // 8
    shape = [max(sizes) for sizes in zip(source.shape, target.shape, strict=True)]
    sides = [_side(layout, shape, unit) for layout in (source, target)]
    # every pitch, up to a line of all banks more, that keeps the widest access aligned
    size = max(WORD, *(side.width * unit for side in sides))
    step = max(1, size // unit)
    whole = -(-shape[-1] // step) * step
    pitches = [whole + pad * step for pad in range(LINE_BYTES // size)]

    def paid(pitch: int) -> tuple[int, int]:
        first, second = (side.passes(pitch) for side in sides)
        return first, second

    pitch = min(pitches, key=lambda pitch: (sum(paid(pitch)), pitch))
    first, second = sides
    return PaddedRows(
        pitch,
        (first.width * unit, second.width * unit),
        (first.accesses, second.accesses),
        paid(pitch),
        prod(shape[:-1]) * pitch * unit,
    )


Place: TypeAlias = tuple[int, int]
"""The number of a row and a column."""


@dataclass(frozen=True, slots=True)
class _RowSide:
    """One side's accesses of `width` elements of `unit` bytes.

    `patterns` are places of the lanes of the first warp, each with the number of accesses like it.
    """

    width: int
    accesses: int
    unit: int
    patterns: list[tuple[list[Place | None], int]]

    def passes(self, pitch: int) -> int:
        """The passes of all accesses of the first warp, with rows of so many elements."""
        size = self.width * self.unit
        lanes = {8: 16, 16: 8}.get(size, WARP)
        paid = seen = 0
        for places, times in self.patterns:
            seen += times
            for first in range(0, len(places), lanes):
                group = [place for place in places[first : first + lanes] if place]
                addresses = [(row * pitch + col) * self.unit for row, col in group]
                paid += times * wavefronts(addresses, size)
        return -(-paid * self.accesses // seen)


def _side(layout: Layout, shape: Sequence[int], unit: int) -> _RowSide:
    elements = layout.size("element") if "element" in layout.names else 1
    zeros = {axis.name: 0 for axis in layout.axes}
    lanes = range(min(WARP, layout.size("lane"))) if "lane" in layout.names else range(1)

    def place(**coordinates: int) -> Place | None:
        """The row and the column of what a slot holds."""
        point = layout(**zeros | {k: v for k, v in coordinates.items() if k in zeros})
        if point is None:
            return None
        row = 0
        for size, at in zip(shape[:-1], point, strict=False):
            row = row * size + at
        return row, point[-1]

    def access(element: int) -> list[Place | None]:
        return [place(lane=lane, element=element) for lane in lanes]

    if layout.exclusive or layout.where:
        step = max(1, elements // SAMPLES)
        return _RowSide(1, elements, unit, [(access(e), 1) for e in range(0, elements, step)])
    held = [found for e in range(elements) if (found := place(element=e))]
    threads = [found for lane in lanes if (found := place(lane=lane))]
    if "warp" in zeros:
        threads += [found for w in range(layout.size("warp")) if (found := place(warp=w))]
    width = _width(held, threads, unit)
    # accesses that differ by whole words are alike
    parts = Counter(held[e][1] * unit % WORD for e in range(0, elements, width))
    firsts = {held[e][1] * unit % WORD: e for e in range(0, elements, width)}
    patterns = [(access(firsts[part]), times) for part, times in sorted(parts.items())]
    return _RowSide(width, elements // width, unit, patterns)


def _width(held: Sequence[Place], threads: Sequence[Place], unit: int) -> int:
    """Elements of one access: neighbours in every thread that are neighbours in the row."""
    width = max(1, CHUNK // unit)
    while width > 1:
        starts = [*held[::width], *threads]
        runs = all(
            held[i + k] == (held[i][0], held[i][1] + k)
            for i in range(0, len(held) - len(held) % width, width)
            for k in range(width)
        )
        fits = len(held) % width == 0 and all(col % width == 0 for _, col in starts)
        if width * unit >= WORD and runs and fits:
            break
        width //= 2
    return width
