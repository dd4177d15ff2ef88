"""Which boxes of a tensor map fill a matrix in shared memory: its layout's quotient by a box.

A copy by TMA writes a box of rows x columns row after row, or swizzled by the rows' width
(PTX ISA 9.2, sections 5.5.6 and 5.5.7). So a layout is filled by TMA where it is such a box,
repeated along the columns; `panels` says where each one goes. `box_copies` cuts rows as well.

>>> from fragir.layout import Layout
>>> tensor_boxes(Layout.parse("row [8:^72 8:512] col [64:1 2:4096]"), 16)
TensorBoxes(box=(64, 64), swizzle=128, panels=(0, 8192))
>>> tensor_boxes(Layout.parse("row [64:72] col [64:1]"), 16)
Traceback (most recent call last):
...
fragir.errors.FragirError: no box of a tensor map fills row [64:72] col [64:1] (rows follow each \
other in a box, or are swizzled by 32, 64 or 128 bytes)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES
from fragir.layout import Axis, Layout, LayoutError, Mode, quotient
from fragir.layout.shared import CHUNK, swizzled_elements

# -- alignments ------------------------------------------------------------------------------------
# Where instructions want memory to begin.

TENSOR_BOX = 128
"""Bytes: the place in shared memory that a tensor copy's box goes to or comes from."""


LARGEST_SIDE = 256
_PATTERN = 8  # rows after which a swizzle repeats


@dataclass(frozen=True, slots=True)
class TensorBoxes:
    """Copies that fill a matrix: a box (rows, columns) of a tensor map with a swizzle in bytes.

    The n-th copy takes the n-th group of so many columns to `panels[n]`, in bytes from where the
    matrix begins, which is a multiple of 1024 bytes.
    """

    box: tuple[int, int]
    swizzle: int
    panels: tuple[int, ...]


class BoxCopies(NamedTuple):
    """Copies of one box (rows, columns) of a tensor map, whose inner dimension are the columns."""

    box: tuple[int, int]
    swizzle: int
    """Bytes of the pattern, 0 for none."""
    places: tuple[tuple[int, int, int], ...]
    """Row and column of the matrix where each begins, and the byte of shared memory."""
    exact: bool
    """Whether they cover the matrix and nothing beside it."""

    @property
    def alignment(self) -> int:
        """Bytes: the matrix, and every box in it, begins at a multiple of it."""
        return max(8 * self.swizzle, TENSOR_BOX)


@lru_cache(maxsize=256)
def box_copies(layout: Layout, bits: int, shape: tuple[int, int], parts: int = 1) -> BoxCopies:
    """The copies that fill a matrix of so many rows and columns, as few as there can be.

    With `parts` their number is a multiple of it where one can be had: each block of a cluster
    then fetches as many. FragirError as of `tensor_boxes`.

    >>> from fragir.layout import Layout
    >>> box_copies(Layout.parse("row [8:^72 64:512] col [64:1]"), 16, (512, 64))
    BoxCopies(box=(256, 64), swizzle=128, places=((0, 0, 0), (256, 0, 32768)), exact=True)
    >>> box_copies(Layout.parse("row [8:^72 26:512] col [64:1]"), 16, (208, 64), parts=2)
    BoxCopies(box=(104, 64), swizzle=128, places=((0, 0, 0), (104, 0, 13312)), exact=True)
    """
    layout, size = _require_box_layout(layout, bits), bits // 8
    extent = layout.size("row")
    heights = [h for h in range(min(extent, LARGEST_SIDE), 0, -1) if extent % h == 0]
    fallback: BoxCopies | None = None
    for swizzle, cols in _widths(layout, size):
        for height in heights:
            rest = _panels(layout, (height, cols), bits, swizzle, cut_rows=True)
            if rest is None:
                continue
            if cols > LARGEST_SIDE:
                raise _too_large((height, cols), layout)
            found = _copies(rest, (height, cols), swizzle, size, shape)
            if len(found.places) % parts == 0:
                return found
            fallback = fallback or found
        if fallback is not None:
            return fallback
    raise _no_box(layout)


