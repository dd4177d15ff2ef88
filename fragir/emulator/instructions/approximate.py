"""Approximate floating-point instructions (PTX ISA 9.2, sections 9.7.3 to 9.7.5).

`.approx`, `.full`, ex2, lg2, sin, cos, tanh, rsqrt are the f64 value rounded once: within the ISA's
bounds, but not the bits of any GPU. What the ISA does promise about them is kept: which inputs give
zeros, infinities and NaN, and the 20 fraction bits of the `.approx.ftz.f64` forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.instructions.alu import Function, of1
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.rounding import decode, encode, quantize
from fragir.emulator.numbers.types import F64, where

_CORES: dict[str, Function] = {
    "rcp": of1(lambda a: 1.0 / a),
    "sqrt": np.sqrt,
    "rsqrt": of1(lambda a: 1.0 / np.sqrt(a)),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "div": np.divide,
}
_UPPER = np.uint64(0xFFFFFFFF00000000)


def core(name: str, words: tuple[str, ...]) -> Function:
    """The function in f64; `words`: the instruction's."""
    return _divide_by_reciprocal if name == "div" and "approx" in words else _CORES[name]


def approximate(name: str, form: str, words: tuple[str, ...]) -> Function:
    """The value in f64, rounded once to the format; `words`: the instruction's."""
    compute = core(name, words)
    shape = FORMATS[form]
    out = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[form]
    if form == "f64" and "ftz" in words:
        return _upper_half(compute)

    def function(*operands: Any) -> Any:
        value = compute(*[decode(x, shape) for x in operands])
        if form == "f64":
            return encode(value, shape)
        return encode(quantize(value, shape), shape).astype(out)

    return function


def _divide_by_reciprocal(a: F64, b: F64) -> F64:
    """a * (1/b), where 1/b is subnormal and so becomes zero for |b| above 2^126."""
    magnitude = np.abs(b)
    lost = (magnitude > 2.0**126) & np.isfinite(magnitude)
    with np.errstate(invalid="ignore"):
        return np.where(lost, a * np.copysign(0.0, b), a / b)


def _upper_half(compute: Function) -> Function:
    """rcp and rsqrt.approx.ftz.f64: numbers of 1.11.20 bits, the lower 32 bits are zeros."""
    form = FORMATS["f64"]

    def function(a: Any) -> Any:
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
