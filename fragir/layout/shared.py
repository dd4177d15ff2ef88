"""Shared memory: where an element of a tile stands, and which banks an access touches.

A shared-memory layout is a layout from (row, col) to a byte, followed by a swizzle: an exclusive or
of some address bits into lower ones. `Swizzle(bits, base, shift)` is CuTe's: of the bits from
base + shift up, `bits` many are added (xor) to those from base up. A tile with rows of 128 bytes of
f16, as TMA writes it with the 128-byte swizzle:

>>> from fragir.layout.layout import Layout
>>> tile = SharedLayout(Layout.parse("row [8:128] col [64:2] dims (byte)"), swizzle_of(128))
>>> tile(row=0, col=8), tile(row=3, col=8)
(16, 416)
>>> print(tile)
row [8:128] col [64:2] dims (byte) swizzle (3,4,3)
>>> SharedLayout.parse(str(tile)) == tile
True

Why swizzle: `ldmatrix` reads eight rows of 16 bytes at once. Without, they all stand in the same
four banks:

>>> rows = [tile(row=r, col=0) for r in range(8)]
>>> conflicts(rows, 16), conflicts([r * 128 for r in range(8)], 16)
(0, 7)

Offsets are relative to the tile; the hardware swizzles the final shared-memory address (PTX ISA
9.2, section 5.5.7 on TMA's swizzle modes and section 9.7.15.5 on wgmma), so the tile must begin at
a multiple of `Swizzle.period` bytes for both to agree.

A matrix in shared memory as TMA and wgmma swizzle it, as a layout of elements or bytes.

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

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import cast

from fragir.errors import kind_of, require_whole_number
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, XorMode, coalesce_modes

BANKS = 32
_ADDRESS_BITS = 64
BANK_BYTES = 4


@dataclass(frozen=True, slots=True)
class Swizzle:
    """address ^= (address >> shift) & mask, with mask = `bits` ones from bit `base` up.

    As in CuTe; a negative shift moves bits up instead of down. Raises LayoutError where the two
    groups of bits overlap (then it is no exclusive or of *other* bits and not its own inverse).
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name, number in (("bits", self.bits), ("base", self.base), ("shift", self.shift)):
            if abs(require_whole_number(number, f"the {name} of a swizzle")) > _ADDRESS_BITS:
                raise LayoutError(f"The {name} of a swizzle are of an address of 64 bits at most.")
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(f"{self} moves bits onto themselves.")

    def __call__(self, address: int) -> int:
        down = max(self.shift, 0)
        up = max(-self.shift, 0)
        moved = (address >> down) << up
        low = self.base + up
        return address ^ (moved & (((1 << self.bits) - 1) << low))

    def layout(self, size: int = 1, dim: str = "byte") -> Layout:
        """The swizzle of the addresses below `size` from `dim` to itself.

        The size is rounded up to a power of two, and to the period.

        >>> print(Swizzle(3, 4, 3).layout(8192))
        byte [128:1 8:^144 8:1024] dims (byte)
        """
        size = max(require_whole_number(size, "the size", 1), self.period)
        from fragir.layout.fitting import swizzle_kernel  # a descriptor does without

        kernel = swizzle_kernel(self._numbers, (size - 1).bit_length(), dim)
        return Layout(kernel.canonical, (dim,))

    def __mul__(self, layout: Layout) -> Layout:
        """A layout of one dimension followed by the swizzle.

        Raises LayoutError where that is no layout: where sums carry into the bits that are moved.

        >>> print(Swizzle(3, 4, 3) * Layout.parse("row [64:128] col [64:2] dims (byte)"))
        row [8:^144 8:1024] col [64:2] dims (byte)
        """
        if not isinstance(cast("object", layout), Layout):
            raise LayoutError(f"A swizzle is followed by a Layout, not {kind_of(layout)}.")
        from fragir.layout.fitting import swizzled_kernel

        kernel = swizzled_kernel(layout.kernel, layout.axes, self._numbers)
        return Layout(kernel.canonical, layout.dims, kernel.point(kernel.start), layout.where)

    def after(self, inner: Layout | Swizzle) -> Layout:
        """x -> self(inner(x)), as `*`; of two swizzles the layout of a period of both."""
        if isinstance(inner, Swizzle):
            inner = inner.layout(max(self.period, inner.period))
        return self * _require_layout(inner)

    def before(self, outer: Layout | Swizzle) -> Layout:
        """x -> outer(self(x)), for the addresses that the one axis of the outer layout has."""
        if isinstance(outer, Swizzle):
            return outer.after(self)
        outer = _require_layout(outer)
        if len(outer.names) != 1:
            raise LayoutError(f"A swizzle gives one address, but {outer} has several axes.")
        from fragir.layout.composition import compose

        return compose(outer, self.layout(outer.size(outer.names[0]), outer.names[0]))

    @property
    def _numbers(self) -> tuple[int, int, int]:
        return self.bits, self.base, self.shift

    @property
    def period(self) -> int:
        """The number of bytes after which the pattern repeats (what a tile must be aligned to)."""
        return 1 << (self.base + abs(self.shift) + self.bits) if self.bits else 1

    def __str__(self) -> str:
        return f"swizzle ({self.bits},{self.base},{self.shift})"


