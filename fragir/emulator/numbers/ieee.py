"""IEEE operations that numpy lacks: fused multiply-add, with every rounding of PTX.

Exact sums are kept as a rounded value and its error; where the error of the error counts, the
last addition is rounded to odd, so that one more rounding is a single rounding (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums", IEEE TC 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import F32, F64

Rounding: TypeAlias = Literal["rn", "rz", "rm", "rp"]

NAN_F32 = np.uint32(0x7FFFFFFF)
# PTX leaves the payload of a double's NaN open; this is what we return, unconfirmed on hardware.
NAN_F64 = np.uint64(0x7FF8000000000000)


def _two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _odd_sum(a: F64, b: F64) -> F64:
    """a + b rounded to odd: an inexact result has its last bit set."""
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    even = (error != 0) & (bits & 1 == 0)
    # Towards the error: away from zero if it has the sum's sign, else towards zero.
    away = (error > 0) == (total > 0)
    return (bits + np.where(even, np.where(away, 1, -1), 0)).view(np.float64)


_SPLIT = float((1 << 27) + 1)


def _two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """a*b = high + low exactly (Dekker), for moderate exponents."""

    def split(x: F64) -> tuple[F64, F64]:
        y = x * _SPLIT
        high = y - (y - x)
        return high, x - high

    product = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _exact_fma(a: float, b: float, c: float, rounding: Rounding) -> float:
    """One fused multiply-add through rationals; for operands near the ends of the range."""
    product_negative = (np.signbit(a) != np.signbit(b)).item()
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        if Fraction(a) * Fraction(b) == 0 and product_negative == np.signbit(c).item():
            return -0.0 if product_negative else 0.0
        return -0.0 if rounding == "rm" else 0.0
    negative = exact < 0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 52, -1074)
    count, rest = divmod(magnitude, unit)
    up = {
        "rn": rest * 2 > unit or (rest * 2 == unit and count & 1 == 1),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[rounding]
    result = (count + up) * unit
    if result >= Fraction(2) ** 1024:
        stays = rounding == "rz" or rounding == ("rp" if negative else "rm")
        value = float(np.finfo(np.float64).max) if stays else float("inf")
    else:
        value = float(result)
    return -value if negative else value


def fma_f64(a: F64, b: F64, c: F64, rounding: Rounding = "rn") -> F64:
    """a*b + c with one rounding, elementwise; every NaN becomes NAN_F64."""
    a, b, c = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b, c))
    with np.errstate(all="ignore"):
        high, low = _two_product(a, b)
        sum_high, sum_low = _two_sum(c, low)
        value_high, value_low = _two_sum(high, sum_high)
        rest = _odd_sum(sum_low, value_low)
        result, error = _two_sum(value_high, rest)
        # Directed roundings: one step from the nearest, where the nearest is on the wrong side.
        if rounding == "rm":
            result = np.where(error < 0, np.nextafter(result, -np.inf), result)
        elif rounding == "rp":
            result = np.where(error > 0, np.nextafter(result, np.inf), result)
        elif rounding == "rz":
            inwards = np.where(result > 0, error < 0, error > 0)
            result = np.where(inwards, np.nextafter(result, 0.0), result)
        special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
        result = np.where(special, a * b + c, result)
        # A finite product must not overflow before it meets an infinite addend.
        result = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, result)

        def moderate(x: F64, least: float, most: float) -> npt.NDArray[np.bool_]:
            return (np.abs(x) >= least) & (np.abs(x) <= most)

        nothing = (a == 0) | (b == 0)
        easy = (
            moderate(a, 2.0**-400, 2.0**400)
            & moderate(b, 2.0**-400, 2.0**400)
            & (moderate(c, 2.0**-800, 2.0**900) | (c == 0))
            & (np.abs(result) > 2.0**-900)
        )
        # A product that is exactly zero adds nothing; the sign of a zero sum is IEEE's, and
        # numpy rounds to nearest, which differs only for `rm`.
        easy |= nothing & ((c != 0) | (rounding != "rm"))
        result = np.where(nothing & ~special, np.where(c != 0, c, a * b + c), result)
        hard = ~(easy | special)
    for index in zip(*np.nonzero(hard), strict=True):
        result[index] = _exact_fma(float(a[index]), float(b[index]), float(c[index]), rounding)
    bits = np.ascontiguousarray(result).view(np.uint64)
    return np.where(np.isnan(result), NAN_F64, bits).view(np.float64)


def fma_f32_of_f16(a: F32, b: F32, c: F32) -> F32:
    """a*b + c rounded once to f32 (RNE, subnormals kept), where a and b are f16 values."""
    with np.errstate(invalid="ignore", over="ignore"):
        # Rounding twice is safe here: the larger term ends at most 23 bits below its top, and the
        # smaller has at most 24 bits. If float64 loses some of those, the smaller term begins
        # below half a unit of the f32 result, so that no tie can arise that was none.
        total = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return total.astype(np.float32)


def canonical_f32(value: F32) -> npt.NDArray[np.uint32]:
    """Bits of f32 results; NaN is 0x7FFFFFFF."""
    bits = np.ascontiguousarray(value).view(np.uint32)
    return np.where(np.isnan(value), NAN_F32, bits)


def add_f16(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """HADD2 on one half: f16 codes, one RNE; NaN is 0x7FFF."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = half_values(a).astype(np.float64) + half_values(b).astype(np.float64)
    return to_f16(total)


def half_values(codes: npt.NDArray[np.uint32]) -> F32:
    """f16 codes in u32 -> their values, Inf and NaN included."""
    with np.errstate(invalid="ignore"):
        return codes.astype(np.uint16).view(np.float16).astype(np.float32)


def to_f16(value: F64 | F32) -> npt.NDArray[np.uint32]:
    """Values -> f16 codes in u32, RNE, overflow to Inf, NaN 0x7FFF."""
    with np.errstate(invalid="ignore", over="ignore"):
        codes = value.astype(np.float16).view(np.uint16).astype(np.uint32)
    return np.where(np.isnan(value), np.uint32(0x7FFF), codes)
