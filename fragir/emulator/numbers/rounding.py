"""Exact scalar floating point on numpy arrays: sums rounded to odd, and narrowing.

A result that must be rounded once to a narrow format is computed in f64 *rounded to odd* (the
last bit set where anything was cut off); rounding that again to a format with at most 51 bits
gives what one rounding of the exact value gives (Boldo and Melquiond, IEEE TC 57(4), 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isfinite

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import F64, FORMATS, Array, Format, some, where

F32_NAN = np.uint32(0x7FFFFFFF)
F16_NAN = np.uint16(0x7FFF)
_ZERO = np.array(0, np.float64)
_EVEN, _ONE, _MINUS = (np.array(n, np.int64) for n in (0, 1, -1))


def to_odd(total: F64, error: F64) -> F64:
    """`total` + `error` (error: what rounding `total` to nearest lost) rounded to odd."""
    bits = total.view(np.int64)
    above = error > _ZERO
    inexact = (above | (error < _ZERO)) & ((bits & _ONE) == _EVEN)
    if not some(inexact):
        return total
    towards = where(above == (total > _ZERO), _ONE, _MINUS)
    return where(inexact, bits + towards, bits).view(np.float64)


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """a + b as it is rounded, and exactly what that lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def sum_odd(a: F64, b: F64) -> F64:
    """a + b rounded to odd."""
    return to_odd(*two_sum(a, b))


def quantize(value: F64, form: Format, mode: str = "rn") -> F64:
    """The nearest values of a format, by mode rn, rna, rz, rm, rp; overflow by the mode.

    `value` is exact or rounded to odd. NaN and infinities stay.
    """
    _, exponent = np.frexp(value)
    scale = np.maximum(exponent - 1, form.lowest) - form.fraction
    part = np.ldexp(value, -scale)
    if mode == "rn":
        part = np.rint(part)
    elif mode == "rna":
        part = np.copysign(np.floor(np.abs(part) + 0.5), part)
    elif mode == "rz":
        part = np.trunc(part)
    else:
        part = np.floor(part) if mode == "rm" else np.ceil(part)
    result = np.copysign(np.ldexp(part, scale), value)
    over = np.abs(result) > form.largest
    if over.any():
        over &= np.isfinite(value)
        limit = np.full(value.shape, form.largest if mode == "rz" else np.inf)
        if mode in ("rm", "rp"):
            up = value > 0
            limit[up if mode == "rm" else ~up] = form.largest
        result = np.where(over, np.copysign(limit, value), result)
    return np.where(np.isfinite(value), result, value)


def saturate(value: F64, form: Format) -> F64:
    """Clamp to the largest finite magnitude (satfinite); NaN stays."""
    return np.clip(value, -form.largest, form.largest)


def encode(value: F64, form: Format) -> npt.NDArray[np.uint64]:
    """The bits of values that the format holds exactly; NaN becomes the format's own."""
    if form.name == "f64":
        bits = value.view(np.uint64).copy()
    elif form.name in ("f32", "tf32"):
        bits = value.astype(np.float32).view(np.uint32).astype(np.uint64)
    elif form.name == "bf16":
        bits = value.astype(np.float32).view(np.uint32).astype(np.uint64) >> np.uint64(16)
    elif form.name == "f16":
        bits = value.astype(np.float16).view(np.uint16).astype(np.uint64)
    else:
        bits = _encode_small(value, form)
    nan = np.isnan(value)
    if nan.any():
        # Formats without NaN give positive maximum (PTX ISA 9.2, 9.7.9.22 cvt).
        replacement = form.nan
        if replacement is None:
            replacement = (1 << (form.fraction + form.exponent)) - 1
        bits = np.where(nan, np.uint64(replacement), bits)
    return bits


