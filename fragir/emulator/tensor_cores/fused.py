"""The primitive of the floating-point tensor cores, for many outputs at once.

`dot` computes, for every output, the chain of fused steps of `arithmetic.Fused`. Why it is fast:
the product of two elements is exact in float32 (if their exponents are moderate) and so is its
multiple by 2^(F-E), so that the cast of float to int32 is the hardware's truncation; the terms of a
step fit in int32. Nearly always the addend is such a term as well (`_quick_step`), else it takes
part as float64. Large temporaries are kept between calls: fresh pages cost more than the
arithmetic.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import F32, F64, FORMATS, I32, Array
from fragir.emulator.tensor_cores.arithmetic import Fused, Rounding
from fragir.errors import FragirError

# -- elements --------------------------------------------------------------------------------------
# From bits to exact values and the exponents that the hardware aligns by.

Bits: TypeAlias = npt.NDArray[np.uint32]


# Exponent given to a zero element, so low that no product with it can lead; see `DecodedValues`.
ZERO_NARROW = -60


ZERO_WIDE = -2000


@dataclass(slots=True)
class DecodedValues:
    """Decoded elements of A or B, of any shape.

    `value`: exact, float32 or float64; 0 where the element is Inf or NaN. `exponent`: that of the
    encoding, floor(log2|x|) for normals and the smallest normal's for subnormals; int8 for formats
    of at most 5 exponent bits, else int16; ZERO_NARROW or ZERO_WIDE where `value` is 0. `special`:
    float64 values with Inf and NaN, or None where all elements are finite.
    """

    value: npt.NDArray[np.floating]
    exponent: npt.NDArray[np.signedinteger]
    special: F64 | None

    @property
    def are_narrow(self) -> bool:
        return self.exponent.dtype == np.int8

    def view(self, *shape: int) -> DecodedValues:
        special = None if self.special is None else self.special.reshape(shape)
        return DecodedValues(self.value.reshape(shape), self.exponent.reshape(shape), special)

    def __getitem__(self, index: Any) -> DecodedValues:
        special = None if self.special is None else self.special[index]
        return DecodedValues(self.value[index], self.exponent[index], special)


@cache
def _table(name: str) -> tuple[F32, npt.NDArray[np.int8], F64]:
    """Value, exponent and value with specials of every code of a format of at most 8 bits."""
    form = FORMATS[name]
    code = np.arange(1 << form.bits, dtype=np.int64)
    magnitude = code & ((1 << (form.bits - 1)) - 1)
    field = magnitude >> form.fraction
    part = magnitude & ((1 << form.fraction) - 1)
    exponent = np.maximum(field, 1) - form.bias
    significand = part + ((field > 0).astype(np.int64) << form.fraction)
    value = np.ldexp(significand.astype(np.float64), exponent - form.fraction)
    special = value.copy()
    if form.infinity:
        special[(field == field.max()) & (part == 0)] = np.inf
        special[(field == field.max()) & (part != 0)] = np.nan
    elif form.nan is not None:
        special[magnitude == magnitude.max()] = np.nan
    value[~np.isfinite(special)] = 0
    exponent[value == 0] = ZERO_NARROW
    sign = np.where(code >> (form.bits - 1) & 1, -1.0, 1.0)
    return (
        (value * sign).astype(np.float32),
        exponent.astype(np.int8),
        special * sign,
    )


def decode(name: str, bits: Bits) -> DecodedValues:
    """Elements from their bits (upper bits must be 0; tf32: all 32 bits of the register)."""
    match name:
        case "f16":
            return _decode_f16(bits)
        case "bf16":
            return _decode_wide(bits << np.uint32(16))
        case "tf32":
            return _decode_wide(bits & np.uint32(0xFFFFE000))
        case _ if name in FORMATS and FORMATS[name].bits <= 8:
            value, exponent, special = _table(name)
            infinite = not np.isfinite(special).all() and not np.isfinite(special[bits]).all()
            return DecodedValues(value[bits], exponent[bits], special[bits] if infinite else None)
        case _:
            raise FragirError(f"the emulator has no element format `{name}`")


_F16_SCALE = np.float32(2.0**112)


def _decode_f16(bits: Bits) -> DecodedValues:
    magnitude = bits & np.uint32(0x7FFF)
    # Moved to float32's place the exponent is 112 too small; subnormals come out right as well.
    moved = magnitude << np.uint32(13)
    moved |= (bits & np.uint32(0x8000)) << np.uint32(16)
    value = moved.view(np.float32) * _F16_SCALE
    magnitude = magnitude.astype(np.int16)
    exponent = (np.maximum(magnitude >> 10, 1) - 15).astype(np.int8)
    exponent[magnitude == 0] = ZERO_NARROW
    special = None
    if magnitude.size and int(magnitude.max()) >= 0x7C00:
        special = value.astype(np.float64)
        special[magnitude == 0x7C00] *= np.inf
        special[magnitude > 0x7C00] = np.nan
        value[magnitude >= 0x7C00] = 0
        exponent[magnitude >= 0x7C00] = ZERO_NARROW
    return DecodedValues(value, exponent, special)


def _decode_wide(bits: Bits) -> DecodedValues:
    """Formats with float32's exponent, from float32's bits."""
    magnitude = bits & np.uint32(0x7FFFFFFF)
    value = bits.view(np.float32)
    exponent = (np.maximum(magnitude >> np.uint32(23), 1).astype(np.int16)) - np.int16(127)
    exponent[magnitude == 0] = ZERO_WIDE
    special = None
    if magnitude.size and int(magnitude.max()) >= 0x7F800000:
        with np.errstate(invalid="ignore"):  # signalling NaNs
            special = value.astype(np.float64)
        value = value.copy()
        value[magnitude >= 0x7F800000] = 0
        exponent[magnitude >= 0x7F800000] = ZERO_WIDE
    return DecodedValues(value, exponent, special)


@cache
def f16_codes(name: str) -> Bits:
    """The f16 code of every code of e4m3 or e5m2 (always exact); NaN becomes 0x7FFF."""
    special = _table(name)[2]
    with np.errstate(invalid="ignore"):
        result = special.astype(np.float16).view(np.uint16).astype(np.uint32)
    result[np.isnan(special)] = 0x7FFF
    # A negative zero survives: -0.0 is a value of the table.
    return result


NAN_F32 = np.uint32(0x7FFFFFFF)
NAN_F16 = np.uint32(0x7FFF)
_BIAS, _PLACE, _FIELD = 127, 23, 0xFF << 23  # of f32's exponent


class _Scratch(threading.local):
    """Arrays reused from call to call, one set a thread."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Array] = {}

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape)
        key = (name, np.dtype(dtype).str)
        have = self.kept.get(key)
        if have is None or have.size < size:
            have = self.kept[key] = np.empty(size, dtype)
        return have[:size].reshape(shape)