def _require_layout(value: object) -> Layout:
    """A layout, or what can be one."""
    made = getattr(value, "as_layout", None)
    found: object = value if made is None else made()
    if not isinstance(found, Layout):
        raise LayoutError(f"compose takes a Layout, not {kind_of(found)}.")
    return found


_SWIZZLE = re.compile(r"\s*\((\d{1,9}),\s*(\d{1,9}),\s*(-?\d{1,9})\)\s*")
NO_SWIZZLE = Swizzle(0, 4, 3)

# The swizzle modes of TMA and wgmma by the width in bytes of what they permute:
# address ^= ((address >> 7) & (W - 1)) << 4 with W = width / 16 chunks of 16 bytes.
SWIZZLES: dict[int, Swizzle] = {
    0: NO_SWIZZLE,
    32: Swizzle(1, 4, 3),
    64: Swizzle(2, 4, 3),
    128: Swizzle(3, 4, 3),
}


def swizzle_for(row_bytes: int) -> int:
    """The widest swizzle, in bytes, that divides a row; 0 where none does."""
    return next((width for width in (128, 64, 32) if row_bytes % width == 0), 0)


def swizzle_of(width: int) -> Swizzle:
    """The swizzle mode of 0 (none), 32, 64 or 128 bytes. Raises LayoutError for other widths."""
    if require_whole_number(width, "the swizzle") not in SWIZZLES:
        raise LayoutError(f"There is no {width}-byte swizzle; there are 0, 32, 64 and 128.")
    return SWIZZLES[width]


@dataclass(frozen=True)
class SharedLayout:
    """A layout with one dimension (bytes) followed by a swizzle of the offset."""

    layout: Layout
    swizzle: Swizzle = NO_SWIZZLE

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.layout), Layout):
            raise LayoutError(f"A SharedLayout is made of a Layout, not {self.layout!r}.")
        if self.layout.rank != 1:
            raise LayoutError(f"A shared-memory layout has one dimension, bytes: {self.layout}.")

    def __call__(self, **coordinates: int) -> int:
        """The byte offset of an element. Raises LayoutError for coordinates outside of the tile."""
        point = self.layout(**coordinates)
        if point is None:
            raise LayoutError(f"{coordinates} holds nothing in {self.layout}.")
        return self.swizzle(point[0])

    @property
    def size(self) -> int:
        """The unswizzled offset of the last element, plus one."""
        return self.layout.shape[0]

    def compose(self, inner: Layout) -> SharedLayout:
        """Where each slot's element stands: `inner` maps hardware coordinates to (row, col)."""
        from fragir.layout.composition import compose

        return SharedLayout(compose(self.layout, inner), self.swizzle)

    def as_layout(self) -> Layout:
        """The same as a layout with exclusive or.

        Raises LayoutError where the swizzle of the plain layout's sums is none.
        """
        return self.swizzle * self.layout

    def offsets(self) -> list[int]:
        """The offset of every slot, in the order of `Layout.slots`; slots without one left out."""
        return [self.swizzle(point[0]) for _, point in self.layout.slots() if point is not None]

    def __str__(self) -> str:
        return f"{self.layout} {self.swizzle}" if self.swizzle.bits else str(self.layout)

    @staticmethod
    def parse(text: str) -> SharedLayout:
        """The layout of a text as `str` prints it. Raises LayoutError."""
        before, word, after = text.rpartition("swizzle")
        match = _SWIZZLE.fullmatch(after) if word else None
        if match is None:
            return SharedLayout(Layout.parse(text))
        bits, base, shift = (int(match[i]) for i in (1, 2, 3))
        return SharedLayout(Layout.parse(before.rstrip()), Swizzle(bits, base, shift))


