"""Exact values and their bits, on numpy arrays: what round, approx, integer and their kin mean.

Between them a value is an f64, exact or rounded to odd (`numbers/rounding.py`), so that rounding it
once more is rounding once. `.approx`, `.full`, ex2, lg2, sin, cos, tanh, rsqrt are the f64 value
rounded once: within the ISA's bounds, but not the bits of any GPU. What the ISA does promise about
them is kept: which inputs give zeros, infinities and NaN, and the 20 fraction bits of the
`.approx.ftz.f64` forms (PTX ISA 9.2, sections 9.7.3 to 9.7.5).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.rounding import (
    F16_NAN,
    F32_NAN,
    decode,
    encode,
    exact_f64,
    fma_f64,
    quantize,
    round_rational,
    saturate,
    to_odd,
)
from fragir.emulator.numbers.types import (
    F64,
    FORMATS,
    OOB_NAN,
    UINT,
    Array,
    Format,
    where,
    width_of,
)

Bits: TypeAlias = "Callable[..., Array]"

WHOLE: dict[str, np.ufunc] = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}
_UPPER = np.uint64(0xFFFFFFFF00000000)


def canonical_f32(value: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """The bits, with every NaN replaced by the one that instructions give."""
    bits = value.view(np.uint32)
    nan = np.isnan(value)
    return where(nan, F32_NAN, bits) if nan.any() else bits


def canonical_f16(value: npt.NDArray[np.float16]) -> npt.NDArray[np.uint16]:
    bits = value.view(np.uint16)
    nan = np.isnan(value)
    return where(nan, F16_NAN, bits) if nan.any() else bits


# -- bits to bits ----------------------------------------------------------------------------------


def _scalar(width: int, bits: int) -> np.unsignedinteger:
    kind = UINT[width // 8].type
    return kind(bits)


def sign_of(form: str) -> np.unsignedinteger:
    """The sign's bit."""
    width = width_of(form)
    return _scalar(width, 1 << width - 1)


def flush(bits: Array, form: str) -> Array:
    """Subnormals become zeros of the same sign."""
    fraction = FORMATS[form].fraction
    width = bits.dtype.itemsize * 8
    of = bits.dtype.type
    sign = of(1 << (width - 1))
    small = (bits & of(((1 << (width - 1)) - 1) ^ ((1 << fraction) - 1))) == 0
    return where(small, bits & sign, bits) if small.any() else bits


def positive(bits: Array, form: str) -> Array:
    """.relu: negative numbers become zero; NaN stays."""
    nan = np.isnan(decode(bits, FORMATS[form]))
    return where((bits & sign_of(form) != 0) & ~nan, bits.dtype.type(0), bits)


def within_one(bits: Array, form: str) -> Array:
    """.sat: into [0, 1], NaN to zero."""
    nan = np.isnan(decode(bits, FORMATS[form]))
    zero = bits.dtype.type(0)
    result = where((bits & sign_of(form) != 0) & ~nan, zero, bits)
    return where(nan, zero, np.minimum(result, one(form)))


def one(form: str) -> np.unsignedinteger:
    """The bits of 1."""
    return _scalar(width_of(form), int(encode(np.array([1.0]), FORMATS[form])[0]))


def inside(bits: Array, a: Array, b: Array) -> Array:
    """.oob: zero where one of the operands is `OOB_NAN`."""
    return where((a == OOB_NAN) | (b == OOB_NAN), bits.dtype.type(0), bits)


def extreme(form: str, largest: bool, nan: bool = False, xorsign: bool = False) -> Bits:
    """min and max of two: -0 < +0; a number wins over NaN unless `nan`.

    `xorsign`: of the magnitudes, with the product's sign.
    """
    shape = FORMATS[form]

    def pair(a: Array, b: Array) -> Array:
        of = a.dtype.type
        sign = sign_of(form)
        flip = (a ^ b) & sign if xorsign else None
        if xorsign:
            a, b = a & ~sign, b & ~sign
        x, y = decode(a, shape), decode(b, shape)
        take_a = x > y if largest else x < y
        result = where(take_a, a, b)
        result = where(x == y, a & b if largest else a | b, result)
        x_nan, y_nan = np.isnan(x), np.isnan(y)
        if nan:
            bad = x_nan | y_nan
        else:
            result = where(x_nan, b, where(y_nan, a, result))
            bad = x_nan & y_nan
        if flip is not None:
            result = result | flip
        assert shape.nan is not None
        return where(bad, of(shape.nan), result).astype(a.dtype)

    return pair


# -- exact values ----------------------------------------------------------------------------------


def quotient_odd(a: F64, b: F64) -> F64:
    """f32 quotients: the f64 quotient with the sign of its own remainder made sticky."""
    quotient = a / b
    with_remainder = np.isfinite(quotient) & (quotient != 0)
    # a - q*b in exact arithmetic: q has 53 bits and b 24, so split q in two.
    high = quotient.astype(np.float32).astype(np.float64)
    low = quotient - high
    remainder = (a - high * b) - low * b
    return to_odd(quotient, where(with_remainder, remainder * np.sign(b), 0.0))


def root_odd(a: F64) -> F64:
    root = np.sqrt(a)
    high = root.astype(np.float32).astype(np.float64)
    low = root - high
    remainder = ((a - high * high) - 2 * high * low) - low * low
    return to_odd(root, where(np.isfinite(root) & (root != 0), remainder, 0.0))


