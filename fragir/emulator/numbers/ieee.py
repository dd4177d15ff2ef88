"""IEEE operations that numpy lacks: fused multiply-add, with every rounding of PTX.

Exact sums are kept as a rounded value and its error; where the error of the error counts, the
last addition is rounded to odd, so that one more rounding is a single rounding (Boldo and
Melquiond, "Emulation of FMA and correctly rounded sums", IEEE TC 2008).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.rounding import exact_f64, split_product, sum_odd, two_sum
from fragir.emulator.numbers.types import F32, F64

Rounding: TypeAlias = Literal["rn", "rz", "rm", "rp"]

NAN_F32 = np.uint32(0x7FFFFFFF)
# PTX leaves the payload of a double's NaN open; this is what we return, unconfirmed on hardware.
NAN_F64 = np.uint64(0x7FF8000000000000)


def fma_f64(a: F64, b: F64, c: F64, rounding: Rounding = "rn") -> F64:
    """a*b + c with one rounding, elementwise; every NaN becomes NAN_F64."""
    a, b, c = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b, c))
    with np.errstate(all="ignore"):
        high, low = split_product(a, b)
        sum_high, sum_low = two_sum(c, low)
        value_high, value_low = two_sum(high, sum_high)
        rest = sum_odd(sum_low, value_low)
        result, error = two_sum(value_high, rest)
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
    if hard.any():
        result = exact_f64("fma", rounding, a, b, c, keep=~hard, known=result)
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