_scratch = _Scratch()


def _pow2(exponent: I32) -> F64:
    """2.0 ** exponent for normal results."""
    bits = exponent.astype(np.int64)
    bits += 1023
    bits <<= 52
    return bits.view(np.float64)


def _addend(c: Bits, accumulator: str) -> tuple[F64, I32, bool]:
    """Value, exponent (very low for zero) and whether any is Inf or NaN."""
    if accumulator == "f32":
        magnitude = c & np.uint32(0x7FFFFFFF)
        value = c.view(np.float32).astype(np.float64)
        exponent = (magnitude >> np.uint32(23)).view(np.int32)
        bias, top = 127, 255
    else:
        magnitude = c & np.uint32(0x7FFF)
        value = c.astype(np.uint16).view(np.float16).astype(np.float64)
        exponent = (magnitude >> np.uint32(10)).view(np.int32)
        bias, top = 15, 31
    np.maximum(exponent, 1, out=exponent)
    special = bool(exponent.size) and int(exponent.max()) == top
    exponent -= bias
    exponent[magnitude == 0] = 4 * -1000
    return value, exponent, special


def _round(value: F64, rounding: Rounding, tiny: bool) -> Bits:
    """The bits of the result. `tiny`: some |value| may be below the least normal f32.

    A zero result is +0, also where a negative value rounds to it.
    """
    if rounding is Rounding.RNE_F16:
        result = value.astype(np.float16).view(np.uint16).astype(np.uint32)
        result[result == 0x8000] = 0
        return result
    kept, least = (23, 2.0**149) if rounding is Rounding.RZ_F32 else (13, 2.0**139)
    cut = value.view(np.int64) & np.int64(-1 << (52 - kept))
    result = cut.view(np.float64)
    if tiny:
        small = np.abs(value) < 2.0**-126
        result[small] = np.trunc(value[small] * least) / least + 0.0
    return result.astype(np.float32).view(np.uint32)


