"""Values to the bits of a format under the modifiers of cvt (PTX ISA 9.2, section 9.7.9.22)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.formats import Format
from fragir.emulator.numbers.rounding import encode, quantize, saturate
from fragir.emulator.numbers.types import F64, where


def narrow(value: F64, form: Format, mode: str, words: tuple[str, ...]) -> Any:
    """Values to a format's bits under .sat, .satfinite, .relu."""
    if form.name != "f64":
        value = quantize(value, form, mode)
    return _finish(value, form, words)


def narrow_at_random(
    value: F64, form: Format, random: npt.NDArray[Any], bits: int, words: tuple[str, ...]
) -> Any:
    """.rs: away from zero where the highest `bits` of what is cut off, plus `random`, carry."""
    magnitude = np.abs(where(np.isfinite(value), value, 0.0))
    _, exponent = np.frexp(magnitude)
    scale = np.maximum(exponent - 1, form.lowest) - form.fraction
    scaled = np.ldexp(magnitude, -scale)
    whole = np.floor(scaled)
    lost = np.floor(np.ldexp(scaled - whole, bits)).astype(np.int64)
    whole = whole + (lost + random.astype(np.int64) >> bits)
    result = np.copysign(np.ldexp(whole, scale), value)
    result = where(np.isfinite(value), result, value)
    # Beyond the largest number there is nothing to round to; satfinite then clamps.
    result = where(np.abs(result) > form.largest, np.copysign(np.inf, result), result)
    return _finish(result, form, words)


def _finish(value: F64, form: Format, words: tuple[str, ...]) -> Any:
    if "relu" in words:
        value = where(value < 0, 0.0, value)
        value = where(value == 0, 0.0, value)
    if "satfinite" in words or form.nan is None:
        value = saturate(value, form)
    if "sat" in words:
        value = where(np.isnan(value), 0.0, np.clip(value, 0.0, 1.0))
        value = where(value == 0, 0.0, value)
    return encode(value, form)


def power_of_two(bits: npt.NDArray[Any], mode: str, clamp: bool) -> npt.NDArray[np.uint32]:
    """f32 bits to ue8m0, mode rz or rp: the exponent of the magnitude; 0xFF where there is none.

    As NVIDIA's cuda_fp8.hpp computes it: the sign is dropped, numbers below 2^-127 become it.
    """
    magnitude = bits & np.uint32(0x7FFFFFFF)
    code = magnitude >> np.uint32(23)
    if mode == "rp":
        up = (magnitude & np.uint32(0x7FFFFF) != 0) & (magnitude > 0x400000)
        code = code + (up & (magnitude < 0x7F800000))
    if clamp:
        code = where((code == 0xFF) & (magnitude <= 0x7F800000), np.uint32(0xFE), code)
    return code.astype(np.uint32)


def scale_value(code: npt.NDArray[Any]) -> F64:
    """The value of ue8m0 codes."""
    value = np.ldexp(1.0, code.astype(np.int32) - 127)
    return where(code == 0xFF, np.nan, value)


def fixed_point(value: F64, words: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    """To s2f6: 8 bits in two's complement, 6 of them behind the point; rounded to nearest even.

    Beyond +-127/64, the largest magnitude that both signs have, clamped to it; NaN is positive.
    """
    part = np.clip(np.rint(where(np.isnan(value), np.inf, value) * 64), -127, 127)
    if "relu" in words:
        part = np.maximum(part, 0)
    return part.astype(np.int8).view(np.uint8)


def from_fixed_point(code: npt.NDArray[Any]) -> F64:
    """The values of s2f6 codes."""
    return code.astype(np.uint8).view(np.int8).astype(np.float64) / 64
