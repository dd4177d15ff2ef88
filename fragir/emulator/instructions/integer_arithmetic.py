"""Integer arithmetic on arrays: upper halves of products, division, saturation, packed halves."""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.instructions.alu import Function
from fragir.emulator.numbers.types import where

Array = Any


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        double = np.dtype(f"{a.dtype.kind}{bits // 4}")
        product = np.multiply(a, b, dtype=double)
        return (product >> double.type(bits)).astype(a.dtype)
    return _high64(a, b)


def _high64(a: Array, b: Array) -> Array:
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x, y = a.view(np.uint64), b.astype(a.dtype).view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    second = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (second >> half)
    if a.dtype.kind == "i":
        high = high - where(a < 0, y, np.uint64(0)) - where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def divide(a: Array, b: Array) -> Array:
    """Quotient towards zero; division by zero gives all ones (PTX: machine-specific)."""
    zero = b == 0
    safe = where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        u = np.dtype(f"u{a.dtype.itemsize}")
        magnitude = np.abs(a).view(u) // np.abs(safe).view(u)
        quotient = where((a < 0) != (safe < 0), np.negative(magnitude), magnitude).view(a.dtype)
    return where(zero, ~b.dtype.type(0), quotient)


def remainder(a: Array, b: Array) -> Array:
    """a - b * (a / b); the dividend where b is zero (PTX: machine-specific)."""
    zero = b == 0
    quotient = divide(a, where(zero, b.dtype.type(1), b))
    return where(zero, a, a - quotient * b)


def saturated(value: Array, dtype: np.dtype[Any]) -> Array:
    """int64 values clamped to the range of a type of at most 32 bits."""
    ends = np.iinfo(dtype)
    return np.clip(value, ends.min, ends.max).astype(dtype)


def saturating_add(a: Array, b: Array) -> Array:
    return saturated(a.astype(np.int64) + b, a.dtype)


def saturating_subtract(a: Array, b: Array) -> Array:
    return saturated(a.astype(np.int64) - b, a.dtype)


def packed(function: Function, kind: str) -> Function:
    """Apply to both 16-bit halves (or four bytes) of a 32-bit register."""
    part = np.dtype({"u16x2": "u2", "s16x2": "i2", "u8x4": "u1", "s8x4": "i1"}[kind])

    def wrapped(*operands: Array) -> Array:
        # The last axis is the lane: contiguous copies let it be split.
        split = [np.ascontiguousarray(x).view(part) for x in operands]
        return np.ascontiguousarray(function(*split).astype(part)).view(np.uint32)

    return wrapped


def multiply24(high: bool) -> Function:
    def function(a: Array, b: Array) -> Array:
        if a.dtype.kind == "i":
            x, y = (v.astype(np.int64) << 40 >> 40 for v in (a, b))
        else:
            x, y = (v.astype(np.int64) & 0xFFFFFF for v in (a, b))
        product = x * y
        return (product >> 16 if high else product).astype(a.dtype)

    return function