def _are_moderate(values: DecodedValues) -> bool:
    """Whether every non-zero exponent lies in -50..60, so that float32 holds all products."""
    exponent = values.exponent
    low, high = exponent < -50, exponent > 60
    low &= exponent > ZERO_NARROW * 4
    return not low.any() and not high.any()


def dot(
    a: DecodedValues, b: DecodedValues, c: Bits, how: Fused, *, half_addend: bool = False
) -> Bits:
    """d = c + sum over k of a[k] * b[k], as the hardware adds it.

    `a`, `b`: `[K, ...]`, broadcast against each other to `[K, *c.shape]`. `c`: bits of the
    accumulator's format (f32, or f16 in the low half), any shape. `half_addend`: c was widened from
    f16, so that its exponent is at least f16's. Returns bits shaped like `c`.
    """
    depth = a.value.shape[0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, depth, how.step):
            stop = min(start + how.step, depth)
            c = _step(a[start:stop], b[start:stop], c, how, half_addend and start == 0)
    return c


def _step(a: DecodedValues, b: DecodedValues, c: Bits, how: Fused, half_addend: bool) -> Bits:
    count = a.value.shape[0]
    shape = (count, *c.shape)
    narrow = a.are_narrow and b.are_narrow
    exponents = _scratch.array("e", np.int8 if narrow else np.int16, shape)
    np.add(a.exponent, b.exponent, out=exponents)
    most = np.maximum.reduce(exponents, axis=0)
    nothing = -40 if narrow else -1000  # what is below: every product is zero
    single = a.value.dtype == np.float32 and b.value.dtype == np.float32
    single = single and (narrow or (_are_moderate(a) and _are_moderate(b)))
    if single and not half_addend and how.rounding.accumulator == "f32":
        quick = _quick_step(a, b, c, how, most, nothing)
        if quick is not None:
            return quick
    leading = most.astype(np.int32)
    leading[leading < nothing] = how.floor
    addend, exponent, special = _addend(c, how.rounding.accumulator)
    if half_addend:
        exponent[(exponent < -14) & (addend != 0)] = -14
    np.maximum(leading, exponent, out=leading)
    np.maximum(leading, how.floor, out=leading)

    if single:
        # Where E is below -100 every product is zero, so any finite scale does.
        scale32 = ((how.fraction + 127 - np.maximum(leading, -100)) << 23).view(np.float32)
        terms = _scratch.array("p32", np.float32, shape)
        np.multiply(a.value, b.value, out=terms)
        np.multiply(terms, scale32, out=terms)
    else:
        terms = _scratch.array("p64", np.float64, shape)
        np.multiply(a.value, b.value, out=terms, dtype=np.float64)
        np.multiply(terms, _pow2(how.fraction - leading), out=terms)
    cut = _scratch.array("q", np.int32, shape)
    np.copyto(cut, terms, casting="unsafe")
    wide = count << (how.fraction + 2) > 1 << 31  # |term| < 2^(F+2)
    total = np.add.reduce(cut, axis=0, dtype=np.int64 if wide else np.int32).astype(np.float64)

    addend_cut = addend * _pow2(how.fraction - leading)
    if special:
        addend_cut[~np.isfinite(addend)] = 0
    np.trunc(addend_cut, out=addend_cut)
    total += addend_cut
    total *= _pow2(leading - how.fraction)
    tiny = bool(leading.size) and int(leading.min()) - how.fraction < -126
    result = _round(total, how.rounding, tiny)
    if special or a.special is not None or b.special is not None:
        _specials(a, b, addend, how, result)
    return result