def _copies(
    rest: Layout, box: tuple[int, int], swizzle: int, size: int, shape: tuple[int, int]
) -> BoxCopies:
    height, cols = box
    places: list[tuple[int, int, int]] = []
    for row in range(-(-shape[0] // height)):
        for col in range(-(-shape[1] // cols)):
            at = rest(row=row, col=col)
            assert at is not None
            places.append((row * height, col * cols, at[0] * size))
    height = min(height, shape[0])
    exact = shape[0] % height == 0 and shape[1] % cols == 0
    return BoxCopies((height, cols), swizzle, tuple(places), exact)


def tensor_boxes(layout: Layout, bits: int) -> TensorBoxes:
    """The boxes that fill a matrix whose layout, in elements of so many bits, has the axes row and
    col. FragirError, with the reason, where none do.
    """
    layout, size = _require_box_layout(layout, bits), bits // 8
    rows = layout.size("row")
    for swizzle, cols in _widths(layout, size):
        rest = _panels(layout, (rows, cols), bits, swizzle)
        if rest is None:
            continue
        if max(rows, cols) > LARGEST_SIDE:
            raise _too_large((rows, cols), layout)
        panels = [rest(row=0, col=number) for number in range(rest.size("col"))]
        return TensorBoxes((rows, cols), swizzle, tuple(p[0] * size for p in panels if p))
    raise _no_box(layout)


def _require_box_layout(layout: Layout, bits: int) -> Layout:
    if bits % 8 or layout.names != ("row", "col") or layout.rank != 1 or layout.where:
        raise FragirError(f"{layout} is no matrix of whole bytes, row and col to elements")
    return layout.simplified()


def _widths(layout: Layout, size: int) -> Iterator[tuple[int, int]]:
    """Swizzles, and the columns of a box of each that could fill the layout."""
    first = next(iter(layout.axis("col").modes), None)
    for swizzle in sorted(SWIZZLES, reverse=True):
        cols = swizzle // size if swizzle else first.size if first else 1
        if cols * size % CHUNK == 0:
            yield swizzle, cols


def _too_large(box: tuple[int, int], layout: Layout) -> FragirError:
    return FragirError(
        f"a box of {box[0]}x{box[1]} fills {layout}, but its sides are {LARGEST_SIDE} at most"
    )


def _no_box(layout: Layout) -> FragirError:
    return FragirError(
        f"no box of a tensor map fills {layout}",
        hint="rows follow each other in a box, or are swizzled by 32, 64 or 128 bytes",
    )


def _panels(
    layout: Layout, shape: tuple[int, int], bits: int, swizzle: int, *, cut_rows: bool = False
) -> Layout | None:
    """Where the boxes of a shape begin; None where the layout is not such boxes."""
    box = replace(swizzled_elements(shape, bits, swizzle).simplified(), dims=layout.dims)
    try:
        rest = quotient(layout, box)
    except LayoutError:
        rest = _by_patterns(layout, shape, bits, swizzle) if cut_rows and swizzle else None
        if rest is None:
            return None
    whole = (max(8 * swizzle, TENSOR_BOX)) * 8 // bits
    steps = [mode for axis in rest.axes for mode in axis.modes]
    if (rest.size("row") > 1 and not cut_rows) or any(
        mode.xor or mode.stride[0] % whole for mode in steps
    ):
        return None
    if box.size("row") != shape[0] or rest.origin[0] % whole:
        return None
    axes = Axis("row", rest.axis("row").modes), Axis("col", rest.axis("col").modes)
    return Layout(axes, rest.dims, rest.offset)


def _by_patterns(layout: Layout, shape: tuple[int, int], bits: int, swizzle: int) -> Layout | None:
    """The same for boxes whose rows are whole patterns of the swizzle but no power of two of them:
    sums and exclusive ors of such places are no layout, but places of patterns are sums alone."""
    pattern = replace(
        swizzled_elements((_PATTERN, shape[1]), bits, swizzle).simplified(), dims=layout.dims
    )
    count, odd = divmod(shape[0], _PATTERN)
    try:
        rest = quotient(layout, pattern)
    except LayoutError:
        return None
    modes = rest.axis("row").modes
    if odd or len(modes) != 1 or modes[0].xor or modes[0].size % count:
        return None
    step = modes[0].stride[0]
    if step * bits != 8 * _PATTERN * swizzle:  # patterns of a box follow each other
        return None
    row = Mode(modes[0].size // count, (step * count,))
    return replace(rest, axes=(Axis("row", (row,)), rest.axis("col")))
