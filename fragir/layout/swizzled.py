"""A matrix in shared memory as TMA and wgmma swizzle it, as a layout of elements or bytes.

With a swizzle of W bytes the matrix is cut into panels of W bytes of columns, one behind the
other. A panel is its rows, W bytes each, and ends at a multiple of 1024 bytes. Inside of a panel
the byte x = row * W + column bytes stands at x ^ (((x >> 7) & (W/16 - 1)) << 4) (PTX ISA 9.2,
section 5.5.7). Each bit of a row's number from a line of 128 bytes up thus flips two bits of the
byte, which is a digit `:^144`:

>>> print(swizzled((64, 64), 16, 128))
row [8:^144 8:1024] col [64:2] dims (byte)
>>> print(swizzled((64, 64), 16, 32))
row [4:32 2:^144 8:256] col [16:2 4:2048] dims (byte)
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, XorMode, coalesced

ATOM = 1024
"""Bytes after which every swizzle repeats; panels are multiples of it."""

CHUNK = 16
"""Bytes that a swizzle moves as a whole; a matrix without swizzle ends at a multiple of it."""

LINE = 128
"""Bytes whose number says how far the chunks in them are moved."""


@lru_cache(maxsize=1024)
def swizzled(shape: Point, bits: int, width: int) -> Layout:
    """At which byte the elements of a matrix stand, of `bits` each, swizzled by `width` bytes.

    `shape` is (rows, columns); dimensions before them count whole matrices. Width 0 is row by row
    without swizzle. Where the swizzle or the borders of panels do not divide an extent, the axis is
    longer than the extent: it has the places that are skipped. Raises LayoutError for elements and
    rows that do not begin at a byte, and for other widths.
    """
    return _swizzled(shape, bits, width, 8, "byte")


@lru_cache(maxsize=1024)
def swizzled_elements(shape: Point, bits: int, width: int) -> Layout:
    """`swizzled`, counted in elements, which may be smaller than bytes.

    >>> print(swizzled_elements((64, 64), 16, 128))
    row [8:^72 8:512] col [64:1]
    """
    return _swizzled(shape, bits, width, bits, "index")


def _swizzled(shape: Point, bits: int, width: int, unit: int, dim: str) -> Layout:
    if width not in (0, 32, 64, 128):
        raise LayoutError(f"There is no {width}-byte swizzle; there are 0, 32, 64 and 128.")
    if len(shape) < 2 or min(shape) < 1:
        raise LayoutError(f"A matrix in shared memory has rows and columns, not the shape {shape}.")
    *leading, rows, cols = shape
    if bits % unit or cols * bits % 8 or width * 8 % bits:
        raise LayoutError(f"Elements of {bits} bits, or their rows, do not begin at a {dim}.")
    pitch = width or cols * bits // 8
    per_row = width * 8 // bits if width else cols
    panels = -(-cols // per_row)
    whole = ATOM if width else CHUNK
    panel = -(-rows * pitch // whole) * whole
    col = [Mode(min(cols, per_row), (bits,)), Mode(panels, (8 * panel,))]
    row = _rows(rows, pitch) if width else [Mode(rows, (8 * pitch,))]
    axes: list[Axis] = []
    stride = 8 * panel * panels * prod(leading)
    for number, extent in enumerate(leading):
        stride //= extent
        axes.append(Axis(f"matrix{number or ''}", (Mode(extent, (stride,)),)))
    axes += [Axis("row", tuple(row)), Axis("col", tuple(col))]
    return Layout(
        tuple(Axis(axis.name, coalesced(axis.scaled(1, unit).modes)) for axis in axes),
        (dim,),
    )


def _rows(rows: int, width: int) -> list[Mode]:
    """Rows of `width` bytes with strides in bits: in a line, lines that flip chunks, atoms."""
    in_line, lines = LINE // width, width // CHUNK
    if rows <= in_line:
        return [Mode(rows, (8 * width,))]
    flipped = min(lines, 1 << (-(-rows // in_line) - 1).bit_length())
    atoms = -(-rows // (in_line * lines))
    return [
        Mode(in_line, (8 * width,)),
        XorMode(flipped, (8 * (LINE + CHUNK),)),
        Mode(atoms, (8 * LINE * lines,)),
    ]
