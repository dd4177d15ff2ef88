"""Distances in memory: strides that are products of sizes, which 32 bits need not hold.

A size and an index have 32 bits, a product of them has not: the stride of a matrix of 8192 x 128256
f32 is 4.2 GB. So such a stride stays a product until an address is formed, in 64 bits:

    index * d1 * 4             mul.wide.s32 x, index, d1; mad.lo.s64 address, x, 4, pointer
    index * d1 * d2 * 4        ahead of loops: mul.wide.s32 s, d1, d2; shl.b64 s, s, 2
                               cvt.s64.s32 i, index; mad.lo.s64 address, i, s, pointer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import SSAValue

if TYPE_CHECKING:
    from fragir.passes.lowering.arithmetic import Arithmetic

Value = int | SSAValue


class Distance(NamedTuple):
    """The product of sizes, or of a size and a number."""

    factors: tuple[SSAValue, ...]
    scale: int


Stride = Value | Distance


def factors_of(stride: Stride) -> Distance:
    """A stride as the product that it is."""
    if isinstance(stride, Distance):
        return stride
    return Distance((), stride) if isinstance(stride, int) else Distance((stride,), 1)


def times(x: Stride, y: Stride) -> Stride:
    """x * y; zero, numbers and single sizes stay what they are."""
    one, other = factors_of(x), factors_of(y)
    scale = one.scale * other.scale
    factors = (*one.factors, *other.factors) if scale else ()
    if not factors:
        return scale
    return factors[0] if len(factors) == 1 and scale == 1 else Distance(factors, scale)


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
