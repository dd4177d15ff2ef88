"""Single roundings to nearest in few numpy calls; `rounding.py` has every mode.

A step of one warp takes as long as it makes numpy calls, so the common road is short here, and what
it cannot be sure of is found by one test for the whole array: results that may lie at the middle
between two numbers, NaN, and numbers next to zero. Constants are arrays without an axis, which
numpy takes twice as fast as its scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.rounding import sum_odd
from fragir.emulator.numbers.types import F32, F64, U32, Array, some, where

F16: TypeAlias = npt.NDArray[np.float16]
U16: TypeAlias = npt.NDArray[np.uint16]

_SINGLE_NAN, _HALF_NAN, _BRAIN_NAN = 0x7FFFFFFF, 0x7FFF, 0x7FFF
#: Elements up to which numpy's own f16 arithmetic, which is scalar, is the faster road.
_FEW = 512
_ONE, _SIXTEEN = np.array(1, np.uint32), np.array(16, np.uint32)
_BELOW_HALF, _LOW_HALF = np.array(0x7FFF, np.uint32), np.array(0xFFFF, np.uint32)
_HALF = np.array(0x8000, np.uint32)
_TWO, _SIGN = np.array(2, np.uint32), np.array(0x80000000, np.uint32)
#: Twice the bits of the smallest normal f32, less two: what subnormal numbers are below.
_TWICE_NORMAL = np.array(0x00FFFFFE, np.uint32)
_NOTHING, _NONE = np.array(0, np.float32), np.array(0, np.float64)
#: The bits of an f64 that an f32 lacks, and what they are in the middle between two of them.
_REST, _MIDDLE = np.array((1 << 29) - 1, np.uint64), np.array(1 << 28, np.uint64)
#: Of twice the bits of an f32, less _SMALL: greater than _USUAL are NaN, zero and what is not
#: above the smallest normal number.
_SMALL, _USUAL = np.array(0x01000001, np.uint32), np.array(0xFDFFFFFF, np.uint32)


def canonical(value: F32) -> F32:
    """In place: every NaN becomes the one that instructions give."""
    nan = np.isnan(value)
    if some(nan):
        value.view(np.uint32)[nan] = _SINGLE_NAN
    return value


def canonical_half(value: F16, nan: npt.NDArray[np.bool_]) -> F16:
    """The same for f16; `nan`: where they are."""
    if some(nan):
        value.view(np.uint16)[nan] = _HALF_NAN
    return value


def single(value: F64) -> F32:
    """The nearest f32."""
    return canonical(value.astype(np.float32))


def half(value: F64 | F32) -> F16:
    """The nearest f16."""
    return canonical_half(value.astype(np.float16), np.isnan(value))


def brain_of_single(value: F32) -> U16:
    """The bits of the nearest bf16."""
    bits: U32 = value.view(np.uint32)
    rounded = bits >> _SIXTEEN
    rounded &= _ONE
    rounded += _BELOW_HALF
    rounded += bits
    rounded >>= _SIXTEEN
    result = rounded.astype(np.uint16)
    nan = np.isnan(value)
    if some(nan):
        result[nan] = _BRAIN_NAN
    return result


def brain(value: F64) -> U16:
    """The bits of the nearest bf16; `value` is exact or rounded to odd."""
    near = value.astype(np.float32)
    middle = (near.view(np.uint32) & _LOW_HALF) == _HALF
    if some(middle):
        near = _leaning(near, middle, value - near.astype(np.float64))
    return brain_of_single(near)


def _leaning(near: F32, middle: npt.NDArray[np.bool_], rest: F64) -> F32:
    """`near` where it is no middle between two bf16; else one step towards `near` + `rest`."""
    moved = middle & (rest != _NONE)
    if not some(moved):
        return near
    towards = np.where((rest > 0) == (near > 0), 1, -1).astype(np.int32)
    bits = near.view(np.int32)
    return np.where(moved, bits + towards, bits).view(np.float32)


def brain_values(bits: U16) -> F32:
    """The values of bf16 bits."""
    return (bits.astype(np.uint32) << _SIXTEEN).view(np.float32)


# -- fused multiply-add --------------------------------------------------------------------------


def fma_single(a: F32, b: F32, c: F32) -> F32:
    """a*b + c, rounded once.

    The product is exact in f64. The sum is rounded there and once more, which differs from one
    rounding only where the first gives a middle between two f32. Middles of subnormal numbers are
    elsewhere, so those take the exact sum too.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    addend = c.astype(np.float64)
    total = product + addend
    value = total.astype(np.float32)
    bits = value.view(np.uint32)
    ends = bits + bits
    ends -= _SMALL
    rest = total.view(np.uint64) & _REST
    if some(rest == _MIDDLE) or some(ends > _USUAL):
        return canonical(sum_odd(product, addend).astype(np.float32))
    return value


