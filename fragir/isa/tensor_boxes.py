"""Which boxes of a tensor map fill a matrix in shared memory: its layout's quotient by a box.

A copy by TMA writes a box of rows x columns row after row, or swizzled by the rows' width
(PTX ISA 9.2, sections 5.5.6 and 5.5.7). So a layout is filled by TMA where it is such a box,
repeated along the columns; `panels` says where each one goes.

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

from dataclasses import dataclass, replace

from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES
from fragir.layout import Axis, Layout, LayoutError, quotient
from fragir.layout.swizzled import CHUNK, swizzled_elements

LARGEST_SIDE = 256
ALIGNMENT = 128  # bytes, of the place in shared memory that a box is copied to


@dataclass(frozen=True, slots=True)
class TensorBoxes:
    """Copies that fill a matrix: a box (rows, columns) of a tensor map with a swizzle in bytes.

    The n-th copy takes the n-th group of so many columns to `panels[n]`, in bytes from where the
    matrix begins, which is a multiple of 1024 bytes.
    """

    box: tuple[int, int]
    swizzle: int
    panels: tuple[int, ...]


def tensor_boxes(layout: Layout, bits: int) -> TensorBoxes:
    """The boxes that fill a matrix whose layout, in elements of so many bits, has the axes row and
    col. FragirError, with the reason, where none do.
    """
    if bits % 8 or layout.names != ("row", "col") or layout.rank != 1 or layout.where:
        raise FragirError(f"{layout} is no matrix of whole bytes, row and col to elements")
    layout = layout.simplified()
    rows, size = layout.size("row"), bits // 8
    first = next(iter(layout.axis("col").modes), None)
    for swizzle in sorted(SWIZZLES, reverse=True):
        cols = swizzle // size if swizzle else first.size if first else 1
        rest = None if cols * size % CHUNK else _panels(layout, (rows, cols), bits, swizzle)
        if rest is None:
            continue
        if max(rows, cols) > LARGEST_SIDE:
            raise FragirError(
                f"a box of {rows}x{cols} fills {layout}, but its sides are {LARGEST_SIDE} at most"
            )
        panels = [rest(col=number) for number in range(rest.size("col"))]
        return TensorBoxes((rows, cols), swizzle, tuple(p[0] * size for p in panels if p))
    raise FragirError(
        f"no box of a tensor map fills {layout}",
        hint="rows follow each other in a box, or are swizzled by 32, 64 or 128 bytes",
    )


def _panels(layout: Layout, shape: tuple[int, int], bits: int, swizzle: int) -> Layout | None:
    """Where the boxes of a shape begin; None where the layout is not such boxes."""
    box = replace(swizzled_elements(shape, bits, swizzle).simplified(), dims=layout.dims)
    try:
        rest = quotient(layout, box)
    except LayoutError:
        return None
    whole = (max(8 * swizzle, ALIGNMENT)) * 8 // bits
    steps = [mode for axis in rest.axes for mode in axis.modes]
    if rest.size("row") > 1 or any(mode.xor or mode.stride[0] % whole for mode in steps):
        return None
    if box.size("row") != shape[0] or rest.origin[0] % whole:
        return None
    return Layout((Axis("col", rest.axis("col").modes),), rest.dims, rest.offset)
