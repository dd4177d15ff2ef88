"""Bits of constants whose types have no literals in PTX: tf32 and floats of a byte or less."""

from __future__ import annotations

import math

from fragir.errors import FragirError

# bits of the exponent, bits of the fraction, the largest finite number's code, NaN's code
# (OCP 8-bit floating point specification; OCP microscaling formats specification)
_SMALL: dict[str, tuple[int, int, int, int | None]] = {
    "e4m3": (4, 3, 0x7E, 0x7F),
    "e5m2": (5, 2, 0x7B, 0x7F),
    "e3m2": (3, 2, 0x1F, None),
    "e2m3": (2, 3, 0x1F, None),
    "e2m1": (2, 1, 0x07, None),
}


def is_small_float(name: str) -> bool:
    """Whether a PTX type is a float that takes a byte or less."""
    return name in _SMALL or name == "ue8m0"


def small_float_bits(value: float, name: str) -> int:
    """The code of the nearest number, ties to even; beyond the largest, the largest (satfinite)."""
    if name == "ue8m0":
        return _power_of_two(value)
    exponent_bits, fraction_bits, largest, nan = _SMALL[name]
    sign = (math.copysign(1.0, value) < 0) << exponent_bits + fraction_bits
    if math.isnan(value):
        if nan is None:
            raise FragirError(f"{name} has no NaN")
        return sign | nan
    bias = (1 << exponent_bits - 1) - 1

    def number(code: int) -> float:
        exponent, fraction = divmod(code, 1 << fraction_bits)
        significand = fraction + (1 << fraction_bits) * (exponent > 0)
        return math.ldexp(significand, max(exponent, 1) - bias - fraction_bits)

    wanted = min(abs(value), number(largest))
    nearest = min(range(largest + 1), key=lambda code: (abs(number(code) - wanted), code & 1))
    return sign | nearest


def _power_of_two(value: float) -> int:
    """The code of a scale, which must be a power of two (OCP microscaling formats)."""
    if math.isnan(value):
        return 0xFF
    fraction, exponent = math.frexp(value)
    if fraction != 0.5 or not -127 <= exponent - 1 <= 127:
        raise FragirError(f"{value} is no scale", hint="f8E8M0FNU holds 2^-127 to 2^127")
    return exponent - 1 + 127


def tf32(value: float) -> float:
    """The nearest tf32 (11 bits of significand), ties away from zero as cvt.rna does."""
    if not math.isfinite(value) or value == 0:
        return value
    _, exponent = math.frexp(value)
    step = max(exponent, -125) - 11
    whole = math.floor(math.ldexp(abs(value), -step) + 0.5)
    rounded = math.ldexp(whole, step)
    return math.copysign(rounded if rounded < 2.0**128 else math.inf, value)
