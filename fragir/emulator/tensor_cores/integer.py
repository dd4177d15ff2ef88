"""Integer and single-bit products: exact sums, wrapped to 32 bits or clamped."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import F32

Bits: TypeAlias = npt.NDArray[np.uint32]
# Largest |sum of products| of one instruction: 128 columns of 255*255 stays below 2^24, so a
# float32 matrix product is exact whatever its order of additions.
_WIDTHS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}


def width(element: str) -> int:
    """Bits of one element."""
    return _WIDTHS[element]


def decode(element: str, bits: Bits) -> F32:
    """Elements (upper bits 0) as exact float32."""
    value = bits.astype(np.int32)
    if element[0] == "s":
        half = 1 << (width(element) - 1)
        value = (value ^ half) - half
    return value.astype(np.float32)


def product(a: F32, b: F32, *, xor: bool = False) -> npt.NDArray[np.int64]:
    """A*B for `[..., m, k]` and `[..., k, n]`; with `xor`: how many single bits differ."""
    total = np.matmul(a, b).astype(np.int64)
    if xor:
        total = -2 * total
        total += np.add.reduce(a, axis=-1, keepdims=True).astype(np.int64)
        total += np.add.reduce(b, axis=-2, keepdims=True).astype(np.int64)
    return total


def accumulate(total: npt.NDArray[np.int64], c: Bits, *, clamp: bool) -> Bits:
    """total + C as s32: wrapped, or clamped once at the end where `clamp` (`.satfinite`)."""
    total = total + c.view(np.int32)
    if clamp:
        np.clip(total, -(1 << 31), (1 << 31) - 1, out=total)
    return total.astype(np.int32).view(np.uint32)