def banks(address: int, width: int = BANK_BYTES) -> range:
    """The banks that an access of `width` bytes touches, without wrapping around.

    >>> list(banks(130, 2)), list(banks(256 + 16, 16))
    ([0], [4, 5, 6, 7])
    """
    first = address // BANK_BYTES % BANKS
    return range(first, first + (address % BANK_BYTES + width + BANK_BYTES - 1) // BANK_BYTES)


def wavefronts(addresses: Iterable[int], width: int) -> int:
    """How many passes over the banks a warp's access takes.

    `addresses` are the byte addresses of the active lanes, lane 0 first; `width` is 1, 2, 4, 8 or
    16 bytes a lane. There are 32 banks of 4 bytes. Lanes that want the same word share it. Accesses
    of 8 bytes go by half warps, those of 16 bytes by quarter warps, as NVIDIA's programming guide
    and profiler documentation describe. Raises LayoutError for another width or a misaligned
    address.
    """
    if require_whole_number(width, "the width") not in (1, 2, 4, 8, 16):
        raise LayoutError(f"A lane accesses 1, 2, 4, 8 or 16 bytes, not {width}.")
    addresses = _numbers(addresses)
    lanes = {8: 16, 16: 8}.get(width, 32)
    return sum(
        _passes(addresses[start : start + lanes], width)
        for start in range(0, len(addresses), lanes)
    )


def conflicts(addresses: Iterable[int], width: int) -> int:
    """The passes beyond those that an access of this many lanes and this width takes at best.

    >>> conflicts([4 * lane for lane in range(32)], 4), conflicts([128] * 32, 4)
    (0, 0)
    >>> conflicts([8 * lane for lane in range(32)], 4), conflicts([128 * n for n in range(32)], 4)
    (1, 31)
    """
    kept = _numbers(addresses)
    passes = wavefronts(kept, width)
    lanes = {8: 16, 16: 8}.get(width, 32)
    return passes - -(-len(kept) // lanes)


def _numbers(addresses: object) -> list[int]:
    single = getattr(addresses, "shape", None) == ()  # an array of no dimension cannot be iterated
    if single or not isinstance(addresses, Iterable):
        raise LayoutError(f"Addresses are numbers, not {kind_of(addresses)}.")
    given = cast("Iterable[object]", addresses)
    return [require_whole_number(address, "an address", 0) for address in given]


def _passes(addresses: list[int], width: int) -> int:
    words: dict[int, set[int]] = {}
    for address in addresses:
        if address % width:
            raise LayoutError(f"Address {address} is not a multiple of the access width {width}.")
        for word in range(address // BANK_BYTES, (address + width - 1) // BANK_BYTES + 1):
            words.setdefault(word % BANKS, set()).add(word)
    return max((len(wanted) for wanted in words.values()), default=0)


def row_major(rows: int, cols: int, bytes_: int, pitch: int | None = None) -> Layout:
    """A plain tile: rows of `pitch` bytes (the row's own length if not given)."""
    stride = cols * bytes_ if pitch is None else pitch
    return Layout.parse(f"row [{rows}:{stride}] col [{cols}:{bytes_}] dims (byte)")


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
    return _swizzled_layout(shape, bits, width, 8, "byte")


@lru_cache(maxsize=1024)
def swizzled_elements(shape: Point, bits: int, width: int) -> Layout:
    """`swizzled`, counted in elements, which may be smaller than bytes.

    >>> print(swizzled_elements((64, 64), 16, 128))
    row [8:^72 8:512] col [64:1]
    """
    return _swizzled_layout(shape, bits, width, bits, "index")


def _swizzled_layout(shape: Point, bits: int, width: int, unit: int, dim: str) -> Layout:
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
        tuple(Axis(axis.name, coalesce_modes(axis.scaled(1, unit).modes)) for axis in axes),
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