def _encode_small(value: F64, form: Format) -> npt.NDArray[np.uint64]:
    magnitude = np.abs(value)
    infinite = np.isinf(magnitude)
    safe = np.where(np.isfinite(magnitude), magnitude, 0)
    _, exponent = np.frexp(safe)
    exponent = np.maximum(exponent - 1, form.lowest)
    significand = np.ldexp(safe, form.fraction - exponent).astype(np.int64)
    field = np.where(significand >> form.fraction, exponent + form.bias, 0)
    bits = (field << form.fraction) | (significand & ((1 << form.fraction) - 1))
    if form.infinity:
        bits = np.where(infinite, ((1 << form.exponent) - 1) << form.fraction, bits)
    elif infinite.any():
        assert form.nan is not None, "infinities of formats without NaN are clamped before"
        bits = np.where(infinite, form.nan, bits)
    return (bits | (np.signbit(value).astype(np.int64) << (form.fraction + form.exponent))).astype(
        np.uint64
    )


def decode(bits: Array, form: Format) -> F64:
    """The values of a format's bit patterns, as f64."""
    if form.name == "f64":
        return bits.astype(np.uint64).view(np.float64)
    if form.name in ("f32", "tf32"):
        return bits.astype(np.uint32, copy=False).view(np.float32).astype(np.float64)
    if form.name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if form.name == "f16":
        return bits.astype(np.uint16, copy=False).view(np.float16).astype(np.float64)
    return _small_table(form)[bits.astype(np.int64) & ((2 << (form.fraction + form.exponent)) - 1)]


_TABLES: dict[str, F64] = {}


def _small_table(form: Format) -> F64:
    table = _TABLES.get(form.name)
    if table is None:
        half = 1 << (form.fraction + form.exponent)
        values: list[float] = []
        for bits in range(half):
            field, rest = bits >> form.fraction, bits & ((1 << form.fraction) - 1)
            significand = rest + (1 << form.fraction if field else 0)
            values.append(significand * 2.0 ** (max(field, 1) - form.bias - form.fraction))
        if form.infinity:
            values[half - 4] = np.inf
            values[half - 3 :] = [np.nan] * 3
        elif form.nan is not None:
            values[form.nan] = np.nan
        table = np.array(values + [-v for v in values])
        _TABLES[form.name] = table
    return table


# -- f64, where nothing wider is at hand ---------------------------------------------------------


def split_product(a: F64, b: F64) -> tuple[F64, F64]:
    """a*b as an unevaluated sum (Dekker); exact away from overflow and underflow."""
    splitter = 134217729.0
    product = a * b
    ta, tb = a * splitter, b * splitter
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def fma_f64(a: F64, b: F64, c: F64) -> F64:
    """a*b + c, rounded once to nearest even."""
    upper, lower = split_product(a, b)
    th, tl = two_sum(c, lower)
    vh, vl = two_sum(upper, th)
    result = vh + sum_odd(tl, vl)
    limits = [np.frexp(x)[1] for x in (a, b, c)]
    tame = np.abs(limits[0]) < 400
    tame &= (np.abs(limits[1]) < 400) & (np.abs(limits[2]) < 800)
    tame &= np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (np.abs(limits[0] + limits[1]) < 400)
    tame &= (a != 0) & (b != 0) & (c != 0) & (np.abs(result) > 1e-200)
    if tame.all():
        return result
    return exact_f64("fma", "rn", a, b, c, keep=np.broadcast_to(tame, result.shape), known=result)


def exact_f64(
    operation: str,
    mode: str,
    *operands: F64,
    keep: npt.NDArray[np.bool_] | None = None,
    known: F64 | None = None,
) -> F64:
    """add, mul, div, sqrt, fma one element at a time in rationals; slow and exact.

    Elements where `keep` is set are taken from `known`.
    """
    arrays = np.broadcast_arrays(*operands)
    result = np.empty(arrays[0].shape) if known is None else known.copy()
    todo = np.ones(result.shape, np.bool_) if keep is None else ~keep
    flat = [x[todo] for x in arrays]
    result[todo] = [
        _one_f64(operation, mode, tuple(float(v) for v in values))
        for values in zip(*flat, strict=True)
    ]
    return result


