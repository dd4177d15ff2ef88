"""What is known and computed of strides, also of those that are products of sizes."""

from __future__ import annotations

from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.distances import Distance, Stride, factors_of, times


def low(ar: Arithmetic, stride: Stride) -> Value:
    """The lowest 32 bits of a stride: what tells its rest by a power of two."""
    factors, scale = factors_of(stride)
    result: Value = 1
    for factor in factors:
        result = ar.mul(result, factor)
    return ar.mul(result, (scale + (1 << 31)) % (1 << 32) - (1 << 31))


def divisor(ar: Arithmetic, stride: Stride) -> int:
    """A number that divides a stride, as of a value."""
    if not isinstance(stride, Distance):
        return ar.divisor(stride)
    result = abs(stride.scale)
    for factor in stride.factors:
        result *= ar.divisor(factor)
    return result


def quotient(ar: Arithmetic, stride: Stride, by: int) -> Stride:
    """A stride divided by a power of two that divides it, see `divisor`."""
    factors, scale = factors_of(stride)
    shared = _common(scale, by)
    result: Stride = scale // shared
    by //= shared
    for factor in factors:
        shared = _common(ar.divisor(factor), by)
        result = times(result, ar.quotient(factor, shared))
        by //= shared
    assert by == 1
    return result


def _common(x: int, y: int) -> int:
    """The largest power of two that divides both."""
    return (x | y) & -(x | y)
