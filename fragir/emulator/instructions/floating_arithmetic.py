"""Floating-point arithmetic on arrays of bits: IEEE 754, every rounding, flushing, saturation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.alu import Function, of1
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.rounding import (
    F16_NAN,
    F32_NAN,
    decode,
    encode,
    exact_f64,
    fma_f64,
    quantize,
    sum_odd,
    to_odd,
)
from fragir.emulator.numbers.types import F64, OOB_NAN, where

Array = Any


def canonical_f32(value: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """The bits, with every NaN replaced by the one that instructions give."""
    bits = value.view(np.uint32)
    nan = np.isnan(value)
    return where(nan, F32_NAN, bits) if nan.any() else bits


def canonical_f16(value: npt.NDArray[np.float16]) -> npt.NDArray[np.uint16]:
    bits = value.view(np.uint16)
    nan = np.isnan(value)
    return where(nan, F16_NAN, bits) if nan.any() else bits


def flush(bits: Array, form: str) -> Array:
    """Subnormals become zeros of the same sign."""
    fraction = FORMATS[form].fraction
    width = bits.dtype.itemsize * 8
    of = bits.dtype.type
    sign = of(1 << (width - 1))
    small = (bits & of(((1 << (width - 1)) - 1) ^ ((1 << fraction) - 1))) == 0
    return where(small, bits & sign, bits) if small.any() else bits


# -- exact cores: f64 in, f64 rounded to odd out -------------------------------------------------


def _add(a: F64, b: F64) -> F64:
    return sum_odd(a, b)


def _subtract(a: F64, b: F64) -> F64:
    return sum_odd(a, -b)


def _multiply(a: F64, b: F64) -> F64:
    return a * b


def _fma(a: F64, b: F64, c: F64) -> F64:
    return sum_odd(a * b, c)


def _divide(a: F64, b: F64) -> F64:
    """f32 quotients: the f64 quotient with the sign of its own remainder made sticky."""
    quotient = a / b
    with_remainder = np.isfinite(quotient) & (quotient != 0)
    # a - q*b in exact arithmetic: q has 53 bits and b 24, so split q in two.
    high = quotient.astype(np.float32).astype(np.float64)
    low = quotient - high
    remainder = (a - high * b) - low * b
    return to_odd(quotient, where(with_remainder, remainder * np.sign(b), 0.0))


def _root(a: F64) -> F64:
    root = np.sqrt(a)
    high = root.astype(np.float32).astype(np.float64)
    low = root - high
    remainder = ((a - high * high) - 2 * high * low) - low * low
    return to_odd(root, where(np.isfinite(root) & (root != 0), remainder, 0.0))


CORES: dict[str, Function] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "fma": _fma,
    "mad": _fma,
    "div": _divide,
    "rcp": of1(lambda a: _divide(np.ones_like(a), a)),
    "sqrt": _root,
}
_CANCELLING = {"add", "sub", "fma", "mad"}


def ieee(name: str, form: str, mode: str) -> Function:
    """The instruction on raw bits of one format, correctly rounded."""
    if form == "f64":
        return _double(name, mode)
    if mode == "rn" and form == "f32" and name in _NATIVE_F32:
        return _NATIVE_F32[name]
    core = CORES[name]
    shape = FORMATS[form]
    out = np.uint32 if form == "f32" else np.uint16

    def function(*operands: Array) -> Array:
        values = [decode(x, shape) for x in operands]
        exact = core(*values)
        if mode == "rn" and form == "f32":
            return canonical_f32(exact.astype(np.float32))
        if mode == "rn" and form == "f16":
            return canonical_f16(exact.astype(np.float16))
        if mode == "rm" and name in _CANCELLING:
            exact = where(_cancelled(name, values, exact), -0.0, exact)
        return encode(quantize(exact, shape, mode), shape).astype(out)

    return function


def _cancelled(name: str, values: Sequence[F64], exact: F64) -> Any:
    """Where a sum of unlike signs is exactly zero: -0 when rounding downwards."""
    first = values[0] if name in ("add", "sub") else values[0] * values[1]
    last = -values[-1] if name == "sub" else values[-1]
    return (exact == 0) & (np.signbit(first) != np.signbit(last))


def _native(function: Function) -> Function:
    def wrapped(*operands: Array) -> Array:
        return canonical_f32(function(*[x.view(np.float32) for x in operands]))

    return wrapped


def _fma_f32(a: Array, b: Array, c: Array) -> Array:
    product = np.multiply(a.view(np.float32), b.view(np.float32), dtype=np.float64)
    return canonical_f32(sum_odd(product, c.view(np.float32).astype(np.float64)).astype(np.float32))


_NATIVE_F32: dict[str, Function] = {
    "add": _native(np.add),
    "sub": _native(np.subtract),
    "mul": _native(np.multiply),
    "div": _native(np.divide),
    "sqrt": _native(np.sqrt),
    "rcp": _native(of1(lambda a: np.float32(1) / a)),
    "fma": _fma_f32,
    "mad": _fma_f32,
}


def _double(name: str, mode: str) -> Function:
    nearest: dict[str, Function] = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "sqrt": np.sqrt,
        "rcp": of1(lambda a: 1.0 / a),
        "fma": fma_f64,
        "mad": fma_f64,
    }

    def function(*operands: Array) -> Array:
        values = [x.view(np.float64) for x in operands]
        if mode == "rn":
            return nearest[name](*values).view(np.uint64)
        if name == "sub":
            return exact_f64("add", mode, values[0], -values[1]).view(np.uint64)
        if name == "rcp":
            return exact_f64("div", mode, np.ones_like(values[0]), values[0]).view(np.uint64)
        return exact_f64("fma" if name == "mad" else name, mode, *values).view(np.uint64)

    return function


def modified(
    function: Function,
    form: str,
    *,
    ftz: bool,
    sat: bool,
    relu: bool,
    split: bool,
    oob: bool = False,
) -> Function:
    """Wrap with flush to zero, clamping to [0, 1] or to positive, and halves of packed types.

    `oob`: zero where one of the first two operands is `OOB_NAN`.
    """
    if form == "f64" or not (ftz or sat or relu or split or oob):
        return function
    shape = FORMATS[form]
    width = 32 if form == "f32" else 16
    part, whole = (np.uint32, np.uint64) if form == "f32" else (np.uint16, np.uint32)
    sign = 1 << (width - 1)
    one = int(encode(np.array([1.0]), shape)[0])

    def wrapped(*operands: Array) -> Array:
        if split:
            operands = tuple(np.ascontiguousarray(x).view(part) for x in operands)
        if ftz:
            operands = tuple(flush(x, form) for x in operands)
        result = function(*operands)
        if ftz:
            result = flush(result, form)
        if sat or relu:
            nan = np.isnan(decode(result, shape))
            zero = result.dtype.type(0)
            result = where((result & sign != 0) & ~nan, zero, result)
            if sat:
                result = where(nan, zero, np.minimum(result, result.dtype.type(one)))
        if oob:
            outside = (operands[0] == OOB_NAN) | (operands[1] == OOB_NAN)
            result = where(outside, result.dtype.type(0), result)
        return np.ascontiguousarray(result).view(whole) if split else result

    return wrapped
