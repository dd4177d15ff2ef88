"""The shared-memory layouts that wgmma and tcgen05 read, and their offsets.

PTX ISA 9.2, section 9.7.15.5.1 (wgmma) and 9.7.16.5 (tcgen05): matrices are made of core
matrices of 8 rows x 16 bytes. With s bytes an element, T = 16 / s elements in 16 bytes and W
16-byte chunks in a swizzle width (1, 2, 4, 8 for none, 32, 64, 128 bytes), the byte offset of
element (mn, k), before the swizzle, is

| major | swizzle | offset | LBO | SBO |
|---|---|---|---|---|
| K | none | 16(mn%8) + SBO(mn/8) + s(k%T) + LBO(k/T) | next 16 bytes of K | next 8 mn |
| K | 32 to 128 | 16W(mn%8) + SBO(mn/8) + s k, k < W T | not used, 1 | next 8 mn |
| MN | none | s(mn%T) + SBO(mn/T) + 16(k%8) + LBO(k/8) | next 8 k | next T mn |
| MN | 32 to 128 | s(mn%WT) + LBO(mn/WT) + 16W(k%8) + SBO(k/8) | next W T mn | next 8 k |

The swizzle is an exclusive or on the final address: chunk c of the 128-byte line r moves to chunk
c ^ (r % W).

tcgen05 has a fifth mode, 128 bytes in atoms of 32 (`atom`): of the four chunks of 32 bytes of line
r, c moves to c ^ (r % 4), and MN-major lines come in groups of 4 along K instead of 8. Elements
below a byte (K-major only) are counted in bits: those of `kind::mxf4*` fill their 16 bytes, while
16 of 4 or 6 bits of the other kinds begin at every 16 bytes, the rest being padding (PTX ISA 9.2,
section 9.7.16.10.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from fragir.errors import FragirError
from fragir.isa.model import BITS
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import coalesce_modes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fragir.layout import SharedLayout, Swizzle

Major = Literal["k", "mn"]
SWIZZLES = (0, 32, 64, 128)
WIDE_ATOM = 32
"""Bytes that the 128-byte swizzle of tcgen05 in mode 1 moves as a whole; others move 16."""
# An element below a byte: 4 bits, two to a byte, beside the padded form of its type.
PACKED_PAIR = "e2m1x2"
# One wgmma or tcgen05.mma reads 32 bytes of K.
STEP_BYTES = 32


def swizzled(address: int, swizzle: int) -> int:
    """A byte address after the swizzle of `swizzle` bytes (0, 32, 64, 128)."""
    _chunks(swizzle)  # refuses other widths
    from fragir.layout import swizzle_of  # a descriptor does without

    return swizzle_of(swizzle)(address)


def _chunks(swizzle: int) -> int:
    if swizzle not in SWIZZLES:
        raise FragirError(f"there is no swizzle of {swizzle} bytes", hint="0, 32, 64 or 128")
    return max(1, swizzle // 16)


def _swizzle(swizzle: int, atom: int, up: int) -> Swizzle:
    """The swizzle of addresses whose bits stand `up` places higher than those of bytes."""
    from fragir.layout import Swizzle, swizzle_of  # a descriptor does without

    if atom == WIDE_ATOM:
        return Swizzle(2, 5 + up, 2)
    found = swizzle_of(swizzle)
    return Swizzle(found.bits, found.base + up, found.shift)


class CanonicalLayout(NamedTuple):
    """A canonical layout: (mn, k) of an operand to its byte in shared memory.

    `leading` and `stride` are the byte offsets LBO and SBO of the descriptor, `element_bytes` s,
    `atom` the bytes that the swizzle moves as a whole (16 or 32). Of elements below a byte `bits`
    is their size, and `per_chunk` says how many begin in 16 bytes; they stand at a bit.
    """

    major: Major
    swizzle: int
    element_bytes: int
    leading: int
    stride: int
    atom: int = 16
    bits: int = 0
    per_chunk: int = 0

    @property
    def unit(self) -> str:
        """What places are counted in: `byte`, or `bit` of elements below a byte."""
        return "bit" if self.bits else "byte"

    @property
    def units(self) -> int:
        """Of a byte: 8 bits, or 1."""
        return 8 if self.bits else 1

    @property
    def swizzled(self) -> Swizzle:
        """The swizzle of places."""
        return _swizzle(self.swizzle, self.atom, 3 if self.bits else 0)

    @property
    def groups(self) -> int:
        """Lines of K after which an MN-major layout goes on at the next offset."""
        return 8 * 16 // self.atom

    def _modes(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """(size, step) of the digits of mn and k; the last one's size, 0, is as many as wanted."""
        s, u = self.bits or self.element_bytes, self.units
        t = self.per_chunk or 16 // self.element_bytes
        leading, stride, line = u * self.leading, u * self.stride, u * max(self.swizzle, 16)
        whole = t * max(self.swizzle, 16) // 16
        if self.major == "k":
            along = (0, leading) if self.swizzle == 0 else (0, 16 * u)
            return [(8, line), (0, stride)], [(t, s), along]
        across, deep = (stride, leading) if self.swizzle == 0 else (leading, stride)
        return [(whole, s), (0, across)], [(self.groups, line), (0, deep)]

    def _place(self, mn: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.int64]:
        total = 0 * (mn + k)
        for coordinate, modes in zip((mn, k), self._modes(), strict=True):
            (size, step), (_, further) = modes
            total = total + coordinate % size * step + coordinate // size * further
        return total

    @property
    def width(self) -> int:
        """Elements along K of a K-major swizzled layout; 0 where nothing ends."""
        t = self.per_chunk or 16 // self.element_bytes
        return t * self.swizzle // 16 if self.major == "k" else 0

    def linear(self, mn: int, k: int) -> int:
        """Place of element (mn, k) from the start of the matrix, before the swizzle, in bytes
        (bits, of elements below a byte)."""
        if self.width and k >= self.width:
            raise FragirError(
                f"k = {k} is beyond the {self.swizzle}-byte swizzle width "
                f"({self.width} elements); the next ones are another matrix"
            )
        total = 0
        for coordinate, ((size, step), (_, further)) in zip((mn, k), self._modes(), strict=True):
            total += coordinate % size * step + coordinate // size * further
        return total

    def offset(self, mn: int, k: int, start: int = 0) -> int:
        """Place of element (mn, k) of a matrix that starts at the byte `start`, as `linear`."""
        return self.swizzled(self.units * start + self.linear(mn, k))

    def places(self, mn: int, k: int, start: int = 0, base: int = 0) -> NDArray[np.int64]:
        """int64 [mn, k]: the place of every element of a matrix that starts at the byte `start`.

        Absolute and swizzled, in bytes (bits, of elements below a byte). `base` is the base offset
        of the descriptor: lines of 128 bytes by which the pattern begins later.
        """
        import numpy as np

        rows, cols = np.arange(mn, dtype=np.int64)[:, None], np.arange(k, dtype=np.int64)[None, :]
        place = self._place(rows, cols) + self.units * start
        swizzle = self.swizzled
        turn = (place >> swizzle.base + swizzle.shift) - base & (1 << swizzle.bits) - 1
        return place ^ turn << swizzle.base

    def layout(self, mn: int, k: int) -> Layout:
        """The linear part as a layout: axes mn and k to the dimension `byte` (or `bit`).

        `mn` and `k` are the extents; errors where they are not whole core matrices.
        """
        axes: list[Axis] = []
        for name, extent, ((size, step), (_, further)) in zip(
            ("mn", "k"), (mn, k), self._modes(), strict=True
        ):
            short = name == "k" and self.width != 0
            within = min(size, extent) if short else size
            if extent < 1 or extent % within or (short and extent > self.width):
                raise FragirError(
                    f"{extent} along {name} are no whole core matrices of this layout"
                )
            modes = (Mode(within, (step,)), Mode(extent // within, (further,)))
            kept = coalesce_modes(modes) if short else tuple(m for m in modes if m.size != 1)
            axes.append(Axis(name, kept))
        return Layout(tuple(axes), (self.unit,))

    def shared(self, mn: int, k: int, start: int = 0) -> SharedLayout:
        """The whole layout of `mn` x `k` elements that start at the byte `start`."""
        from fragir.layout import SharedLayout  # a descriptor does without

        plain = self.layout(mn, k)
        return SharedLayout(Layout(plain.axes, plain.dims, (self.units * start,)), self.swizzled)

    def advance(self, element: int = 0) -> int:
        """Bytes from the operand of one step along K (32 bytes of K) to that of the next.

        K-major without swizzle: two core matrices on. K-major with swizzle: 32 bytes on, as long
        as the step stays within the swizzle width. MN-major: as many groups of 8 k (of 4, with
        atoms of 32 bytes) as the step has. To be added to the start address; the base offset stays.
        """
        if self.major == "k":
            return 2 * self.leading if self.swizzle == 0 else STEP_BYTES
        groups = STEP_BYTES // self.element_bytes // self.groups
        return groups * (self.leading if self.swizzle == 0 else self.stride)


def element_form(element: str, *, padded: bool = False) -> tuple[int, int, int]:
    """(element_bytes, bits, per_chunk) of a type in shared memory, as `CanonicalLayout` has them.

    `e2m1x2` are e2m1 of which two stand in a byte (`kind::mxf4*`); 16 `padded` ones of 4 or 6 bits
    begin at every 16 bytes, as the other kinds of tcgen05 have them.
    """
    bits = 4 if element == PACKED_PAIR else BITS[element]
    if bits % 8 == 0:
        return bits // 8, 0, 0
    if element == PACKED_PAIR:
        return 1, 4, 32
    if not padded:
        raise FragirError(f"{element} has no whole bytes; take 8-bit units")
    return 1, bits, 16


def canonical(
    element: str,
    major: Major,
    swizzle: int,
    mn: int,
    k: int,
    *,
    leading: int = 0,
    stride: int = 0,
    atom: int = 16,
    padded: bool = False,
) -> CanonicalLayout:
    """The dense canonical layout of an operand of `mn` x `k` elements, packed without holes.

    `leading` and `stride` in bytes override the packed ones. `atom` is 32 for the 128-byte swizzle
    with 32-byte atoms of tcgen05; for `padded` elements and `e2m1x2` see `element_form`.
    `operand_tiles.majors` says which types may be MN-major where.
    """
    s, bits, per_chunk = element_form(element, padded=padded)
    w = _chunks(swizzle)
    if atom != 16 and (atom, swizzle) != (WIDE_ATOM, 128):
        raise FragirError(
            f"there is no {swizzle}-byte swizzle with atoms of {atom} bytes",
            hint="atoms have 16 bytes, or 32 with the 128-byte swizzle",
        )
    if bits and major == "mn":
        raise FragirError(f"elements of {bits} bits cannot be MN-major")
    t = per_chunk or 16 // s
    lines = 8 * 16 // atom
    if major == "k" and swizzle == 0:
        packed = (8 * 16, 8 * 16 * (k // t))
    elif major == "k":
        packed = (16, 8 * 16 * w)
    elif swizzle == 0:
        packed = (8 * 16 * (mn // t), 8 * 16)
    else:
        packed = (lines * 16 * w * (k // lines), lines * 16 * w)
    offsets = leading or packed[0], stride or packed[1]
    return CanonicalLayout(major, swizzle, s, *offsets, atom, bits, per_chunk)