def divide_approximately(a: F64, b: F64) -> F64:
    """a * (1/b), where 1/b is subnormal and so becomes zero for |b| above 2^126."""
    magnitude = np.abs(b)
    lost = (magnitude > 2.0**126) & np.isfinite(magnitude)
    with np.errstate(invalid="ignore"):
        return np.where(lost, a * np.copysign(0.0, b), a / b)


def of_integer(a: Array) -> F64:
    """Integers; of 64 bits 53 are kept, the last one set where something was cut off."""
    if a.dtype.itemsize < 8:
        return a.astype(np.float64)
    negative = a < 0
    magnitude = where(negative, np.negative(a), a).view(np.uint64)
    big = magnitude >> np.uint64(53) != 0
    low = np.uint64(0x7FF)
    cut = (magnitude & ~low) | ((magnitude & low != 0).astype(np.uint64) << np.uint64(11))
    value = where(big, cut, magnitude).astype(np.float64)
    return where(negative, -value, value)


def integral(mode: str) -> Bits:
    """The nearest integer by a rounding, its sign kept."""
    whole = WHOLE[mode]

    def function(value: F64) -> F64:
        return np.copysign(whole(value), value)

    return function


# -- exact values to bits --------------------------------------------------------------------------


def _nearest_f32(value: F64) -> Array:
    return canonical_f32(value.astype(np.float32))


def _nearest_f16(value: F64) -> Array:
    return canonical_f16(value.astype(np.float16))


def round_to(form: Format, mode: str, satfinite: bool) -> Bits:
    """The nearest number of a format that is not f64, by a rounding.

    `satfinite`: none beyond the largest; formats without NaN never have one.
    """
    out = UINT[max(width_of(form.name), 8) // 8]
    clamp = satfinite or form.nan is None
    if mode == "rn" and not clamp and form.name == "f32":
        return _nearest_f32
    if mode == "rn" and not clamp and form.name == "f16":
        return _nearest_f16

    def function(value: F64) -> Array:
        found = quantize(value, form, mode)
        return encode(saturate(found, form) if clamp else found, form).astype(out)

    return function


def cancelling_sum(x: F64, y: F64, exact: F64) -> F64:
    """A sum that is rounded downwards: where terms of unlike signs cancel it is -0."""
    gone = (exact == 0) & (np.signbit(x) != np.signbit(y))
    return where(gone, -0.0, exact)


_DOUBLE: dict[str, Callable[..., F64]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "fma": fma_f64,
}


def double(name: str, mode: str) -> Bits:
    """One operation of f64, by a rounding."""

    def function(*values: F64) -> Array:
        if mode == "rn":
            return _DOUBLE[name](*values).view(np.uint64)
        if name == "sub":
            return exact_f64("add", mode, values[0], -values[1]).view(np.uint64)
        return exact_f64(name, mode, *values).view(np.uint64)

    return function


def double_of_integer(mode: str) -> Bits:
    """An integer to f64."""

    def function(a: Array) -> Array:
        if mode == "rn" or a.dtype.itemsize < 8:
            value = a.astype(np.float64)
        else:
            exact = [round_rational(Fraction(int(v)), mode) if v else 0.0 for v in a.ravel()]
            value = np.array(exact, np.float64).reshape(a.shape)
        return encode(value, FORMATS["f64"])

    return function


def upper_half(compute: Bits) -> Bits:
    """rcp and rsqrt.approx.ftz.f64: numbers of 1.11.20 bits, the lower 32 bits are zeros."""
    form = FORMATS["f64"]

    def function(a: Array) -> Array:
        bits = a & _UPPER
        subnormal = bits & np.uint64(0x7FF0 << 48) == 0
        bits = where(subnormal, bits & np.uint64(1 << 63), bits)
        # A NaN whose payload was below is one still.
        bits = where(np.isnan(a.view(np.float64)), np.uint64(form.nan or 0), bits)
        result = encode(compute(bits.view(np.float64)), form)
        tiny = result & np.uint64(0x7FF0 << 48) == 0
        result = where(tiny, result & np.uint64(1 << 63), result)
        finite = result & np.uint64(0x7FF0 << 48) != np.uint64(0x7FF0 << 48)
        nearest = result + np.uint64(1 << 31)  # never beyond the largest: 1/x is below 2^1023
        return where(finite, nearest, result) & _UPPER

    return function


def to_integer(into: str, mode: str, low: int, high: int, nan: int) -> Bits:
    """An integer by a rounding. Out of range: the nearest end; `nan`: what NaN gives."""
    width = width_of(into)
    unsigned = UINT[width // 8]
    dtype = np.dtype(f"{'i' if into[0] == 's' else 'u'}{width // 8}")
    rounding = WHOLE[mode]
    mask = (1 << 64) - 1

    def function(value: F64) -> Array:
        whole = rounding(value)
        bad = np.isnan(value)
        above, below = whole >= float(high) + 1, whole < float(low)
        if width < 64:
            above = whole > high
        within = where(bad | above | below, 0.0, whole)
        if into == "u64":
            half = within >= 2.0**63
            result = where(half, within - 2.0**63, within).astype(np.int64).view(np.uint64)
            result = where(half, result | np.uint64(1 << 63), result)
        else:
            result = within.astype(np.int64).view(np.uint64)
        result = where(above, np.uint64(high & mask), result)
        result = where(below, np.uint64(low & mask), result)
        return where(bad, np.uint64(nan), result).astype(unsigned).view(dtype)

    return function