def _quick_step(
    a: DecodedValues, b: DecodedValues, c: Bits, how: Fused, most: Array, nothing: int
) -> Bits | None:
    """The same of an addend and a result in f32, in 32 bits: a third of the passes over outputs.

    `most`: the largest exponent of the products, below `nothing` where all of them are zero. None
    where an addend stands alone and is so small that 2^(E-F) were no normal f32.
    """
    count, fraction = a.value.shape[0], how.fraction
    shape = (count + 1, *c.shape)
    leading = most.astype(np.int32)
    zeros = bool(most.size) and int(most.min()) < nothing
    if zeros:
        leading[most < nothing] = -_BIAS
    leading += _BIAS
    leading <<= _PLACE
    # E + 127 in the place of an f32's exponent; that of a subnormal addend is 0, which is too low.
    top = leading.view(np.uint32)
    np.maximum(top, c & np.uint32(_FIELD), out=top)
    if zeros:  # else E is at least -100
        least = np.uint32((fraction + 1) << _PLACE)
        if ((top < least) & (c << np.uint32(1) != 0)).any():
            return None
        np.maximum(top, least, out=top)
    special = bool(top.size) and int(top.max()) >= _FIELD
    scale = np.subtract(np.uint32((fraction + 2 * _BIAS) << _PLACE), top).view(np.float32)
    terms = _scratch.array("p32", np.float32, shape)
    np.multiply(a.value, b.value, out=terms[:count])
    terms[count] = c.view(np.float32)
    np.multiply(terms, scale, out=terms)
    flat = terms.reshape(-1)
    np.copyto(flat.view(np.int32), flat, casting="unsafe")
    cut = terms.view(np.int32)
    products = count << (fraction + 2)  # |term| < 2^(F+2), |addend| < 2^(F+1)
    if products + (2 << fraction) <= 1 << 31:
        total = np.add.reduce(cut, axis=0, dtype=np.int32).astype(np.float64)
    else:
        dtype = np.int64 if products > 1 << 31 else np.int32
        total = np.add.reduce(cut[:count], axis=0, dtype=dtype).astype(np.float64)
        total += cut[count]
    kept = 23 if how.rounding is Rounding.RZ_F32 else 13
    bits = total.view(np.int64)
    bits &= np.int64(-1 << (52 - kept))
    rounded = total.astype(np.float32)
    top -= np.uint32(fraction << _PLACE)
    rounded *= top.view(np.float32)
    result = rounded.view(np.uint32)
    if special or a.special is not None or b.special is not None:
        _specials(a, b, c.view(np.float32).astype(np.float64), how, result)
    return result


def _specials(a: DecodedValues, b: DecodedValues, addend: F64, how: Fused, result: Bits) -> None:
    """Overwrites the outputs that meet Inf or NaN: IEEE decides which, NaN has one bit pattern."""
    left = a.value if a.special is None else a.special
    right = b.value if b.special is None else b.special
    if a.special is None and b.special is None:
        total = np.where(np.isfinite(addend), 0.0, addend)
    else:
        total = np.add.reduce(np.multiply(left, right, dtype=np.float64), axis=0) + addend
    half = how.rounding is Rounding.RNE_F16
    infinity, sign, nan = (0x7C00, 0x8000, NAN_F16) if half else (0x7F800000, 1 << 31, NAN_F32)
    result[np.isposinf(total)] = np.uint32(infinity)
    result[np.isneginf(total)] = np.uint32(infinity | sign)
    result[np.isnan(total)] = nan
