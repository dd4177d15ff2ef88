"""Distances in memory: strides that are products of sizes, which 32 bits need not hold.

A size and an index have 32 bits, a product of them has not: the stride of a matrix of 8192 x 128256
f32 is 4.2 GB. So such a stride stays a product until an address is formed, in 64 bits:

    index * d1 * 4             mul.wide.s32 x, index, d1; mad.lo.s64 address, x, 4, pointer
    index * d1 * d2 * 4        ahead of loops: mul.wide.s32 s, d1, d2; shl.b64 s, s, 2
                               cvt.s64.s32 i, index; mad.lo.s64 address, i, s, pointer
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

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
