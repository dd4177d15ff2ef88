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
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from fragir.errors import FragirError
from fragir.isa.model import BITS
from fragir.layout import Axis, Layout, Mode

Major = Literal["k", "mn"]
SWIZZLES = (0, 32, 64, 128)
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


class CanonicalLayout(NamedTuple):
    """A canonical layout: (mn, k) of an operand to its byte in shared memory.

    `leading` and `stride` are the byte offsets LBO and SBO of the descriptor, `element_bytes` s.
    """

    major: Major
    swizzle: int
    element_bytes: int
    leading: int
    stride: int

    def linear(self, mn: int, k: int) -> int:
        """Byte offset of element (mn, k) from the start of the matrix, before the swizzle."""
        s, w = self.element_bytes, _chunks(self.swizzle)
        t = 16 // s
        if self.major == "k" and self.swizzle == 0:
            return 16 * (mn % 8) + self.stride * (mn // 8) + s * (k % t) + self.leading * (k // t)
        if self.major == "k":
            if k >= w * t:
                raise FragirError(
                    f"k = {k} is beyond the {self.swizzle}-byte swizzle width "
                    f"({w * t} elements); the next ones are another matrix"
                )
            return 16 * w * (mn % 8) + self.stride * (mn // 8) + s * k
        if self.swizzle == 0:
            return s * (mn % t) + self.stride * (mn // t) + 16 * (k % 8) + self.leading * (k // 8)
        line = s * (mn % (w * t)) + self.leading * (mn // (w * t))
        return line + 16 * w * (k % 8) + self.stride * (k // 8)

    def offset(self, mn: int, k: int, start: int = 0) -> int:
        """Byte address of element (mn, k) of a matrix that starts at address `start`."""
        return swizzled(start + self.linear(mn, k), self.swizzle)

    def layout(self, mn: int, k: int) -> Layout:
        """The linear part as a layout: axes mn and k to the dimension `byte`.

        `mn` and `k` are the extents; errors where they are not whole core matrices.
        """
        s, w = self.element_bytes, _chunks(self.swizzle)
        t = 16 // s
        if self.major == "k":
            row = 16 * w
            along = [(t, s), (k // t, self.leading)] if self.swizzle == 0 else [(k, s)]
            axes = (("mn", [(8, row), (mn // 8, self.stride)]), ("k", along))
        elif self.swizzle == 0:
            axes = (
                ("mn", [(t, s), (mn // t, self.stride)]),
                ("k", [(8, 16), (k // 8, self.leading)]),
            )
        else:
            axes = (
                ("mn", [(w * t, s), (mn // (w * t), self.leading)]),
                ("k", [(8, 16 * w), (k // 8, self.stride)]),
            )
        for (name, modes), extent in zip(axes, (mn, k), strict=True):
            covered = 1
            for size, _ in modes:
                covered *= size
            if covered != extent or (self.major == "k" and name == "k" and s * k > 16 * w > 16):
                raise FragirError(
                    f"{extent} along {name} are no whole core matrices of this layout"
                )
        return Layout(
            tuple(
                Axis(name, tuple(Mode(size, (stride,)) for size, stride in modes if size != 1))
                for name, modes in axes
            ),
            ("byte",),
        )

    def advance(self, element: int = 0) -> int:
        """Bytes from the operand of one step along K (32 bytes of K) to that of the next.

        K-major without swizzle: two core matrices on. K-major with swizzle: 32 bytes on, as long
        as the step stays within the swizzle width. MN-major (16-bit types): 16 k are two times
        8 k. To be added to the start address; the base offset stays.
        """
        if self.major == "k":
            return 2 * self.leading if self.swizzle == 0 else STEP_BYTES
        eights = STEP_BYTES // self.element_bytes // 8
        return eights * (self.leading if self.swizzle == 0 else self.stride)


def canonical(
    element: str, major: Major, swizzle: int, mn: int, k: int, *, leading: int = 0, stride: int = 0
) -> CanonicalLayout:
    """The dense canonical layout of an operand of `mn` x `k` elements, packed without holes.

    `leading` and `stride` in bytes override the packed ones. MN-major exists for 16-bit types
    only on wgmma (PTX ISA 9.2, section 9.7.15.5.1).
    """
    bits = BITS[element]
    if bits % 8:
        raise FragirError(f"{element} has no whole bytes; take 8-bit units")
    s, w = bits // 8, _chunks(swizzle)
    t = 16 // s
    if major == "k" and swizzle == 0:
        packed = (8 * 16, 8 * 16 * (k // t))
    elif major == "k":
        packed = (16, 8 * 16 * w)
    elif swizzle == 0:
        packed = (8 * 16 * (mn // t), 8 * 16)
    else:
        packed = (8 * 16 * w * (k // 8), 8 * 16 * w)
    return CanonicalLayout(major, swizzle, s, leading or packed[0], stride or packed[1])