def fma_half(a: F16, b: F16, c: F16) -> F16:
    """The same for f16.

    Where a sum has more than the 53 bits of f64, its last bits are too far from those of an f16
    for the rounded sum to be a middle: the product has 22 bits from 2^-48 on, the addend 11.
    """
    total = a.astype(np.float64)
    total *= b.astype(np.float64)
    total += c.astype(np.float64)
    return half(total)


def fma_brain(a: U16, b: U16, c: U16) -> U16:
    """The same for bits of bf16."""
    product = brain_values(a).astype(np.float64)
    product *= brain_values(b).astype(np.float64)
    addend = brain_values(c).astype(np.float64)
    total = product + addend
    near = total.astype(np.float32)
    middle = (near.view(np.uint32) & _LOW_HALF) == _HALF
    if some(middle):
        part = total - product  # what the sum has lost: Knuth's TwoSum
        rest = (product - (total - part)) + (addend - part)
        rest += total - near.astype(np.float64)
        near = _leaning(near, middle, rest)
    return brain_of_single(near)


# -- sums and products ---------------------------------------------------------------------------


def native(function: np.ufunc) -> Callable[..., Array]:
    """An operation of f32 that numpy rounds once."""

    def operate(*operands: F32) -> F32:
        return canonical(function(*operands))

    return operate


def native_half(function: np.ufunc) -> Callable[..., Array]:
    """A sum, difference or product of f16; in f64, which holds all of them, where they are many."""

    def operate(a: F16, b: F16) -> F16:
        if a.size > _FEW:
            return half(function(a.astype(np.float64), b.astype(np.float64)))
        value = function(a, b)
        return canonical_half(value, np.isnan(value))

    return operate


def native_brain(function: np.ufunc) -> Callable[..., Array]:
    """The same of bf16 bits: f32 has more than twice their bits and two, so a second rounding is
    harmless (Figueroa, "When is double rounding innocuous?", 1995); subnormal sums are exact."""

    def operate(a: U16, b: U16) -> U16:
        return brain_of_single(function(brain_values(a), brain_values(b)))

    return operate


# -- the larger or smaller of two ------------------------------------------------------------------


def _extreme(largest: bool, nan: bool) -> Callable[[F32, F32], F32]:
    """The larger or smaller of f32, zeros by their signs; NaN is what numpy makes of it."""
    if nan:
        choose = np.maximum if largest else np.minimum
    else:
        choose = np.fmax if largest else np.fmin
    meet = np.bitwise_and if largest else np.bitwise_or

    def operate(a: F32, b: F32) -> F32:
        value = choose(a, b)
        if some(value == _NOTHING):  # which of two zeros numpy takes depends on the machine
            signs = meet(a.view(np.uint32), b.view(np.uint32))
            value = where(a == b, signs.view(np.float32), value)
        return value

    return operate


def extreme_single(largest: bool, nan: bool) -> Callable[..., Array]:
    """max or min of f32: -0 < +0; `nan`: NaN wins over a number, else it loses."""
    choose = _extreme(largest, nan)

    def operate(a: F32, b: F32) -> F32:
        return canonical(choose(a, b))

    return operate


def extreme_half(largest: bool, nan: bool) -> Callable[..., Array]:
    """The same of f16."""
    choose = _extreme(largest, nan)

    def operate(a: F16, b: F16) -> F16:
        return half(choose(a.astype(np.float32), b.astype(np.float32)))

    return operate


def extreme_brain(largest: bool, nan: bool) -> Callable[..., Array]:
    """The same of bf16 bits."""
    choose = _extreme(largest, nan)

    def operate(a: U16, b: U16) -> U16:
        return brain_of_single(choose(brain_values(a), brain_values(b)))

    return operate


# -- flushing --------------------------------------------------------------------------------------


def flush_subnormal(value: F32) -> F32:
    """Subnormal numbers become zeros of their sign; the array itself where there are none."""
    bits = value.view(np.uint32)
    ends = bits + bits
    ends -= _TWO
    small = ends < _TWICE_NORMAL
    return where(small, bits & _SIGN, bits).view(np.float32) if some(small) else value