def _one_f64(operation: str, mode: str, values: Sequence[float]) -> float:
    with np.errstate(all="ignore"):
        a = np.float64(values[0])
        b = np.float64(values[1]) if len(values) > 1 else a
        plain: dict[str, Callable[[], np.float64]] = {
            "add": lambda: a + b,
            "mul": lambda: a * b,
            "div": lambda: a / b,
            "sqrt": lambda: np.sqrt(a),
            "fma": lambda: a * b + values[-1],
        }
        near = float(plain[operation]())
    if not all(map(isfinite, values)):
        if operation == "fma" and isfinite(values[0]) and isfinite(values[1]):
            return values[2]  # a finite product, even one that overflows f64
        return near
    if (operation == "div" and values[1] == 0) or (operation == "sqrt" and values[0] <= 0):
        return near
    if operation == "sqrt":
        return _rounded_root(Fraction(values[0]), mode)
    x, y = Fraction(values[0]), Fraction(values[1])
    exact = {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "div": lambda: x / y,
        "fma": lambda: x * y + Fraction(values[-1]),
    }[operation]()
    if exact == 0:
        return _signed_zero(operation, mode, values)
    return round_rational(exact, mode)


def _signed_zero(operation: str, mode: str, values: Sequence[float]) -> float:
    signs = [np.signbit(v) for v in values]
    if operation in ("mul", "div"):
        return -0.0 if signs[0] != signs[1] else 0.0
    first = signs[0] if operation == "add" else signs[0] != signs[1]
    if first == signs[-1]:
        return -0.0 if first else 0.0
    return -0.0 if mode == "rm" else 0.0


def round_rational(exact: Fraction, mode: str) -> float:
    """A nonzero rational rounded to f64 by rn, rz, rm or rp."""
    form = FORMATS["f64"]
    magnitude, negative = abs(exact), exact < 0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, form.lowest) - form.fraction)
    steps, rest = divmod(magnitude, quantum)
    away = {"rz": False, "rm": negative, "rp": not negative}.get(mode)
    if away is None:
        away = rest * 2 > quantum or (rest * 2 == quantum and steps % 2 == 1)
    if rest and away:
        steps += 1
    value = steps * quantum
    if value > Fraction(form.largest):
        up = mode == "rn" or (mode == "rm" and negative) or (mode == "rp" and not negative)
        result = np.inf if up else form.largest
    else:
        result = float(value)
    return -result if negative else result


def _rounded_root(value: Fraction, mode: str) -> float:
    from math import isqrt

    shift = 2 * max(0, 240 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = (value.numerator << shift) // value.denominator
    root = isqrt(scaled)
    exact = root * root == scaled and (value.numerator << shift) % value.denominator == 0
    approximation = Fraction(2 * root + (0 if exact else 1), 2) / (1 << (shift // 2))
    return round_rational(approximation, mode)


# -- narrowing -------------------------------------------------------------------------------------
# Values to the bits of a format under the modifiers of cvt (PTX ISA 9.2, section 9.7.9.22).


def narrowed_bits(value: F64, form: Format, mode: str, words: tuple[str, ...]) -> Array:
    """Values to a format's bits under .sat, .satfinite, .relu."""
    if form.name != "f64":
        value = quantize(value, form, mode)
    return _finish(value, form, words)


def narrow_at_random(
    value: F64, form: Format, random: Array, bits: int, words: tuple[str, ...]
) -> Array:
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


def _finish(value: F64, form: Format, words: tuple[str, ...]) -> Array:
    if "relu" in words:
        value = where(value < 0, 0.0, value)
        value = where(value == 0, 0.0, value)
    if "satfinite" in words or form.nan is None:
        value = saturate(value, form)
    if "sat" in words:
        value = where(np.isnan(value), 0.0, np.clip(value, 0.0, 1.0))
        value = where(value == 0, 0.0, value)
    return encode(value, form)


def power_of_two(bits: Array, mode: str, clamp: bool) -> npt.NDArray[np.uint32]:
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


def scale_value(code: Array) -> F64:
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


def from_fixed_point(code: Array) -> F64:
    """The values of s2f6 codes."""
    return code.astype(np.uint8).view(np.int8).astype(np.float64) / 64
