"""The forms of floating-point instructions that are rounded to nearest, in few numpy calls.

`floating_arithmetic.py`, `approximate.py`, `signs.py` and `convert.py` say what every form means;
here are the shorter roads to the same bits for those that kernels are made of. None stands for a
form that has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fragir.emulator.instructions.alu import Function, of1
from fragir.emulator.numbers.quick import (
    U16,
    brain,
    brain_of_single,
    canonical,
    canonical_half,
    extreme_brain,
    extreme_half,
    extreme_single,
    flushed,
    fma_brain,
    fma_half,
    fma_single,
    half,
    native,
    native_brain,
    native_half,
    single,
    wide,
)
from fragir.emulator.numbers.types import dtype_of, some

#: The type in which the functions take and give the values of a format.
TYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}
_SUMS: dict[str, np.ufunc] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
_NATIVE: dict[str, Function] = {"f32": native, "f16": native_half, "bf16": native_brain}
_FUSED: dict[str, Function] = {"f32": fma_single, "f16": fma_half, "bf16": fma_brain}
_EXTREME: dict[str, Function] = {
    "f32": extreme_single,
    "f16": extreme_half,
    "bf16": extreme_brain,
}
#: Words that change results; of them only ftz, of f32, has a road here.
_MODIFIERS = frozenset(("sat", "relu", "oob", "xorsign", "abs", "satfinite"))


def flushing(function: Function) -> Function:
    """Subnormal f32 operands and results become zeros."""

    def operate(*operands: Any) -> Any:
        return flushed(function(*[flushed(x) for x in operands]))

    return operate


def arithmetic(name: str, form: str, mode: str, words: tuple[str, ...]) -> Function | None:
    """add, sub, mul, fma, mad, and div, rcp, sqrt of f32."""
    if mode != "rn" or not _MODIFIERS.isdisjoint(words):
        return None
    found: Function | None = None
    if name in _SUMS and form in _NATIVE:
        found = _NATIVE[form](_SUMS[name])
    elif name in ("fma", "mad"):
        found = _FUSED.get(form)
    elif form == "f32" and name in ("div", "sqrt"):
        found = native(np.divide if name == "div" else np.sqrt)
    return _with_flush(found, form, words)


def extremes(name: str, form: str, words: tuple[str, ...], count: int) -> Function | None:
    """max and min of two, or of three, operands."""
    if form not in _EXTREME or not _MODIFIERS.isdisjoint(words):
        return None
    pair = _EXTREME[form](name == "max", "NaN" in words)

    def of_three(a: Any, b: Any, c: Any) -> Any:
        return pair(pair(a, b), c)

    return _with_flush(pair if count == 2 else of_three, form, words)


def rounded_once(core: Function, form: str, words: tuple[str, ...]) -> Function | None:
    """A function computed in f64; `core` takes and gives f64."""
    if form not in ("f32", "f16"):
        return None
    narrow = single if form == "f32" else half

    def operate(*operands: Any) -> Any:
        return narrow(core(*[x.astype(np.float64) for x in operands]))

    return _with_flush(operate, form, words)


def _with_flush(function: Function | None, form: str, words: tuple[str, ...]) -> Function | None:
    if function is None or "ftz" not in words:
        return function
    return flushing(function) if form == "f32" else None


# -- conversions -----------------------------------------------------------------------------------


def _to_brain(a: Any) -> U16:
    return brain_of_single(a)


def _from_half(a: Any) -> Any:
    return canonical(a.astype(np.float32))


def _from_brain(a: Any) -> Any:
    return canonical(wide(a))


_CONVERSIONS: dict[tuple[str, str], Function] = {
    ("f16", "f32"): half,
    ("bf16", "f32"): _to_brain,
    ("f32", "f16"): _from_half,
    ("f32", "bf16"): _from_brain,
}
#: Words of cvt to pairs that are computed the long way.
_BESIDE = frozenset(("relu", "satfinite", "ftz"))
_INTEGER: dict[str, np.ufunc] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def between_floats(into: str, kind: str, mode: str, words: tuple[str, ...]) -> Function | None:
    """cvt from one floating-point type to another."""
    if mode != "rn" or not _MODIFIERS.isdisjoint(words) or not _INTEGER.keys().isdisjoint(words):
        return None
    found = _CONVERSIONS.get((into, kind))
    if found is None or "ftz" not in words:
        return found
    inner = found
    if into == "f32":
        return of1(lambda a: flushed(inner(a)))
    return of1(lambda a: inner(flushed(a)))


def of_integer(into: str, kind: str, mode: str, words: tuple[str, ...]) -> Function | None:
    """cvt from an integer of at most 32 bits, which f64 holds."""
    if mode != "rn" or not _MODIFIERS.isdisjoint(words) or int(kind[1:]) > 32:
        return None
    if into in ("f32", "f16"):
        dtype = TYPES[into]
        return of1(lambda a: a.astype(np.float64).astype(dtype))
    return of1(lambda a: brain(a.astype(np.float64))) if into == "bf16" else None


def to_integer(into: str, kind: str, rounding: str, low: int, high: int) -> Function | None:
    """cvt of f32, f16 or bf16 to an integer of at most 32 bits, from `low` to `high`."""
    if kind not in TYPES or int(into[1:]) > 32:
        return None
    whole, dtype = _INTEGER[rounding], dtype_of(into)
    least, most = np.array(low, np.float64), np.array(high, np.float64)
    is_brain = kind == "bf16"

    def convert(a: Any) -> Any:
        value = (wide(a) if is_brain else a).astype(np.float64)
        whole(value, out=value)
        np.maximum(value, least, out=value)
        np.minimum(value, most, out=value)
        nan = np.isnan(value)
        if some(nan):
            value[nan] = 0
        return value.astype(dtype)

    return convert


def pair_of_singles(into: str, words: tuple[str, ...]) -> Function | None:
    """cvt of two f32 to f16x2 or bf16x2: the bits, the second operand in the low half."""
    if "rn" not in words or not _BESIDE.isdisjoint(words):
        return None
    if into == "f16x2":

        def halves(high: Any, low: Any) -> Any:
            both = np.empty((*low.shape, 2), np.float16)
            both[..., 0], both[..., 1] = low, high
            return canonical_half(both, np.isnan(both)).view(np.uint32)[..., 0]

        return halves
    if into == "bf16x2":

        def brains(high: Any, low: Any) -> Any:
            both = np.empty((*low.shape, 2), np.float32)
            both[..., 0], both[..., 1] = low, high
            return brain_of_single(both).view(np.uint32)[..., 0]

        return brains
    return None
